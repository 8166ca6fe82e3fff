"""Which groups a scheduling cycle lets wait for network data, and what it says then; how long: test_settling.py."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.kube.objects import CustomObject, Service
from berth.network.costs import NetworkCosts
from berth.network.groups import Group, GroupKey
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import PlacementConfiguration
from berth.scheduling.cycle import CycleListener, SchedulingCycle
from berth.scheduling.decision import Decision
from berth.scheduling.messages import Message
from berth.scheduling.queue import AGEING_SECONDS, AGEING_TURNS, SchedulingQueue
from berth.scheduling.queue_entry import EntryKey
from berth.scheduling.settling import (
    GATHER_AT_MOST_SECONDS,
    GATHER_SECONDS,
    SETTLE_SECONDS,
    WEIGHTS_SECONDS,
    SettlingWindow,
)
from tests.support import kinds
from tests.support.placement import Clock, chain, group_object, lone, member, zoned

FOUR = ("shop-a1", "shop-a2", "shop-b1", "shop-b2")
"""pods of `Stage.replicas`"""


class Stage(CycleListener):
    """A cycle with a settling window; the costs that decisions were made with are kept."""

    def __init__(self, *, settling: bool = True) -> None:
        self.clock = Clock()
        self.cache = Cache(clock=self.clock)
        self.queue = SchedulingQueue(clock=self.clock, groups=self.cache.groups)
        window = SettlingWindow(self.clock) if settling else None
        self.cycle = SchedulingCycle(self.cache, self.queue, PlacementConfiguration(), self, settling=window)
        self.placed: dict[str, NetworkCosts] = {}
        self.together: set[int] = set()
        """how many pods were planned at once, each time"""
        self.told: list[str] = []
        self.cache.update_node(zoned("n1", cpu=8))

    def decided(self, decision: Decision, costs: NetworkCosts) -> None:
        self.placed[decision.pod.metadata.name] = costs

    def planned(self, kind: str, *, pods: int, seconds: float) -> None:
        self.together.add(pods)

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

    def replicas_one_by_one(self) -> None:
        """Two pods of either workload, each looked at before the next one comes."""
        for name in FOUR:
            self.add(member(name, name[5], labels={"app": name[5]}))
            self.schedule(seconds=GATHER_SECONDS / 2)

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


def test_later_replicas_wait_for_each_other_and_nothing_else() -> None:
    """A Deployment that grows has its pods one after the other, and so have those that are rolled out together."""
    stage = Stage()
    stage.shop()
    stage.schedule()
    stage.schedule(seconds=SETTLE_SECONDS)
    stage.together.clear()
    stage.add(member("pc", "a"))
    assert stage.schedule(seconds=GATHER_SECONDS / 2) == {"pa", "pb"}
    stage.add(member("pd", "b"))
    assert stage.schedule(seconds=0.8 * GATHER_SECONDS) == {"pa", "pb"}
    assert stage.schedule(seconds=0.3 * GATHER_SECONDS) == {"pa", "pb", "pc", "pd"}
    assert stage.together == {2}
    assert stage.told == [f"No longer waiting for network data. {NO_COSTS}"]


def test_those_that_come_once_others_have_nodes_gather_anew_though_one_still_waits() -> None:
    stage = Stage()
    stage.shop()
    for _ in range(2):
        stage.schedule(seconds=SETTLE_SECONDS)
    first, slow, unheard = member("pc", "a"), member("slow", "b"), stage.cache.state.user_latency.unheard
    unheard |= {first.metadata.uid, slow.metadata.uid}
    for pod in (first, slow):
        stage.add(pod)
        stage.schedule()
    unheard.discard(first.metadata.uid)
    stage.clock.advance(GATHER_SECONDS)
    stage.queue.activate(EntryKey.of_group(GroupKey("default", "shop"), "berth-scheduler"))
    assert stage.schedule() == (placed := {"pa", "pb", "pc"})
    stage.together.clear()
    stage.clock.advance(GATHER_AT_MOST_SECONDS)
    unheard.clear()
    stage.add(member("pd", "a"))
    assert stage.schedule(seconds=GATHER_SECONDS / 2) == placed
    stage.add(member("pe", "b"))
    assert stage.schedule(seconds=GATHER_SECONDS) == placed | {"pd", "pe", "slow"}
    assert stage.together == {3}


def test_further_replicas_that_keep_coming_do_not_hold_up_each_other() -> None:
    stage = Stage()
    stage.shop()
    stage.schedule(seconds=SETTLE_SECONDS)
    stage.schedule(seconds=SETTLE_SECONDS)
    stage.add(member("pc", "b"))
    begun, number = stage.clock.now, 0
    while stage.schedule(seconds=GATHER_SECONDS / 2) == {"pa", "pb"}:
        stage.add(member(f"more-{number}", "b"))
        number += 1
        assert number < 100
    assert stage.clock.now - begun == pytest.approx(GATHER_AT_MOST_SECONDS, abs=1.01 * GATHER_SECONDS)


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
    assert len(stage.schedule(seconds=GATHER_SECONDS)) == 4
    assert not stage.told


def test_replicas_that_come_a_moment_later_are_planned_together() -> None:
    stage = Stage()
    stage.network("Dijkstra")
    stage.service("b")
    stage.replicas()
    assert stage.schedule(seconds=GATHER_SECONDS / 2) == set()
    stage.add(member("pc", "b", labels={"app": "b"}))
    assert stage.schedule(seconds=0.8 * GATHER_SECONDS) == set()
    assert stage.schedule(seconds=0.3 * GATHER_SECONDS) == {*FOUR, "pc"}
    assert stage.together == {5}


def test_pods_that_keep_coming_do_not_hold_up_the_group() -> None:
    stage = Stage()
    stage.network("Dijkstra")
    stage.service("b")
    stage.replicas()
    begun, number = stage.clock.now, 0
    while not stage.schedule(seconds=GATHER_SECONDS / 2):
        stage.add(member(f"more-{number}", "b", labels={"app": "b"}))
        number += 1
        assert number < 100
    assert stage.clock.now - begun == pytest.approx(GATHER_AT_MOST_SECONDS, abs=1.01 * GATHER_SECONDS)
    assert stage.placed.keys() == {*FOUR, *(f"more-{each}" for each in range(number))}


@pytest.mark.parametrize(
    ("gone", "seconds"),
    [
        pytest.param(True, 60.0, id="scaled-to-zero"),
        pytest.param(True, 0.0, id="deleted-and-made-again"),
        pytest.param(False, 0.0, id="terminating"),
    ],
)
def test_pods_of_an_application_that_comes_back_are_planned_together(gone: bool, seconds: float) -> None:
    stage = Stage()
    stage.network("Dijkstra")
    stage.service("b")
    stage.shop()
    stage.schedule()
    assert stage.schedule(seconds=GATHER_SECONDS) == {"pa", "pb"}
    stage.clock.advance(GATHER_AT_MOST_SECONDS)
    for name in ("a", "b"):
        if gone:
            stage.cache.delete_pod(member(f"p{name}", name))
        else:
            stage.cache.update_pod(member(f"p{name}", name, on="n1", deleting=True))
    stage.clock.advance(seconds)
    stage.together.clear()
    stage.replicas_one_by_one()
    assert stage.schedule(seconds=GATHER_SECONDS) == {"pa", "pb", *FOUR}
    assert stage.together == {4}


def test_pods_that_come_while_network_data_is_waited_for_are_planned_together() -> None:
    stage = Stage()
    stage.network("UserDefined")
    stage.service("b")
    stage.shop()
    stage.schedule()
    assert stage.schedule(seconds=GATHER_AT_MOST_SECONDS) == set()
    stage.network("Dijkstra")
    stage.replicas_one_by_one()
    assert stage.schedule(seconds=GATHER_SECONDS) == {"pa", "pb", *FOUR}
    assert stage.together == {6}


@pytest.mark.parametrize("what", ["network data", "the group", "a workload"])
def test_pods_gather_anew_once_something_else_was_waited_for(what: str) -> None:
    stage = Stage()
    stage.network("Dijkstra")
    stage.service("b")
    stage.shop()
    assert stage.schedule() == set()
    if what == "network data":
        stage.network("UserDefined")
    elif what == "the group":
        stage.cache.delete_group(GroupKey("default", "shop"))
    else:
        stage.cache.update_group(group_object("shop", *chain("a", "b"), numMembers=3))
    assert stage.schedule(seconds=GATHER_SECONDS) == set()
    assert stage.schedule(seconds=GATHER_AT_MOST_SECONDS) == set()
    stage.network("Dijkstra")
    stage.cache.update_group(group_object("shop", *chain("a", "b")))
    stage.replicas_one_by_one()
    assert stage.schedule(seconds=GATHER_SECONDS) == {"pa", "pb", *FOUR}
    assert stage.together == {6}


def test_pods_that_keep_coming_do_not_cost_a_group_its_turn_among_urgent_ones() -> None:
    stage = Stage()
    stage.cache.update_node(zoned("n1", cpu=8, pods=10_000))
    stage.network("Dijkstra")
    stage.service("b")
    stage.shop()
    begun, number, step = stage.clock.now, 0, GATHER_SECONDS / 5
    while "pa" not in stage.placed:
        number += 1
        stage.add(*(lone(f"urgent-{number}-{each}", spec={"priority": 10}) for each in "ab"))
        if number % 3 == 0:
            stage.add(member(f"more-{number}", "b", labels={"app": "b"}))
        entry = stage.queue.pop()
        assert entry is not None
        stage.cycle.schedule_one(entry)
        stage.clock.advance(step)
        assert number < 100 * AGEING_SECONDS
    at_most = GATHER_AT_MOST_SECONDS + AGEING_TURNS * step
    assert AGEING_SECONDS <= stage.clock.now - begun <= AGEING_SECONDS + at_most + 2 * step


@pytest.mark.parametrize("over", [pytest.param(False, id="all-or-nothing"), pytest.param(True, id="left-over")])
def test_pods_that_come_to_a_group_without_room_are_planned_together(*, over: bool) -> None:
    stage = Stage()
    stage.network("Dijkstra")
    stage.service("b")
    stage.cache.update_group(group_object("shop", *chain("a", "b")))
    stage.add(*(member(f"big-{each}", each, cpu="100", labels={"app": each}) for each in "ab"))
    stage.schedule()
    stage.schedule(seconds=GATHER_SECONDS)
    if over:
        stage.schedule(seconds=60)
    stage.clock.advance(GATHER_AT_MOST_SECONDS)
    stage.together.clear()
    stage.replicas_one_by_one()
    stage.schedule(seconds=GATHER_SECONDS)
    assert stage.together == {6}


def test_an_edit_of_a_pod_is_no_further_pod() -> None:
    stage = Stage()
    stage.network("Dijkstra")
    stage.service("b")
    stage.shop()
    assert stage.schedule(seconds=GATHER_SECONDS / 2) == set()
    stage.add(member("pb", "b", labels={"edited": "yes"}))
    assert stage.schedule(seconds=0.6 * GATHER_SECONDS) == {"pa", "pb"}


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
