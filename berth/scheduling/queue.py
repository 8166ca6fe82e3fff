"""Which pods wait, in which order they are looked at, and when they are looked at again.

The unit of scheduling is an AppGroup with waiting pods, or a single pod outside any group. Order is strict
and total: priority, arrival (of the group, or of the pod), name; inside a group the topology index, creation
time and name. Upstream's comparator is neither strict nor does it know priorities inside a group.

A unit that could not be placed backs off (1 s doubling to 10 s, kube-scheduler's figures) and sleeps until
something changes that may help: a node, a pod that ended, a group, a network cost. At the latest after
`FLUSH_AFTER` it is looked at again anyway, so that a change nobody noticed cannot strand it.

Every waiting unit is ready, or has a time at which it becomes ready, or is being looked at just now; whoever
looks at one ends with :meth:`PlacementQueue.back_off`, :meth:`PlacementQueue.retry_at`, or by removing its pods.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cachetools import TTLCache

from berth.kube.objects import Pod
from berth.scheduling.cache.volumes import claim_keys, disk_uses

INITIAL_BACKOFF = 1.0
MAX_BACKOFF = 10.0
FLUSH_AFTER = 60.0
REMEMBER_REFUSALS = 300.0
"""Seconds for which a refused binding lengthens the pod's next backoff."""

UnitKey = tuple[str, ...]
"""("group", namespace, AppGroup name, scheduler name) or ("pod", namespace, name, uid): the last tie-break."""

_Rank = tuple[int, str, UnitKey]


@dataclass(slots=True)
class Unit:
    """What is placed in one go."""

    key: UnitKey
    """identity"""
    first_seen: float
    """monotonic time of the first waiting pod: the group's wait counts from here"""
    pods: dict[str, Pod] = field(default_factory=dict)
    """waiting pods by uid"""
    attempts: int = 0
    """failed attempts since something was last placed"""
    not_before: float = 0.0
    """monotonic time before which it is not looked at again"""
    asleep: bool = False
    """waits for a change (True) or for its time only (False)"""
    tried_at: float = 0.0
    """monotonic time of the last attempt"""
    follows_pods: bool = False
    """some pod has affinity or spread rules: pods that get a node elsewhere may help it"""
    follows_volumes: bool = False
    """some pod has claims or disks: storage objects may help it"""
    due: float | None = None
    """monotonic time at which it becomes ready by itself; None while it is ready or looked at"""
    rank: _Rank | None = None
    """place among the ready units, None while it is not ready"""

    @property
    def priority(self) -> int:
        """Highest priority among the waiting pods."""
        return max((pod.spec.priority for pod in self.pods.values()), default=0)

    @property
    def arrival(self) -> str:
        """Creation time of the oldest waiting pod, RFC 3339 text, which sorts as time."""
        return min((pod.metadata.creation_timestamp for pod in self.pods.values()), default="")


ArrivalOf = Callable[[UnitKey], str | None]
"""Arrival of a group (creation time of its AppGroup), None when it does not exist."""


def pod_order(pod: Pod, index: int) -> tuple[int, int, str, str, str]:
    """Sort key of a pod inside its group; `index` is its workload's place in the order."""
    meta = pod.metadata
    return (-pod.spec.priority, index, meta.creation_timestamp, meta.namespace, meta.name)


