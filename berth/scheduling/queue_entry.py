"""What waits in the queue: its identity, its place in the order, and what was told about it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from berth.kube.objects import Pod
from berth.network.groups import GroupEdge, GroupKey

GROUP, POD = "group", "pod"
"""Kinds of queue entries."""


class EntryKey(NamedTuple):
    """Identity of a queue entry, and the last tie-break of the order."""

    kind: str
    """GROUP or POD"""
    namespace: str
    """of the AppGroup or of the pod"""
    name: str
    """of the AppGroup or of the pod"""
    scheduler: str = ""
    """scheduler name of a group's pods: those of another scheduler name are an entry of their own"""
    uid: str = ""
    """of the pod"""

    @classmethod
    def of(cls, pod: Pod, group: GroupKey | None) -> EntryKey:
        """The entry that a waiting pod belongs to: that of its AppGroup, or its own."""
        if group is None:
            return cls(POD, pod.metadata.namespace, pod.metadata.name, uid=pod.metadata.uid)
        return cls.of_group(group, pod.spec.scheduler_name)

    @classmethod
    def of_group(cls, group: GroupKey, scheduler: str) -> EntryKey:
        """The entry of an AppGroup's pods of one scheduler name."""
        return cls(GROUP, group.namespace, group.name, scheduler)

    @property
    def group(self) -> GroupKey | None:
        """The AppGroup, None for a single pod."""
        return GroupKey(self.namespace, self.name) if self.kind == GROUP else None


Rank = tuple[int, int, str, int, EntryKey]
"""(negated priority, turn, arrival, number, identity)"""


@dataclass(slots=True)
class Told:
    """What was last told about a waiting entry."""

    reason: str = ""
    """of the message"""
    group_until: float = 0.0
    """monotonic time from which the AppGroup is told again"""
    pods_until: float = 0.0
    """monotonic time from which all pods are told again"""
    pods: set[str] = field(default_factory=set)
    """pods, by uid, that it was told to"""


class Wait(NamedTuple):
    """The wait of a pod that got a node."""

    key: EntryKey
    """entry that it waited in"""
    first_seen: float
    """of the entry"""
    left_over: bool
    """whether it was one of those of which what fits was placed"""


@dataclass(slots=True)
class QueueEntry:
    """What is placed in one go."""

    key: EntryKey
    """identity"""
    first_seen: float
    """monotonic time of the first waiting pod that is not left over: the group's wait counts from here"""
    turn: int
    """attempts at any entry before this one came, or last failed"""
    number: int
    """entries that came before it: creation times are in whole seconds"""
    last_came: float = 0.0
    """monotonic time of the last pod that came"""
    gathers_since: float | None = None
    """monotonic time since which nothing but further pods is waited for; None while something else is"""
    of_several: bool = False
    """whether pods of other Deployments may come with those that gather"""
    pods: dict[str, Pod] = field(default_factory=dict)
    """waiting pods by uid"""
    left_over: set[str] = field(default_factory=set)
    """waiting pods, by uid, without a node when what fits was placed: those that come later are a new batch"""
    looked_at: dict[str, int] = field(default_factory=dict)
    """waiting pods, by uid, that a plan looked at whose time did not suffice for all, and its number: those with the
    lowest, or none, come first"""
    attempts: int = 0
    """failed attempts since something was last placed"""
    not_before: float = 0.0
    """monotonic time at which its backoff is over"""
    early: bool = True
    """may be tried before its backoff is over while nothing else waits"""
    helped: bool = False
    """something that may help it has changed during its backoff"""
    out_of_turn: bool = False
    """is tried for its age"""
    ahead: bool = False
    """is tried before its backoff is over"""
    unschedulable: bool = False
    """waits for a change (True) or for its time only (False)"""
    changes_before: int = 0
    """number of the last change that came before it began to wait for one"""
    follows_pods: bool = False
    """some pod has affinity or spread rules: pods that get a node elsewhere may help it"""
    follows_volumes: bool = False
    """some pod has claims or disks: storage objects may help it"""
    follows_calls: bool = False
    """its AppGroup limited calls, or gave them bandwidth, when it was last tried: Services may help it"""
    due: float | None = None
    """monotonic time at which it becomes active by itself; None while it is active or being scheduled"""
    rank: Rank | None = None
    """place among the active entries, None while it is not active"""
    outranked: bool = False
    """pods were deleted since, so that the rank may be too high; found out when it is the first"""
    active_since: float = 0.0
    """monotonic time at which it became active"""
    keeps_age: bool = False
    """is as old as before when it becomes active again"""
    unheard: frozenset[str] = frozenset()
    """waiting pods, by uid, that it waits for until their LatencyPolicies have been read"""
    told: Told = field(default_factory=Told)
    """why it waits, as its pods have been told"""

    def came(self, uid: str, now: float, wait: Wait | None) -> None:
        """Note that a pod comes, before it is among `pods`; one that had a node already goes on with its wait."""
        self.last_came = now
        nobody_before = len(self.left_over) == len(self.pods)
        if wait is None:
            self.first_seen = now if nobody_before else self.first_seen
        elif not wait.left_over:
            self.first_seen = wait.first_seen if nobody_before else min(self.first_seen, wait.first_seen)
        else:
            self.first_seen = self.first_seen if self.pods else wait.first_seen
            self.left_over.add(uid)

    def went(self, uid: str) -> None:
        """Forget a pod."""
        del self.pods[uid]
        self.left_over.discard(uid)
        self.looked_at.pop(uid, None)
        self.told.pods.discard(uid)

    @property
    def priority(self) -> int:
        """Highest priority among the waiting pods."""
        return max((pod.spec.priority for pod in self.pods.values()), default=0)

    @property
    def arrival(self) -> str:
        """Creation time of the oldest waiting pod, RFC 3339 text, which sorts as time."""
        return min((pod.metadata.creation_timestamp for pod in self.pods.values()), default="")


def pod_order(pod: Pod, index: int) -> tuple[int, int, str, str, str]:
    """Sort key of a pod inside its group; `index` is its workload's place in the order."""
    meta = pod.metadata
    return (-pod.spec.priority, index, meta.creation_timestamp, meta.namespace, meta.name)


def looks_at_pods(pod: Pod) -> bool:
    """Whether a pod has rules about other pods."""
    affinity = pod.spec.affinity
    related = affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
    return related or bool(pod.spec.topology_spread_constraints)


def restricts_calls(edge: GroupEdge) -> bool:
    """Whether a dependency limits its calls or gives them bandwidth: it matters then which replica is called."""
    return bool(edge.bandwidth) or edge.max_cost < math.inf
