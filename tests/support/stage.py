"""A scheduling cycle over a cache and a queue, which records what it gives out."""

from __future__ import annotations

from typing import Any

from berth.kube.objects import CustomObject, Pod
from berth.network.costs import NetworkCosts
from berth.network.groups import Group
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import PlacementConfiguration, Profile
from berth.scheduling.cycle import CycleListener, SchedulingCycle
from berth.scheduling.decision import Decision, Failure
from berth.scheduling.messages import Message, failed_scheduling
from berth.scheduling.queue import SchedulingQueue
from berth.scheduling.queue_entry import EntryKey
from tests.support.placement import Clock, chain, group_object, zoned


class Stage(CycleListener):
    """A cycle over a cache and a queue; what it gives out is kept."""

    def __init__(
        self,
        *,
        after_wait: str = "PlaceWhatFits",
        wait: float = 30.0,
        planning: float = 2.0,
        network_topology: dict[str, str] | None = None,
        **node: Any,
    ) -> None:
        self.clock = Clock()
        self.cache = Cache(clock=self.clock)
        self.queue = SchedulingQueue(clock=self.clock, groups=self.cache.groups)
        gang = {"waitSeconds": wait, "afterWait": after_wait, "planningSeconds": planning}
        profile = Profile.model_validate({"gang": gang, "networkTopology": network_topology})
        self.bound: list[Decision] = []
        self.notes: list[Message] = []
        self.shortened: list[str] = []
        self.groups_told: list[str] = []
        self.waiting_told: list[str] = []
        self.conditions: dict[str, str] = {}
        configuration = PlacementConfiguration(profiles=[profile])
        self.cycle = SchedulingCycle(self.cache, self.queue, configuration, self)
        self.cache.update_node(zoned("n1", **{"cpu": 4, **node}))

    def decided(self, decision: Decision, costs: NetworkCosts) -> None:
        assert isinstance(costs, NetworkCosts)
        self.bound.append(decision)

    def unschedulable(self, failure: Failure) -> None:
        self.notes.append(failed_scheduling(failure))
        self.conditions[failure.pod.metadata.name] = failure.message

    def waiting(self, pod: Pod, message: Message) -> None:
        self.notes.append(message)
        self.waiting_told.append(pod.metadata.name)

    def about_pod(self, pod: Pod, message: Message) -> None:
        self.notes.append(message)

    def about_group(self, group: Group, message: Message) -> None:
        self.notes.append(message)
        self.groups_told.append(group.key[1])

    def planned(self, kind: str, *, pods: int, seconds: float) -> None:
        assert pods > 0
        assert seconds >= 0

    def cut_short(self, kind: str) -> None:
        self.shortened.append(kind)

    def group(self, obj: CustomObject) -> None:
        group = self.cache.update_group(obj)
        self.queue.activate(EntryKey.of_group(group.key, "berth-scheduler"))

    def add(self, *pods: Pod) -> None:
        for pod in pods:
            assert self.cache.update_pod(pod)
            self.queue.add(pod, EntryKey.of(pod, self.cache.members.group_of(pod.metadata.uid)))

    def schedule(self) -> int:
        """Schedule every entry that is due; returns how many that were."""
        tries = 0
        while (entry := self.queue.pop()) is not None:
            self.cycle.schedule_one(entry)
            tries += 1
            assert tries < 5000, "the cycle spins without time passing"
        return tries

    def placed(self) -> set[str]:
        return {decision.pod.metadata.name for decision in self.bound}

    def reasons(self) -> list[str]:
        return [note.reason for note in self.notes]


def shop(**spec: Any) -> CustomObject:
    return group_object("shop", *chain("a", "b"), **spec)
