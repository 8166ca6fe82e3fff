"""Which groups a scheduling cycle lets wait for network data, and what it says then; how long: test_settling.py."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.kube.objects import CustomObject, Service
from berth.network.costs import NetworkCosts
from berth.network.groups import Group
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import PlacementConfiguration
from berth.scheduling.cycle import CycleListener, SchedulingCycle
from berth.scheduling.decision import Decision
from berth.scheduling.messages import Message
from berth.scheduling.queue import SchedulingQueue
from berth.scheduling.queue_entry import EntryKey
from berth.scheduling.settling import SETTLE_SECONDS, WEIGHTS_SECONDS, SettlingWindow
from tests.support import kinds
from tests.support.placement import Clock, chain, group_object, lone, member, zoned


class Stage(CycleListener):
    """A cycle with a settling window; the costs that decisions were made with are kept."""

    def __init__(self, *, settling: bool = True) -> None:
        self.clock = Clock()
        self.cache = Cache(clock=self.clock)
        self.queue = SchedulingQueue(clock=self.clock, groups=self.cache.groups)
        window = SettlingWindow(self.clock) if settling else None
        self.cycle = SchedulingCycle(self.cache, self.queue, PlacementConfiguration(), self, settling=window)
        self.placed: dict[str, NetworkCosts] = {}
        self.told: list[str] = []
        self.cache.update_node(zoned("n1", cpu=8))

    def decided(self, decision: Decision, costs: NetworkCosts) -> None:
        self.placed[decision.pod.metadata.name] = costs

    def about_group(self, group: Group, message: Message) -> None:
        if message.reason == "NetworkDataMissing":
            assert not message.warning
            self.told.append(message.text)

    def add(self, *pods: Any) -> None:
        for pod in pods:
            self.cache.update_pod(pod)
            self.queue.add(pod, EntryKey.of(pod, self.cache.members.group_of(pod.metadata.uid)))

    def shop(self, *workloads: Any) -> None:
        self.cache.update_group(group_object("shop", *(workloads or chain("a", "b"))))
        self.add(member("pa", "a"), member("pb", "b"))

    def replicas(self, name: str = "shop") -> None:
        """Two workloads of two pods each; the second is called."""
        self.cache.update_group(group_object(name, *chain("a", "b"), numMembers=4))
        self.add(*(member(f"{name}-{each}{number}", each, group=name, labels={"app": each})
                   for each in "ab" for number in (1, 2)))  # fmt: skip

    def network(self, *weight_sets: str, generation: int = 1) -> None:
        """A NetworkTopology of these weight sets, computed ones of its spec of generation 1."""
        sets = [kinds.weight_set(name, z1={"z2": 5}) for name in weight_sets]
        topology = kinds.network_topology(*sets)
        topology["metadata"] |= {"namespace": "default", "generation": generation}
        topology["status"] = {"observedGeneration": 1}
        self.cache.update_topology(CustomObject.of(topology))

    def service(self, app: str, **spec: Any) -> None:
        body = {"metadata": {"name": app, "namespace": "default"}, "spec": {"selector": {"app": app}, **spec}}
        self.cache.update_service(msgspec.convert(body, Service))

    def schedule(self, *, seconds: float = 0.0) -> set[str]:
        """Schedule what is due after so many seconds."""
        self.clock.advance(seconds)
        while (entry := self.queue.pop()) is not None:
            self.cycle.schedule_one(entry)
        return set(self.placed)


@pytest.mark.parametrize("later", [0.2, 1.9])
def test_the_first_placement_uses_weights_that_arrive_after_the_pods(later: float) -> None:
    stage = Stage()
    stage.shop()
    assert stage.schedule() == set()
    stage.network("UserDefined")
    assert stage.schedule(seconds=later - 0.1) == set()
    stage.network("Dijkstra")
    assert stage.schedule(seconds=0.1) == {"pa", "pb"}
    assert stage.placed["pa"].weight_sets == ("Dijkstra",)


def test_without_a_topology_nothing_waits_longer_than_two_seconds() -> None:
    stage = Stage()
    stage.shop()
    assert stage.schedule() == set()
    assert stage.schedule(seconds=SETTLE_SECONDS - 0.1) == set()
    assert stage.schedule(seconds=2.0 - SETTLE_SECONDS + 0.1) == {"pa", "pb"}


def test_later_replicas_do_not_wait() -> None:
    stage = Stage()
    stage.shop()
    stage.schedule()
    stage.schedule(seconds=SETTLE_SECONDS)
    stage.add(member("pc", "a"))
    assert stage.schedule() == {"pa", "pb", "pc"}


@pytest.mark.parametrize("case", ["single pod", "no dependencies", "no window"])
def test_who_never_waits(case: str) -> None:
    stage = Stage(settling=case != "no window")
    if case == "single pod":
        stage.add(lone("pa"))
    elif case == "no dependencies":
        stage.shop(kinds.workload("a"), kinds.workload("b"))
    else:
        stage.shop()
    assert "pa" in stage.schedule()


def test_the_first_placement_uses_services_that_arrive_after_the_pods() -> None:
    stage = Stage()
    stage.network("Dijkstra")
    stage.replicas()
    assert stage.schedule() == set()
    assert stage.schedule(seconds=SETTLE_SECONDS - 0.2) == set()
    stage.service("b", trafficDistribution="PreferSameZone")
    assert len(stage.schedule(seconds=0.1)) == 4
    assert not stage.told


@pytest.mark.parametrize(
    "service", [{}, {"clusterIP": "None"}, {"internalTrafficPolicy": "Local"}], ids=["plain", "headless", "local"]
)
def test_a_service_that_is_there_is_not_waited_for(service: dict[str, Any]) -> None:
    stage = Stage()
    stage.network("Dijkstra")
    stage.service("b", **service)
    stage.replicas()
    assert len(stage.schedule()) == 4
    assert not stage.told


def test_services_and_costs_share_one_window() -> None:
    stage = Stage()
    stage.replicas()
    stage.schedule()
    assert stage.schedule(seconds=SETTLE_SECONDS - 0.2) == set()
    stage.network("Dijkstra")
    assert stage.schedule(seconds=0.1) == set()
    assert len(stage.schedule(seconds=0.1)) == 4


def test_a_topology_that_was_waited_for_in_vain_does_not_end_the_wait_for_services() -> None:
    stage = Stage()
    stage.network("UserDefined")
    stage.shop()
    stage.schedule()
    stage.schedule(seconds=WEIGHTS_SECONDS)
    stage.replicas("other")
    assert stage.schedule() == {"pa", "pb"}
    stage.service("b", trafficDistribution="PreferSameZone")
    assert len(stage.schedule(seconds=0.1)) == 6


NO_COSTS = "No NetworkTopology with costs; only equal zones count as close"
NO_SERVICE = "No Service selects pods of b; calls go to all of their replicas"
WEIGHTS = "No weights computed of NetworkTopology default/net as it is, its conditions say why; {} is used"


@pytest.mark.parametrize(
    ("weight_sets", "generation", "services", "text"),
    [
        pytest.param((), 1, "b", NO_COSTS, id="no-topology"),
        pytest.param(("UserDefined",), 1, "b", WEIGHTS.format("UserDefined"), id="nobody-computes"),
        pytest.param(("Dijkstra",), 2, "b", WEIGHTS.format("Dijkstra"), id="edited-since"),
        pytest.param(("Dijkstra",), 1, "", NO_SERVICE, id="no-service"),
        pytest.param((), 1, "", f"{NO_COSTS}. {NO_SERVICE}", id="neither"),
        pytest.param(("Dijkstra",), 1, "b", "", id="all-there"),
    ],
)
def test_what_a_plan_is_made_without_is_told_once(
    weight_sets: tuple[str, ...], generation: int, services: str, text: str
) -> None:
    stage = Stage()
    if weight_sets:
        stage.network(*weight_sets, generation=generation)
    for name in services:
        stage.service(name)
    stage.cache.delete_node(zoned("n1", cpu=8))
    stage.replicas()
    for _ in range(100):
        stage.schedule(seconds=1.0)
    assert not stage.placed
    expected = f"No longer waiting for network data. {text}"
    assert stage.told == ([expected] if text else [])
