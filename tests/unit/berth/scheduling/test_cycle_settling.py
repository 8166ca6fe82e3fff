"""Which groups a scheduling cycle lets wait for network data; how long: test_settling.py."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import CustomObject
from berth.network.costs import NetworkCosts
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import PlacementConfiguration
from berth.scheduling.cycle import CycleListener, SchedulingCycle
from berth.scheduling.decision import Decision
from berth.scheduling.queue import SchedulingQueue
from berth.scheduling.queue_entry import EntryKey
from berth.scheduling.settling import SETTLE_SECONDS, SettlingWindow
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
        self.cache.update_node(zoned("n1", cpu=8))

    def decided(self, decision: Decision, costs: NetworkCosts) -> None:
        self.placed[decision.pod.metadata.name] = costs

    def add(self, *pods: Any) -> None:
        for pod in pods:
            self.cache.update_pod(pod)
            self.queue.add(pod, EntryKey.of(pod, self.cache.members.group_of(pod.metadata.uid)))

    def shop(self, *workloads: Any) -> None:
        self.cache.update_group(group_object("shop", *(workloads or chain("a", "b"))))
        self.add(member("pa", "a"), member("pb", "b"))

    def schedule(self, *, seconds: float = 0.0) -> set[str]:
        """Schedule what is due after so many seconds."""
        self.clock.advance(seconds)
        while (entry := self.queue.pop()) is not None:
            self.cycle.schedule_one(entry)
        return set(self.placed)


def test_the_first_placement_uses_weights_that_arrive_after_the_pods() -> None:
    stage = Stage()
    stage.shop()
    assert stage.schedule() == set()
    topology = kinds.network_topology(kinds.weight_set("Dijkstra", z1={"z2": 5}))
    topology["metadata"]["namespace"] = "default"
    stage.cache.update_topology(CustomObject.of(topology))
    assert stage.schedule(seconds=0.2) == {"pa", "pb"}
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
