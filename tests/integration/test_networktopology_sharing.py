"""People, other tools and the controller write to one NetworkTopology: nobody loses anything.

What people wrote is compared as text. Left out: what is computed (test_networktopology_costs.py).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from controllers.networktopology.weights import FIELD_MANAGER
from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.costs import REGION_COSTS, ZONE_COSTS, Costs, names, table, user_defined
from tests.support.topologies import weight_set

pytestmark = pytest.mark.usefixtures("networktopology_controller")

BANDWIDTHS: dict[str, Any] = {
    "us-west-1>us-east-1": {"networkCost": 20, "bandwidthCapacity": "1Gi", "bandwidthAllocated": "250M"},
    "us-east-1>us-west-1": {"networkCost": 22, "bandwidthCapacity": 10_000_000_000},
}
MINE = weight_set("Nightly", zones={"Z1>Z2": 77})


def text_of(topology: dict[str, Any], *wanted: str) -> list[str]:
    """Weight sets of these names as text, in the object's order."""
    return [json.dumps(weights) for weights in topology["spec"]["weights"] if weights["name"] in wanted]


def server_side(costs: Costs, *weights: dict[str, Any]) -> None:
    """``kubectl apply --server-side`` without taking anything over."""
    costs.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(costs.manifest(*weights)))


def test_what_people_wrote_stays_byte_for_byte_and_in_place(costs: Costs) -> None:
    given = (weight_set("Nightly-0"), user_defined(BANDWIDTHS, ZONE_COSTS), MINE)
    document = json.loads(costs.kubectl("create", "-f", "-", "-o", "json", input=json.dumps(costs.manifest(*given))))
    costs.publish(n1_n3=4)
    topology = costs.wait_names("Nightly-0", "UserDefined", "Nightly", "Dijkstra", "NetperfCosts")
    people = ("Nightly-0", "UserDefined", "Nightly")
    assert text_of(topology, *people) == text_of(document, *people)
    costs.kubectl("delete", "configmap", "netperf")
    topology = costs.wait_names("Nightly-0", "UserDefined", "Nightly", "Dijkstra")
    assert text_of(topology, *people) == text_of(document, *people)


def test_server_side_apply_of_the_original_leaves_the_computed_sets(costs: Costs) -> None:
    given = (user_defined(REGION_COSTS, ZONE_COSTS), MINE)
    server_side(costs, *given)
    costs.publish(n1_n3=4)
    before = costs.wait_names("UserDefined", "Nightly", "Dijkstra", "NetperfCosts")
    server_side(costs, *given)
    after = costs.get()
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert after["spec"] == before["spec"]


def test_a_change_by_server_side_apply_is_taken_in(costs: Costs) -> None:
    server_side(costs, user_defined(zones={"Z1>Z2": 5}), MINE)
    costs.wait_zones("Dijkstra", {"Z1>Z2": 5})
    server_side(costs, user_defined(zones={"Z1>Z2": 6}))
    topology = costs.wait_zones("Dijkstra", {"Z1>Z2": 6})
    assert names(topology) == ["UserDefined", "Dijkstra"]


def test_client_side_apply_of_the_original_is_repaired(costs: Costs) -> None:
    # Client-side apply replaces the whole list; what it takes away comes back at once.
    costs.publish(n1_n3=4)
    costs.create(user_defined(REGION_COSTS), MINE)
    before = costs.wait_names("UserDefined", "Nightly", "Dijkstra", "NetperfCosts")
    costs.create(user_defined(REGION_COSTS), MINE)
    after = costs.wait_names("UserDefined", "Nightly", "Dijkstra", "NetperfCosts")
    assert after["spec"] == before["spec"]


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param([{"op": "remove", "path": "/spec/weights/1"}], id="removed"),
        pytest.param([{"op": "replace", "path": "/spec/weights/1/topologyList", "value": []}], id="emptied"),
    ],
)
def test_a_computed_set_that_somebody_changes_is_restored(costs: Costs, patch: list[dict[str, Any]]) -> None:
    costs.create(user_defined(REGION_COSTS, ZONE_COSTS))
    before = costs.wait_names("UserDefined", "Dijkstra")
    costs.kubectl("patch", "nt", "net", "--type=json", "-p", json.dumps(patch))
    after = costs.wait(lambda found: found["spec"] == before["spec"], what="the computed set is back")
    assert after["metadata"]["generation"] > before["metadata"]["generation"]


def test_a_set_of_a_computed_name_that_people_wrote_stays_while_there_is_no_better(costs: Costs) -> None:
    theirs = weight_set("NetperfCosts", zones={"Z1>Z2": 99})
    costs.create(user_defined(REGION_COSTS), theirs)
    topology = costs.wait_names("UserDefined", "NetperfCosts", "Dijkstra")
    assert table(topology, "NetperfCosts") == {"Z1>Z2": 99}
    costs.publish(n1_n3=4)
    costs.wait_zones("NetperfCosts", {"Z1>Z2": 4})


