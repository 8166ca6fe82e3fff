"""The controller's cache, queue and cycle, fed once. Whole plans: tests/unit/berth/cli/plan."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.labels import LABEL_APPGROUP
from berth.network.groups import GroupKey
from berth.network.routing import Routing
from berth.scheduling.cache.services import WorkloadRouting
from berth.scheduling.configuration import PlacementConfiguration, Profile
from berth.scheduling.cycle import SchedulingCycle
from berth.scheduling.queue_entry import QueueEntry
from berth.scheduling.simulation.simulate import Simulation, simulate
from tests.support import builders, plans

SHOP = plans.appgroup("shop", {"a": ["b"], "b": []})
HOST = "kubernetes.io/hostname"


def simulated(*manifests: dict[str, Any], all_pods: bool = False, **gang: Any) -> Simulation:
    inputs, problems = plans.inputs_of(*manifests)
    assert problems == []
    configuration = PlacementConfiguration(profiles=[Profile.model_validate({"gang": gang})])
    return simulate(inputs, configuration, all_pods=all_pods)


def placed(result: Simulation) -> dict[str, str]:
    return {item.decision.pod.metadata.name: item.decision.node for item in result.placed}


def test_services_route_calls_to_the_pods_of_the_plan() -> None:
    spec = {"selector": {"app": "b"}, "trafficDistribution": "PreferSameNode"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b"}, "spec": spec}
    pods = [plans.pod(name, group="shop", workload=name) for name in "ab"]
    for pod in pods:
        pod["metadata"]["labels"]["app"] = pod["metadata"]["name"]
    table = simulated(plans.node("n1"), SHOP, service, *pods).cache.services
    routings = {name: table.routing(GroupKey("default", "shop"), name) for name in "ab"}
    assert routings == {"a": WorkloadRouting(), "b": WorkloadRouting(Routing.SAME_NODE, "b")}


def test_pods_that_have_a_node_come_first() -> None:
    waiting, bound = plans.pod("a", cpu="3"), plans.pod("z", cpu="3", nodeName="n1")
    result = simulated(plans.node("n1"), waiting, bound)
    assert placed(result) == {}
    assert [(item.pod.metadata.name, item.reason) for item in result.unplaced] == [("a", "FailedScheduling")]


@pytest.mark.parametrize("labels", [None, {}, {"team": "red"}], ids=["unstated", "without labels", "with another"])
def test_namespaces_have_the_label_that_the_api_server_gives_them(labels: dict[str, str] | None) -> None:
    metadata = {"name": "default", "labels": labels}
    stated = [] if labels is None else [{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}]
    term = {
        "topologyKey": HOST,
        "labelSelector": {"matchLabels": {LABEL_APPGROUP: "shop"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
    }
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [plans.pod(name, group="shop", workload=name, affinity=apart) for name in "ab"]
    result = simulated(plans.node("n1"), plans.node("n2"), SHOP, *stated, *pods)
    assert set(placed(result).values()) == {"n1", "n2"}


@pytest.mark.parametrize(
    ("after_wait", "names", "waited"),
    [("PlaceWhatFits", {"a"}, 30.0), ("KeepWaiting", set(), None)],
)
def test_an_incomplete_group_gets_its_second_chance(after_wait: str, names: set[str], waited: float | None) -> None:
    member = plans.pod("a", group="shop", workload="a")
    result = simulated(plans.node("n1"), SHOP, member, waitSeconds=30, afterWait=after_wait)
    assert set(placed(result)) == names
    assert {item.waited for item in result.placed} == ({waited} if waited is not None else set())
    assert result.groups == {GroupKey("default", "shop"): "berth-scheduler"}


def test_a_chain_of_pods_has_no_others_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each must be near the next one, which comes after it: every round places one, and could look at all others."""
    pods, tried = [], list[str]()
    for number in range(20):
        near = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": str(number + 1)}}}
        required = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
        rules: dict[str, Any] = {"affinity": required} if number < 19 else {}
        pods.append(plans.pod(f"p{number:02}", **rules))
        pods[-1]["metadata"]["labels"]["app"] = str(number)
    once = SchedulingCycle.schedule_one

    def counted(cycle: SchedulingCycle, entry: QueueEntry) -> None:
        tried.append(entry.key.name)
        once(cycle, entry)

    monkeypatch.setattr(SchedulingCycle, "schedule_one", counted)
    assert len(placed(simulated(plans.node("n1", cpu="64"), *pods))) == 20
    assert len(tried) == 20 + 19


def test_a_pod_that_follows_another_is_tried_until_nothing_changes() -> None:
    term = builders.pod_term(HOST, {"app": "db"})
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    friend, db = plans.pod("a-friend", affinity=near), plans.pod("db")
    db["metadata"]["labels"] = {"app": "db"}
    result = simulated(plans.node("n1"), plans.node("n2"), friend, db)
    assert placed(result)["a-friend"] == placed(result)["db"]


@pytest.mark.parametrize("all_pods", [False, True])
def test_pods_of_other_schedulers(all_pods: bool) -> None:
    result = simulated(plans.node("n1"), plans.pod("p", scheduler="other"), all_pods=all_pods)
    assert placed(result) == ({"p": "n1"} if all_pods else {})
    assert dict(result.ignored) == ({} if all_pods else {"other": 1})


def test_gated_pods_are_told_apart() -> None:
    result = simulated(plans.node("n1"), plans.pod("p", schedulingGates=[{"name": "later"}]))
    assert [(item.reason, item.message) for item in result.unplaced] == [
        ("SchedulingGated", "has scheduling gates: later")
    ]


def test_the_same_objects_give_the_same_simulation() -> None:
    manifests = [plans.node("n1"), plans.node("n2"), SHOP]
    pods = [plans.pod(f"{name}{number}", group="shop", workload=name) for name in "ab" for number in range(3)]
    assert placed(simulated(*manifests, *pods)) == placed(simulated(*manifests, *reversed(pods)))
