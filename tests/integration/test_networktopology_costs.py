"""The networktopology controller on a real API server: from stated costs and ConfigMaps to weights and conditions.

The nodes matter, so the tests have a control plane of their own with the eight nodes of the conformance example. One
controller process serves all tests, each in its own namespace. Left out: what happens when the controller or the API
server dies, and what people and other tools do to the object (test_networktopology_recovery.py and
test_networktopology_sharing.py).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from berth.api.labels import LABEL_REGION, LABEL_SEGMENT, LABEL_ZONE
from hack.harness.cluster import REPOSITORY, eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.costs import (
    REGION_COSTS,
    ZONE_COSTS,
    Costs,
    condition,
    create_nodes,
    latency_key,
    names,
    settled,
    table,
    user_defined,
)

pytestmark = pytest.mark.usefixtures("networktopology_controller")

UPSTREAM = sorted((REPOSITORY / "tests" / "data" / "upstream").glob("networktopology-*.yaml"))


def test_stated_costs_become_path_costs(costs: Costs) -> None:
    costs.create(user_defined(REGION_COSTS, ZONE_COSTS), configmap="")
    topology = costs.wait_names("UserDefined", "Dijkstra")
    assert table(topology, "Dijkstra") == ZONE_COSTS
    assert table(topology, "Dijkstra", LABEL_REGION) == REGION_COSTS
    status = topology["status"]
    assert (status["nodeCount"], status["regions"], status["zones"]) == (8, 2, 4)
    assert status["weightSets"] == "UserDefined, Dijkstra"
    assert status["weightCalculationTime"]
    assert "dataTime" not in status
    assert [(item["type"], item["status"], item["reason"]) for item in status["conditions"]] == [
        ("SourceAvailable", "True", "UserDefined"),
        ("WeightsComputed", "True", "Computed"),
        ("Complete", "True", "AllPairsKnown"),
    ]


def test_costs_that_an_object_has_no_room_for_are_left_out_and_told(costs: Costs) -> None:
    """200 zones that all reach each other by way of one: 40,000 costs, which the API server would refuse."""
    spokes = {pair: 5 for number in range(200) for pair in (f"hub>zone-{number:03}", f"zone-{number:03}>hub")}
    costs.create(user_defined(REGION_COSTS, {**ZONE_COSTS, **spokes}), configmap="")
    topology = costs.wait_settled("UserDefined", "Dijkstra")
    assert table(topology, "Dijkstra", LABEL_REGION) == REGION_COSTS
    assert table(topology, "Dijkstra") == {}
    assert condition(topology, "Complete")["reason"] == "NoRoom"
    assert "The object has no room for costs of zones;" in condition(topology, "Complete")["message"]
    assert condition(topology, "WeightsComputed")["status"] == "True"


def test_measurements_inside_a_zone_become_costs_of_its_segments(costs: Costs, eight_nodes: LocalCluster) -> None:
    racks = {"n-1": "rack-1", "n-2": "rack-2"}
    for node, rack in racks.items():
        eight_nodes.kubectl("label", "node", node, f"{LABEL_SEGMENT}={rack}")
    try:
        costs.publish(n1_n3=4, n1_n2=6, n2_n1=5)
        costs.create()
        topology = costs.wait_settled("Dijkstra", "NetperfCosts")
        for name in ("Dijkstra", "NetperfCosts"):
            assert table(topology, name, LABEL_SEGMENT) == {"rack-1>rack-2": 6, "rack-2>rack-1": 5}
            assert table(topology, name) == {"Z1>Z2": 4}
        assert topology["status"]["segments"] == 2
    finally:
        for node in racks:
            eight_nodes.kubectl("label", "node", node, f"{LABEL_SEGMENT}-")


def test_a_configmap_becomes_both_sets(costs: Costs) -> None:
    costs.publish(n1_n3=4, n2_n4=9, n3_n1=3, n1_n5=30, n5_n1=28, n5_n7=8, n8_n6=0)
    costs.create(user_defined(REGION_COSTS))
    topology = costs.wait_names("UserDefined", "Dijkstra", "NetperfCosts")
    direct = {"Z1>Z2": 7, "Z2>Z1": 3, "Z3>Z4": 8, "Z4>Z3": 1}
    assert table(topology, "Dijkstra") == table(topology, "NetperfCosts") == direct
    assert table(topology, "Dijkstra", LABEL_REGION) == {"us-east-1>us-west-1": 28, "us-west-1>us-east-1": 30}
    assert topology["status"]["dataTime"]
    assert condition(topology, "SourceAvailable")["reason"] == "MeasurementsRead"
    assert condition(topology, "Complete")["status"] == "True"


def test_a_pair_that_was_not_measured_never_costs_0(costs: Costs) -> None:
    costs.publish(n1_n3=4)
    costs.create()
    topology = costs.wait_names("Dijkstra", "NetperfCosts")
    for name in ("Dijkstra", "NetperfCosts"):
        assert table(topology, name) == {"Z1>Z2": 4}
        assert table(topology, name, LABEL_REGION) == {}
    complete = condition(topology, "Complete")
    assert (complete["status"], complete["reason"]) == ("False", "MissingCosts")
    assert "No path between regions: us-east-1 and us-west-1;" in complete["message"]
    assert "No path between zones: Z2 to Z1, Z3 and Z4;" in complete["message"]


def test_a_missing_pair_is_filled_by_a_path(costs: Costs) -> None:
    costs.publish(n1_n5=10, n5_n3=6, n3_n1=2)
    costs.create()
    topology = costs.wait_names("Dijkstra", "NetperfCosts")
    assert table(topology, "Dijkstra") == {"Z1>Z2": 16, "Z2>Z1": 2}
    assert table(topology, "NetperfCosts") == {"Z2>Z1": 2}


def test_fractions_of_a_millisecond_are_told_apart(costs: Costs) -> None:
    costs.publish(n1_n3="0.85", n3_n1="0.31", n5_n7="1.15", n7_n5="30")
    costs.create()
    costs.wait_zones("Dijkstra", {"Z1>Z2": 9, "Z2>Z1": 4, "Z3>Z4": 12, "Z4>Z3": 300})


@pytest.mark.parametrize("value", ["fast", "12,5", "-3", ""], ids=["word", "decimal comma", "negative", "empty"])
def test_a_malformed_value_is_named(costs: Costs, value: str) -> None:
    costs.publish(n1_n3=value, n3_n1=4)
    costs.create()
    source = costs.wait_reason("SourceAvailable", "SomeMeasurementsUnusable")
    assert f"{latency_key('n-1', 'n-3')} is {value!r}" in source["message"]
    assert table(costs.get(), "Dijkstra") == {"Z2>Z1": 4}
    # That of the weights comes before it.
    told = ("Warning", "SomeMeasurementsUnusable")
    eventually(costs.events, accept=lambda found: told in found, what="Event")


def test_a_key_of_an_unknown_node_is_named(costs: Costs) -> None:
    costs.publish(n1_n3=4, n99_n1=4)
    costs.create()
    source = costs.wait_reason("SourceAvailable", "SomeMeasurementsUnusable")
    assert (
        f"no such node exists (remove the key or correct the name): {latency_key('n-99', 'n-1')}" in source["message"]
    )


def test_a_changed_configmap_gives_new_weights(costs: Costs) -> None:
    costs.publish(n1_n3=4)
    costs.create()
    costs.wait_zones("Dijkstra", {"Z1>Z2": 4})
    costs.publish(n1_n3=6, n3_n1=7)
    topology = costs.wait_zones("Dijkstra", {"Z1>Z2": 6, "Z2>Z1": 7})
    assert table(topology, "NetperfCosts") == {"Z1>Z2": 6, "Z2>Z1": 7}


def test_a_configmap_that_goes_and_comes(costs: Costs) -> None:
    costs.publish(n1_n3=4)
    costs.create(user_defined(REGION_COSTS, ZONE_COSTS))
    costs.wait_names("UserDefined", "Dijkstra", "NetperfCosts")
    costs.kubectl("delete", "configmap", "netperf")
    topology = costs.wait_names("UserDefined", "Dijkstra")
    assert table(topology, "Dijkstra") == ZONE_COSTS
    source = condition(topology, "SourceAvailable")
    assert (source["status"], source["reason"]) == ("False", "ConfigMapNotFound")
    assert "until then costs come from UserDefined" in source["message"]
    assert "dataTime" not in topology["status"]
    assert ("Warning", "ConfigMapNotFound") in eventually(
        costs.events, accept=lambda found: ("Warning", "ConfigMapNotFound") in found, what="Event"
    )
    costs.publish(n1_n3=9)
    costs.wait_zones("Dijkstra", {"Z1>Z2": 9})


def test_without_any_source_the_computed_sets_go(costs: Costs) -> None:
    costs.publish(n1_n3=4)
    costs.create()
    costs.wait_names("Dijkstra", "NetperfCosts")
    costs.kubectl("delete", "configmap", "netperf")
    topology = costs.wait_names()
    assert condition(topology, "WeightsComputed")["reason"] == "NoSource"
    assert "weightCalculationTime" not in topology["status"]
    costs.publish(n1_n3=4)
    costs.wait_names("Dijkstra", "NetperfCosts")


def test_another_configmap_is_named(costs: Costs) -> None:
    costs.publish(n1_n3=4)
    costs.publish("better", n1_n3=2)
    costs.create()
    costs.wait_zones("Dijkstra", {"Z1>Z2": 4})
    costs.kubectl("patch", "nt", "net", "--type=merge", "-p", '{"spec": {"configmapName": "better"}}')
    costs.wait_zones("Dijkstra", {"Z1>Z2": 2})
    costs.publish("better", n1_n3=3)
    costs.wait_zones("Dijkstra", {"Z1>Z2": 3})


def test_a_node_that_moves_gives_new_weights(costs: Costs, eight_nodes: LocalCluster) -> None:
    costs.publish(n1_n4=4)
    costs.create()
    costs.wait_zones("Dijkstra", {"Z1>Z2": 4})
    try:
        eight_nodes.kubectl("label", "node", "n-4", "--overwrite", f"{LABEL_ZONE}=Z9")
        topology = costs.wait_zones("Dijkstra", {"Z1>Z9": 4})
        assert topology["status"]["zones"] == 5
        eight_nodes.kubectl("label", "node", "n-4", f"{LABEL_ZONE}-")
        topology = costs.wait(lambda found: "Dijkstra" not in names(found), what="no cost without the label")
        assert "Nodes without a region or zone label: n-4;" in condition(topology, "Complete")["message"]
    finally:
        eight_nodes.kubectl("label", "node", "n-4", "--overwrite", f"{LABEL_ZONE}=Z2")
    costs.wait_zones("Dijkstra", {"Z1>Z2": 4})


def test_a_node_that_comes_and_goes_is_counted(costs: Costs, eight_nodes: LocalCluster) -> None:
    costs.create(user_defined(REGION_COSTS, ZONE_COSTS), configmap="")
    costs.wait_names("UserDefined", "Dijkstra")
    create_nodes(eight_nodes, {"n-new": ("us-west-1", "Z5")})
    try:
        topology = costs.wait(lambda found: found["status"]["nodeCount"] == 9, what="nine nodes")
        assert "Z1 and Z5, Z2 and Z5" in condition(topology, "Complete")["message"]
    finally:
        eight_nodes.kubectl("delete", "node", "n-new")
    topology = costs.wait(lambda found: found["status"]["nodeCount"] == 8, what="eight nodes")
    assert condition(topology, "Complete")["status"] == "True"


@pytest.mark.parametrize("manifest", UPSTREAM, ids=lambda path: path.stem)
def test_upstream_manifests_work_unchanged(costs: Costs, manifest: Path) -> None:
    before = json.loads(costs.kubectl("create", "-f", str(manifest), "-o", "json"))
    name = before["metadata"]["name"]
    topology = eventually(lambda: costs.kubectl.get("nt", name), accept=settled, what="status")
    given = [item["name"] for item in before["spec"]["weights"]]
    for weights in before["spec"]["weights"]:
        assert weights in topology["spec"]["weights"]
    assert [item for item in names(topology) if item in given] == given


def test_an_object_without_a_spec_states_nothing(costs: Costs) -> None:
    costs.kubectl("create", "-f", "-", input=json.dumps({**costs.manifest(), "spec": None}))
    topology = eventually(lambda: costs.kubectl.get("nt", "net"), accept=settled, what="status")
    assert condition(topology, "SourceAvailable")["reason"] == "NoSource"
    assert "spec" not in topology


def test_kubectl_get_reads_well(costs: Costs) -> None:
    costs.publish(n1_n3=4)
    costs.create(user_defined(REGION_COSTS))
    costs.wait_names("UserDefined", "Dijkstra", "NetperfCosts")
    header, row = costs.kubectl("get", "nt").splitlines()
    assert header.split() == ["NAME", "WEIGHT-SETS", "NODES", "REGIONS", "ZONES", "DATA-AGE", "AGE"]
    assert row.startswith("net    UserDefined, Dijkstra, NetperfCosts   8       2         4       ")
    wide = costs.kubectl("get", "nt", "-o", "wide")
    assert "MeasurementsRead   Computed   MissingCosts" in wide


def test_metrics_name_what_is_missing(costs: Costs, networktopology_controller: ControllerProcess) -> None:
    costs.publish(n1_n3=4, n3_n1="x", n99_n1=1)
    costs.create()
    costs.wait_names("Dijkstra", "NetperfCosts")
    labels = {"namespace": costs.kubectl.namespace}
    assert networktopology_controller.metric("berth_networktopology_measurements", **labels) == 1
    assert networktopology_controller.metric("berth_networktopology_unusable_measurements", **labels) == 2
    assert networktopology_controller.metric("berth_networktopology_missing_pairs", **labels, level="zone") == 3
    costs.kubectl("delete", "nt", "net")
    eventually(
        lambda: costs.kubectl.namespace not in networktopology_controller.get("/metrics")[1],
        what="series of a deleted object are gone",
    )