class PlacementQueue:
    """Waiting units; adding, removing and popping is O(log n) in the number of waiting units."""

    def __init__(self, *, clock: Callable[[], float], arrival_of: ArrivalOf) -> None:
        """Start empty; `clock` is monotonic."""
        self._clock = clock
        self._arrival_of = arrival_of
        self._units: dict[UnitKey, Unit] = {}
        self._unit_of: dict[str, UnitKey] = {}
        self._sleepers: dict[UnitKey, Unit] = {}
        # Entries of both heaps are good only while they equal their unit's rank or due time.
        self._ready: list[_Rank] = []
        self._timers: list[tuple[float, UnitKey]] = []
        self._refusals: TTLCache[str, int] = TTLCache(maxsize=10_000, ttl=REMEMBER_REFUSALS, timer=clock)

    def __len__(self) -> int:
        """Number of waiting pods."""
        return len(self._unit_of)

    def __contains__(self, uid: str) -> bool:
        """True while the pod waits."""
        return uid in self._unit_of

    def units(self) -> Iterator[Unit]:
        """All waiting units, in no order."""
        return iter(self._units.values())

    def add(self, pod: Pod, key: UnitKey) -> None:
        """Note a waiting pod (again, with newer content); a new or changed pod wakes its unit."""
        uid = pod.metadata.uid
        known = self._unit_of.get(uid)
        if known is not None and known != key:
            self.remove(uid)
            known = None
        unit = self._units.get(key)
        if unit is None:
            unit = self._units[key] = Unit(key=key, first_seen=self._clock())
        changed = known is None or _placement_changed(unit.pods[uid], pod)
        unit.pods[uid] = pod
        self._unit_of[uid] = key
        if changed:
            unit.follows_pods = unit.follows_pods or _looks_at_pods(pod)
            unit.follows_volumes = unit.follows_volumes or bool(claim_keys(pod) or disk_uses(pod))
            unit.not_before = 0.0
            self._push(unit, newcomer=pod)

    def put_back(self, pod: Pod, key: UnitKey) -> None:
        """A decision about the pod could not be carried out: let it wait again, longer each time that happens."""
        uid = pod.metadata.uid
        refusals = self._refusals.get(uid, 0)
        self._refusals[uid] = refusals + 1
        self.add(pod, key)
        unit = self._units[key]
        unit.attempts = max(unit.attempts, refusals)
        self.back_off(unit)
        self.retry_at(unit, unit.not_before)

    def remove(self, uid: str) -> None:
        """Forget a pod: bound, assumed, deleted or no longer ours."""
        key = self._unit_of.pop(uid, None)
        if key is None:
            return
        unit = self._units[key]
        pod = unit.pods.pop(uid)
        if not unit.pods:
            del self._units[key]
            self._sleepers.pop(key, None)
        elif unit.rank is not None and -pod.spec.priority <= unit.rank[0]:
            self._push(unit)

    def unit_of(self, uid: str) -> Unit | None:
        """The unit in which a pod waits."""
        key = self._unit_of.get(uid)
        return self._units.get(key) if key is not None else None

    def get(self, key: UnitKey) -> Unit | None:
        """A waiting unit by its key."""
        return self._units.get(key)

    def pop(self) -> Unit | None:
        """The next unit to look at, None when none is due; it stays in the queue until its pods are removed."""
        self._release_timers()
        while self._ready:
            rank = heapq.heappop(self._ready)
            unit = self._units.get(rank[-1])
            if unit is not None and unit.rank == rank:
                unit.rank = None
                unit.tried_at = self._clock()
                return unit
        return None

    def back_off(self, unit: Unit) -> float:
        """The unit could not be placed: sleep until a change, at least the backoff; returns that in seconds."""
        wait = min(MAX_BACKOFF, INITIAL_BACKOFF * 2.0 ** min(unit.attempts, 16))
        unit.attempts += 1
        now = self._clock()
        unit.not_before = now + wait
        unit.rank = None
        unit.due = None
        if self._units.get(unit.key) is unit:
            unit.asleep = True
            self._sleepers[unit.key] = unit
            self._arm(unit, now + FLUSH_AFTER)
        return wait

    def retry_at(self, unit: Unit, when: float) -> None:
        """Look at the unit again at monotonic time `when` or when its backoff is over, earlier if it changes."""
        self._arm(unit, when)

    def wake(self, key: UnitKey) -> None:
        """Something about this unit changed: look at it now."""
        unit = self._units.get(key)
        if unit is not None:
            unit.not_before = 0.0
            self._push(unit)

    def wake_sleepers(self, which: Callable[[Unit], bool] | None = None) -> None:
        """Something in the cluster changed: look at sleeping units once their backoff is over.

        Args:
            which: the units that the change may help; all of them by default.
        """
        now = self._clock()
        for unit in list(self._sleepers.values()):
            if which is not None and not which(unit):
                continue
            if unit.not_before <= now:
                self._push(unit)
            else:
                unit.asleep = False
                del self._sleepers[unit.key]
                self._arm(unit, unit.not_before)

    def next_due(self) -> float | None:
        """Monotonic time at which the next timer runs out, None when there is none."""
        while self._timers:
            when, key = self._timers[0]
            unit = self._units.get(key)
            if unit is not None and unit.due == when:
                return when
            heapq.heappop(self._timers)
        return None

    def _push(self, unit: Unit, *, newcomer: Pod | None = None) -> None:
        """Make a unit ready; one that is ready already moves up if its newest pod is more urgent."""
        unit.due = None
        if unit.asleep:
            unit.asleep = False
            self._sleepers.pop(unit.key, None)
        if unit.rank is not None and newcomer is not None:
            priority, arrival, _ = unit.rank
            if -newcomer.spec.priority >= priority and newcomer.metadata.creation_timestamp >= arrival:
                return
        rank = (-unit.priority, self._arrival_of(unit.key) or unit.arrival, unit.key)
        if rank != unit.rank:
            unit.rank = rank
            heapq.heappush(self._ready, rank)

    def _arm(self, unit: Unit, when: float) -> None:
        """Have the unit become ready at `when` unless it does so earlier."""
        when = max(when, unit.not_before)
        if unit.rank is None and (unit.due is None or when < unit.due):
            unit.due = when
            heapq.heappush(self._timers, (when, unit.key))

    def _release_timers(self) -> None:
        now = self._clock()
        while (when := self.next_due()) is not None and when <= now:
            _, key = heapq.heappop(self._timers)
            self._push(self._units[key])


def _placement_changed(old: Pod, new: Pod) -> bool:
    return old.spec != new.spec or old.metadata.labels != new.metadata.labels


def _looks_at_pods(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    related = affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
    return related or bool(pod.spec.topology_spread_constraints)
