"""What a plan starts from: which of several sources wins, what is counted and left alone, what is forecast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from berth.kube.custom_object import decoded
from berth.kube.objects import Pod
from berth.scheduling.cache.selectors import Selector
from berth.scheduling.simulation import inputs as inputs_module
from berth.scheduling.simulation.manifests import PROGRESS_EVERY
from tests.support import builders, plans


def test_the_later_of_two_equal_objects_counts_and_is_noted() -> None:
    inputs, problems = plans.inputs_of(
        plans.workload("Deployment", "web", spec={"replicas": 4}), plans.workload("Deployment", "web")
    )
    assert problems == []
    assert [pod.metadata.name for pod in inputs.of("Pod")] == ["web-1"]
    [note] = inputs.notes
    assert note.startswith("Deployment default/web is stated twice: m.yaml:")


@pytest.mark.parametrize("live", [False, True], ids=["of manifests", "of the cluster"])
def test_two_pods_with_one_uid_are_a_problem(live: bool) -> None:
    """As in the manifest of a pod that was copied and given another name: one would take the other's place."""
    first, second = ({**plans.pod(name), "metadata": {"name": name, "uid": "u"}} for name in ("first", "second"))
    there = builders.pod("first", on="n1")
    there.metadata.uid = "u"
    manifests, cluster = ([second], {"Pod": [there]}) if live else ([first, second], {})
    _, [problem] = plans.inputs_of(*manifests, live=cluster)
    assert "Pod default/second: metadata.uid: 'u' is that of Pod default/first as well; leave it out" in str(problem)


def test_the_namespace_option_fills_in_and_does_not_overwrite() -> None:
    inputs, _ = plans.inputs_of(plans.pod("a"), plans.pod("b", namespace="own"), plans.node("n"), namespace="mine")
    assert [pod.key for pod in inputs.of("Pod")] == ["mine/a", "own/b"]
    assert [node.metadata.namespace for node in inputs.of("Node")] == [""]


def test_a_manifest_wins_over_the_live_object() -> None:
    inputs, _ = plans.inputs_of(plans.node("n1", cpu="8"), live={"Node": [builders.node("n1", cpu="2")]})
    [node] = inputs.of("Node")
    assert node.status.allocatable["cpu"] == "8"


def test_kinds_that_a_plan_does_not_read_are_counted() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    inputs, problems = plans.inputs_of(secret, {**secret, "metadata": {"name": "b"}})
    assert problems == []
    assert inputs.skipped == {"Secret": 2}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({"selector": None, "trafficDistribution": None}, "", id="nulls"),
        pytest.param({"type": "ExternalName", "externalName": "db.example"}, "", id="external-name"),
        pytest.param({"selector": {"app": 1}}, "selector", id="not-text"),
    ],
)
def test_services_are_read(spec: dict[str, Any], problem: str) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec}
    inputs, problems = plans.inputs_of(service)
    assert [problem in str(found) for found in problems] == ([True] if problem else [])
    assert [item.metadata.name for item in inputs.of("Service")] == ([] if problem else ["a"])
    assert inputs.skipped == {}


def test_new_appgroups_get_the_order_that_their_controller_would_write() -> None:
    inputs, problems = plans.inputs_of(plans.appgroup("shop", {"back": [], "front": ["back"]}))
    assert problems == []
    [group] = inputs.of("AppGroup")
    order = {entry["workload"]["selector"]: entry["index"] for entry in decoded(group.status)["topologyOrder"]}
    assert order == {"front": 1, "back": 2}


def test_new_topologies_get_their_computed_weights() -> None:
    zones = [plans.node(f"n-{z}", zone=z, region="r") for z in "abc"]
    inputs, problems = plans.inputs_of(*zones, plans.topology({("a", "b"): 2, ("b", "c"): 3}))
    assert problems == []
    [topology] = inputs.of("NetworkTopology")
    sets = {item["name"]: item for item in decoded(topology.spec)["weights"]}
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
    assert [item["name"] for item in decoded(topology.spec)["weights"]] == ["UserDefined", "Dijkstra", "NetperfCosts"]


def _calls(monkeypatch: pytest.MonkeyPatch, target: Any, name: str, work: Callable[[], object]) -> int:
    """How often a function, or a property's getter, is called during some work."""
    original, count = vars(target)[name], 0
    whole: Any = original.fget if isinstance(original, property) else original

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        return whole(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(target, name, property(counted) if isinstance(original, property) else counted)
        work()
    return count


def test_twice_the_pods_are_twice_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def reading(pods: int) -> int:
        manifests = [plans.pod(f"p{number}") for number in range(pods)]
        return _calls(monkeypatch, Pod, "key", lambda: plans.inputs_of(*manifests))

    assert 0 < reading(100) <= 2.1 * reading(50)


def test_equal_pods_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    manifests = [plans.pod(f"p{number}", nodeName=f"n{number}") for number in range(20)]
    assert _calls(monkeypatch, inputs_module, "check_pod", lambda: plans.inputs_of(*manifests)) == 1


def test_every_pod_that_is_wrong_is_told_even_if_equal() -> None:
    _, problems = plans.inputs_of(plans.pod("a", cpu="much"), plans.pod("b"), plans.pod("c", cpu="much"))
    assert [problem.what.partition(":")[0] for problem in problems] == ["Pod default/a", "Pod default/c"]


def test_workloads_look_only_at_live_pods_that_carry_their_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    def matching(workloads: int) -> int:
        names = [f"web{number}" for number in range(workloads)]
        live = [builders.pod(f"{name}-x", labels={"app": name}, on="n") for name in names]
        manifests = [plans.workload("Deployment", name) for name in names]
        return _calls(monkeypatch, Selector, "matches", lambda: plans.inputs_of(*manifests, live={"Pod": live}))

    assert 0 < matching(40) <= 2.1 * matching(20)


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ({"matchLabels": {"app": "web"}}, 2),
        ({"matchLabels": {"app": "web", "tier": "back"}}, 1),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "other"]}]}, 2),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, 2),
    ],
    ids=["label", "labels", "in", "exists"],
)
def test_live_pods_that_a_selector_finds_count_as_replicas(selector: dict[str, Any], found: int) -> None:
    live = [
        builders.pod("a", labels={"app": "web"}, on="n"),
        builders.pod("b", labels={"app": "web", "tier": "back"}, on="n"),
        builders.pod("c", labels={"app": "web"}, on="n", namespace="elsewhere"),
    ]
    manifest = plans.workload("Deployment", "web", spec={"replicas": 3, "selector": selector})
    manifest["spec"]["template"]["metadata"]["labels"] = {"app": "web", "tier": "back"}
    inputs, problems = plans.inputs_of(manifest, live={"Pod": live})
    assert problems == []
    assert len(inputs.of("Pod")) == len(live) + 3 - found


def test_assembling_says_how_far_it_is() -> None:
    said: list[int] = []
    plans.inputs_of(*(plans.pod(f"p{number}") for number in range(2 * PROGRESS_EVERY + 1)), progress=said.append)
    assert said == [0, PROGRESS_EVERY, 2 * PROGRESS_EVERY]
