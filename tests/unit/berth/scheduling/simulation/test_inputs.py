"""What a plan starts from: which of several sources wins, what is counted and left alone, what is forecast."""

from __future__ import annotations

from tests.support import builders, plans


def test_the_later_of_two_equal_objects_counts_and_is_noted() -> None:
    inputs, problems = plans.inputs_of(
        plans.workload("Deployment", "web", spec={"replicas": 4}), plans.workload("Deployment", "web")
    )
    assert problems == []
    assert [pod.metadata.name for pod in inputs.of("Pod")] == ["web-1"]
    [note] = inputs.notes
    assert note.startswith("Deployment default/web is stated twice: m.yaml:")


def test_the_namespace_option_fills_in_and_does_not_overwrite() -> None:
    inputs, _ = plans.inputs_of(plans.pod("a"), plans.pod("b", namespace="own"), plans.node("n"), namespace="mine")
    assert [pod.key for pod in inputs.of("Pod")] == ["mine/a", "own/b"]
    assert [node.metadata.namespace for node in inputs.of("Node")] == [""]


def test_a_manifest_wins_over_the_live_object() -> None:
    inputs, _ = plans.inputs_of(plans.node("n1", cpu="8"), live={"Node": [builders.node("n1", cpu="2")]})
    [node] = inputs.of("Node")
    assert node.status.allocatable["cpu"] == "8"


def test_kinds_that_a_plan_does_not_read_are_counted() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}
    inputs, problems = plans.inputs_of(service, {**service, "metadata": {"name": "b"}})
    assert problems == []
    assert inputs.skipped == {"Service": 2}


def test_new_appgroups_get_the_order_that_their_controller_would_write() -> None:
    inputs, problems = plans.inputs_of(plans.appgroup("shop", {"back": [], "front": ["back"]}))
    assert problems == []
    [group] = inputs.of("AppGroup")
    order = {entry["workload"]["selector"]: entry["index"] for entry in group.status["topologyOrder"]}
    assert order == {"front": 1, "back": 2}


def test_new_topologies_get_their_computed_weights() -> None:
    zones = [plans.node(f"n-{z}", zone=z, region="r") for z in "abc"]
    inputs, problems = plans.inputs_of(*zones, plans.topology({("a", "b"): 2, ("b", "c"): 3}))
    assert problems == []
    [topology] = inputs.of("NetworkTopology")
    sets = {item["name"]: item for item in topology.spec["weights"]}
    [level] = sets["Dijkstra"]["topologyList"]
    [from_a] = [row["costList"] for row in level["originList"] if row["origin"] == "a"]
    assert {cost["destination"]: cost["networkCost"] for cost in from_a} == {"b": 2, "c": 5}


def test_measurements_of_a_configmap_count() -> None:
    key = "netperf.p90.latency.milliseconds.origin.{}.destination.{}"
    data = {key.format("n-a", "n-b"): "7", key.format("n-b", "n-a"): "7"}
    configmap = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "perf"}, "data": data}
    manifest = plans.topology({("a", "b"): 2})
    manifest["spec"]["configmapName"] = "perf"
    nodes = [plans.node(f"n-{z}", zone=z, region="r") for z in "ab"]
    inputs, problems = plans.inputs_of(*nodes, configmap, manifest)
    assert problems == []
    [topology] = inputs.of("NetworkTopology")
    assert [item["name"] for item in topology.spec["weights"]] == ["UserDefined", "Dijkstra", "NetperfCosts"]
