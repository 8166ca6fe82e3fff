"""How the kinds are served: status subresource, columns, category, explain, ownership of weight sets."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from berth.api.appgroup import MAX_PODS_SCHEDULED, AppGroup, AppGroupStatus
from berth.api.conditions import ConditionUpdate, apply
from berth.api.networktopology import NetworkTopologyStatus
from hack.harness.cluster import Kubectl
from tests.support.kinds import app_group, network_topology, ref, weight_set, workload

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def write_status(kubectl: Kubectl, kind: str, name: str, status: dict[str, Any]) -> None:
    kubectl("patch", kind, name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))


def table(kubectl: Kubectl, *arguments: str) -> dict[str, str]:
    """Heading -> cell of a one-line ``kubectl get``."""
    head, line = kubectl("get", *arguments).splitlines()
    # Columns are separated by three spaces, cells of ours hold none.
    return dict(zip(head.split(), line.split(), strict=True))


def group_status() -> AppGroupStatus:
    updates = [ConditionUpdate("Ordered", True, "Sorted", ""), ConditionUpdate("Placed", False, "PodsPending", "")]
    conditions = apply((), updates, observed_generation=1, now=NOW)
    return AppGroupStatus.model_validate(
        {
            "observedGeneration": 1,
            "runningWorkloads": 1,
            "topologyCalculationTime": NOW,
            "algorithm": "KahnSort",
            "topologyOrder": [{"workload": ref("a"), "index": 1}, {"workload": ref("b"), "index": 2}],
            "orderSummary": "a,b",
            "podsScheduled": [{"workload": ref("a"), "pod": "a-1", "replicaId": "u", "hostname": "n"}],
            "podsScheduledTotal": 1,
            "conditions": conditions,
        }
    )


def test_appgroup_columns(kubectl: Kubectl) -> None:
    kubectl.apply(app_group(workload("a", "b"), workload("b"), numMembers=3))
    write_status(kubectl, "ag", "shop", group_status().to_api())
    narrow = table(kubectl, "ag")
    assert narrow.pop("AGE")
    assert narrow == {"NAME": "shop", "MEMBERS": "3", "RUNNING": "1", "ALGORITHM": "KahnSort", "ORDER": "a,b"}
    wide = table(kubectl, "ag", "-o", "wide")
    assert (wide["ORDERED"], wide["PLACED"]) == ("Sorted", "PodsPending")


def test_networktopology_columns(kubectl: Kubectl) -> None:
    kubectl.apply(network_topology(weight_set(a={"b": 1})))
    reasons = {"SourceAvailable": "Read", "WeightsComputed": "Fresh", "Complete": "PairsMissing"}
    updates = [ConditionUpdate(name, True, reason, "") for name, reason in reasons.items()]
    conditions = apply((), updates, observed_generation=1, now=NOW)
    status = NetworkTopologyStatus(
        node_count=24, regions=2, zones=4, weight_sets="UserDefined,Dijkstra", data_time=NOW, conditions=conditions
    )
    write_status(kubectl, "nt", "net", status.to_api())
    narrow = table(kubectl, "nt")
    assert narrow.pop("AGE")
    assert narrow.pop("DATA-AGE") not in ("", "<none>", "<invalid>", "<unknown>")
    assert narrow == {"NAME": "net", "WEIGHT-SETS": "UserDefined,Dijkstra", "NODES": "24", "REGIONS": "2", "ZONES": "4"}
    wide = table(kubectl, "nt", "-o", "wide")
    assert (wide["SOURCE"], wide["COMPUTED"], wide["COMPLETE"]) == ("Read", "Fresh", "PairsMissing")


def test_a_new_object_shows_what_is_known_so_far(kubectl: Kubectl) -> None:
    kubectl.apply(app_group(workload("a")))
    head, line = kubectl("get", "ag").splitlines()
    assert head.split() == ["NAME", "MEMBERS", "RUNNING", "ALGORITHM", "ORDER", "AGE"]
    assert line.split()[:2] == ["shop", "1"]


def test_status_is_a_subresource(kubectl: Kubectl) -> None:
    raw = app_group(workload("a"))
    kubectl.apply({**raw, "status": {"runningWorkloads": 7}})
    assert "status" not in kubectl.get("ag", "shop")
    write_status(kubectl, "ag", "shop", {"runningWorkloads": 7})
    kubectl.apply(raw | {"spec": {**raw["spec"], "numMembers": 2}})
    stored = AppGroup.parse(kubectl.get("ag", "shop"))
    assert (stored.status.running_workloads, stored.spec.num_members) == (7, 2)
    # The generation counts changes of the spec only: observedGeneration depends on it.
    assert stored.metadata.generation == 2


def test_a_status_reads_back_as_written(kubectl: Kubectl) -> None:
    kubectl.apply(app_group(workload("a", "b"), workload("b"), numMembers=3))
    write_status(kubectl, "ag", "shop", group_status().to_api())
    assert AppGroup.parse(kubectl.get("ag", "shop")).status == group_status()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"runningWorkloads": -1}, ["status.runningWorkloads", "greater than or equal to 0"]),
        (
            {
                "podsScheduled": [{"workload": ref("a"), "pod": "p", "replicaId": "u", "hostname": "n"}]
                * (MAX_PODS_SCHEDULED + 1)
            },
            ["status.podsScheduled", "at most 500"],
        ),
        ({"conditions": [{"type": "Ordered", "status": "Yes"}]}, ["status.conditions[0].status", '"True", "False"']),
    ],
    ids=["negative-count", "too-many-pods", "condition-neither-true-nor-false"],
)
def test_a_wrong_status_is_refused(status: dict[str, Any], words: list[str], kubectl: Kubectl) -> None:
    kubectl.apply(app_group(workload("a")))
    patch = json.dumps({"status": status})
    answer = kubectl.refused("patch", "ag", "shop", "--subresource=status", "--type=merge", "-p", patch)
    assert [word for word in words if word not in answer] == [], answer


def test_both_kinds_are_in_the_category(kubectl: Kubectl) -> None:
    kubectl.apply(app_group(workload("a")), network_topology())
    # Kinds without a namespace are in it too, and other tests may have made some.
    assert set(kubectl("get", "berth", "-o", "name").split()) >= {
        "appgroup.appgroup.diktyo.x-k8s.io/shop",
        "networktopology.networktopology.diktyo.x-k8s.io/net",
    }


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("ag.spec.workloads.dependencies.minBandwidth", "Least bandwidth that the edge needs"),
        ("ag.status.topologyOrder", "scheduling order"),
        ("nt.spec.weights.topologyList.originList.costList.networkCost", "lower is closer"),
        ("nt.status.dataTime", "newest measurement"),
    ],
)
def test_explain_describes_fields(path: str, words: str, kubectl: Kubectl) -> None:
    assert words in " ".join(kubectl("explain", path).split())


def test_a_computed_weight_set_survives_the_users_next_apply(kubectl: Kubectl) -> None:
    def apply(manager: str, *sets: dict[str, Any], **spec: Any) -> None:
        document = network_topology(*sets, **spec)
        kubectl("apply", "--server-side", f"--field-manager={manager}", "-f", "-", input=json.dumps(document))

    apply("person", weight_set("UserDefined", a={"b": 1}))
    computed = network_topology(weight_set("Dijkstra", a={"b": 4}))
    apply("controller", *computed["spec"]["weights"])
    apply("person", weight_set("UserDefined", a={"b": 2}))
    stored = {item["name"]: item for item in kubectl.get("nt", "net")["spec"]["weights"]}
    assert stored == {
        "UserDefined": weight_set("UserDefined", a={"b": 2}),
        "Dijkstra": weight_set("Dijkstra", a={"b": 4}),
    }