def test_only_the_computed_sets_are_owned(costs: Costs) -> None:
    server_side(costs, user_defined(REGION_COSTS))
    costs.wait_names("UserDefined", "Dijkstra")
    raw = costs.kubectl.get("nt", "net", "--show-managed-fields")
    (ours,) = [
        entry
        for entry in raw["metadata"]["managedFields"]
        if entry["manager"] == FIELD_MANAGER and "subresource" not in entry
    ]
    assert ours["operation"] == "Apply"
    assert list(ours["fieldsV1"]) == ["f:spec"]
    assert list(ours["fieldsV1"]["f:spec"]) == ["f:weights"]
    assert list(ours["fieldsV1"]["f:spec"]["f:weights"]) == ['k:{"name":"Dijkstra"}']


def test_our_own_writes_cause_no_further_writes(costs: Costs, networktopology_controller: ControllerProcess) -> None:
    costs.publish(n1_n3=4)
    costs.create(user_defined(REGION_COSTS))
    before = costs.wait_settled("UserDefined", "Dijkstra", "NetperfCosts")
    # An annotation starts a pass of the same kind as an echo of our own write; it must end without a write.
    passes = networktopology_controller.metric("berth_networktopology_reconcile_seconds_count")
    annotated = costs.kubectl("annotate", "nt", "net", "touched=yes", "--output=jsonpath={.metadata.resourceVersion}")
    eventually(
        lambda: networktopology_controller.metric("berth_networktopology_reconcile_seconds_count"),
        accept=lambda count: count > passes,
        what="a pass after the annotation",
    )
    after = costs.get()
    assert after["metadata"]["resourceVersion"] == annotated
    assert after["spec"] == before["spec"]
    assert after["status"] == before["status"]


def test_a_configmap_that_is_written_again_unchanged_causes_no_write(
    costs: Costs, networktopology_controller: ControllerProcess
) -> None:
    costs.publish(n1_n3=4)
    costs.create()
    before = costs.wait_settled("Dijkstra", "NetperfCosts")
    costs.kubectl("annotate", "configmap", "netperf", "round=2")
    costs.publish("other", n1_n3=1)
    # The ConfigMap's watch has delivered both changes once a later, real one has had its effect elsewhere.
    costs.kubectl("create", "-f", "-", input=json.dumps(renamed(costs.manifest(configmap="other"), "second")))
    eventually(lambda: costs.kubectl.get("nt", "second"), accept=lambda found: "status" in found, what="second status")
    assert costs.version() == before["metadata"]["resourceVersion"]
    assert networktopology_controller.running


def renamed(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    """The same object under another name."""
    return {**manifest, "metadata": {**manifest["metadata"], "name": name}}


def test_two_objects_share_one_configmap(costs: Costs) -> None:
    costs.publish(n1_n3=4)
    costs.create()
    costs.kubectl("create", "-f", "-", input=json.dumps(renamed(costs.manifest(MINE), "second")))
    costs.wait_zones("Dijkstra", {"Z1>Z2": 4})
    costs.kubectl("delete", "nt", "net")
    costs.publish(n1_n3=8)
    eventually(
        lambda: table(costs.kubectl.get("nt", "second"), "Dijkstra"),
        accept=lambda found: found == {"Z1>Z2": 8},
        what="the other object still follows the ConfigMap",
    )


def test_a_write_that_the_api_server_refuses_is_said(costs: Costs, eight_nodes: LocalCluster) -> None:
    # A policy of the cluster stands for whatever an administrator may forbid.
    name = costs.kubectl.namespace
    eight_nodes.kubectl("label", "namespace", name, f"policy={name}")
    rule = {"expression": "!object.spec.weights.exists(w, w.name == 'Dijkstra')", "message": "no computed costs here"}
    kind = {
        "apiGroups": ["networktopology.diktyo.x-k8s.io"],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": ["networktopologies"],
    }
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [kind]}, "validations": [rule]},
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"policy": name}}},
        },
    }
    costs.kubectl.apply(policy, binding)
    costs.create(configmap="")
    probe = [{"op": "add", "path": "/spec/weights/-", "value": {"name": "Dijkstra", "topologyList": []}}]
    eventually(
        lambda: costs.kubectl(
            "patch", "nt", "net", "--type=json", "-p", json.dumps(probe), "--dry-run=server", check=False
        ),
        accept=lambda answer: not answer,
        what="the policy is in force",
    )
    costs.create(user_defined(REGION_COSTS), configmap="")
    computed = costs.wait_reason("WeightsComputed", "WriteRefused")
    assert computed["status"] == "False"
    assert "no computed costs here" in computed["message"]
    assert ("Warning", "WeightsRefused") in eventually(
        costs.events, accept=lambda found: ("Warning", "WeightsRefused") in found, what="Event"
    )
