"""Which pods wait, in which order they are looked at, and when they are looked at again.

The unit of scheduling is an AppGroup with waiting pods, or a single pod outside any group. Order is strict
and total: priority, arrival (of the group, or of the pod), name; inside a group the topology index, creation
time and name. Upstream's comparator is neither strict nor does it know priorities inside a group.

A unit that could not be placed backs off (1 s doubling to 10 s, kube-scheduler's figures) and sleeps until
something changes that may help: a node, a pod that ended, a group, a network cost. At the latest after
`flush_after` it is looked at again anyway, so that a change nobody noticed cannot strand it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from berth.kube.objects import Pod

INITIAL_BACKOFF = 1.0
MAX_BACKOFF = 10.0
FLUSH_AFTER = 60.0

UnitKey = tuple[str, ...]
"""("group", namespace, name) or ("pod", uid)."""


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
    """Waiting units; every method is O(log n) in the number of waiting units."""

    def __init__(self, *, clock: Callable[[], float], arrival_of: ArrivalOf) -> None:
        """Start empty; `clock` is monotonic."""
        self._clock = clock
        self._arrival_of = arrival_of
        self._units: dict[UnitKey, Unit] = {}
        self._unit_of: dict[str, UnitKey] = {}
        self._ready: list[tuple[int, str, UnitKey]] = []
        self._ready_keys: set[UnitKey] = set()
        self._timers: list[tuple[float, UnitKey]] = []

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
        """Note a waiting pod (again, with newer content); a new pod wakes its unit."""
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
            unit.not_before = 0.0
            self._push(unit)

    def remove(self, uid: str) -> None:
        """Forget a pod: bound, assumed, deleted or no longer ours."""
        key = self._unit_of.pop(uid, None)
        if key is None:
            return
        unit = self._units[key]
        del unit.pods[uid]
        if not unit.pods:
            del self._units[key]

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
            _, _, key = heapq.heappop(self._ready)
            if key not in self._ready_keys:
                continue
            self._ready_keys.discard(key)
            unit = self._units.get(key)
            if unit is not None:
                unit.tried_at = self._clock()
                return unit
        return None

    def back_off(self, unit: Unit) -> float:
        """The unit could not be placed: sleep until a change, at least the backoff; returns that in seconds."""
        wait = min(MAX_BACKOFF, INITIAL_BACKOFF * 2.0 ** min(unit.attempts, 16))
        unit.attempts += 1
        now = self._clock()
        unit.not_before = now + wait
        unit.asleep = True
        heapq.heappush(self._timers, (now + FLUSH_AFTER, unit.key))
        return wait

    def retry_at(self, unit: Unit, when: float) -> None:
        """Look at the unit again at monotonic time `when`, or earlier if something about it changes."""
        heapq.heappush(self._timers, (when, unit.key))

    def wake(self, key: UnitKey) -> None:
        """Something about this unit changed: look at it now."""
        unit = self._units.get(key)
        if unit is not None:
            unit.not_before = 0.0
            self._push(unit)

    def wake_sleepers(self) -> None:
        """Something in the cluster changed: look at every sleeping unit once its backoff is over."""
        now = self._clock()
        for unit in self._units.values():
            if not unit.asleep:
                continue
            if unit.not_before <= now:
                self._push(unit)
            else:
                unit.asleep = False
                heapq.heappush(self._timers, (unit.not_before, unit.key))

    def next_due(self) -> float | None:
        """Monotonic time at which the next timer runs out, None when there is none."""
        return self._timers[0][0] if self._timers else None

    def _push(self, unit: Unit) -> None:
        unit.asleep = False
        if unit.key in self._ready_keys:
            return
        self._ready_keys.add(unit.key)
        arrival = self._arrival_of(unit.key) or unit.arrival
        heapq.heappush(self._ready, (-unit.priority, arrival, unit.key))

    def _release_timers(self) -> None:
        now = self._clock()
        while self._timers and self._timers[0][0] <= now:
            _, key = heapq.heappop(self._timers)
            unit = self._units.get(key)
            if unit is not None and unit.not_before <= now:
                self._push(unit)


def _placement_changed(old: Pod, new: Pod) -> bool:
    return old.spec != new.spec or old.metadata.labels != new.metadata.labels
