"""The settling window: the first placement of an AppGroup waits a moment for what was applied with it.

Its pods come one after the other, and once each workload has one they could be planned, without the other replicas.
Watches of different kinds are not ordered. When everything is applied at once, an application's pods may be seen before
its NetworkTopology, or before the weights that are computed of it, of its last edit or of measurements, or before the
Services that say which replica is called. Pods are not moved afterwards. Later pods wait for each other alone. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field

from cachetools import TTLCache

from berth.api.labels import WEIGHTS_DIJKSTRA, WEIGHTS_NETPERF
from berth.network.costs import NetworkCosts
from berth.scheduling.declared import DeclaredReplicas, Pace
from berth.scheduling.queue_entry import QueueEntry

SETTLE_SECONDS = 2.0
"""The longest that an AppGroup which could be planned waits for a NetworkTopology, and for Services."""
WEIGHTS_SECONDS = 5.0
"""The longest that it waits for the computed weights of a NetworkTopology that is there. Another process
writes them, which takes its time on a machine that is busy."""
GATHER_SECONDS = 0.1
"""How long after its last pod a group waits for another one: a plan of all replicas is better than one of some."""
GATHER_AT_MOST_SECONDS = 1.0
"""The longest that a group which could be planned waits for pods that keep coming."""
DEPLOYMENTS_GATHER_SECONDS = 0.5
"""Likewise of later pods of an application with several Deployments. A controller writes 20 requests a second, three
for each Deployment besides its pods: new pods of an application that is scaled or rolled out as a whole come further
apart, and where some are planned without the others they stay near what is there, so that all of them do."""
DEPLOYMENTS_GATHER_AT_MOST_SECONDS = 2.0
"""Likewise."""
POLL_SECONDS = 0.1
"""How soon a group in its window is looked at again."""
_COMPUTED = frozenset((WEIGHTS_DIJKSTRA, WEIGHTS_NETPERF))
REMEMBERED = 10_000
"""Windows that are remembered, so that each begins once."""
_REMEMBER_SECONDS = 3600.0


@dataclass(slots=True)
class SettlingWindow:
    """Since when AppGroups could have been planned, and NetworkTopologies been used."""

    clock: Callable[[], float]
    """monotonic time"""
    declared: DeclaredReplicas | None = None
    """how many pods are to come first; None where nobody reads that"""
    _since: dict[Hashable, float] = field(init=False, default_factory=dict)
    """when windows began, the earliest first"""
    _told: TTLCache[Hashable, bool] = field(init=False)

    def __post_init__(self) -> None:
        """Begin without any."""
        self._told = TTLCache(maxsize=REMEMBERED, ttl=_REMEMBER_SECONDS, timer=self.clock)

    def look_again(
        self, group: Hashable, costs: NetworkCosts, weight_sets: Collection[str], *, unserved: bool = False
    ) -> float | None:
        """When to look again at a group of which no pod has a node; None when there is nothing to wait for.

        A window begins when a group could have been planned for the first time. It ends with the computed weights and
        the Services, after :data:`SETTLE_SECONDS` without a NetworkTopology or a Service, or when its NetworkTopology,
        as it was made or edited last, has gone without computed weights for :data:`WEIGHTS_SECONDS`: the controller
        that computes them does not run then, or has no measurements, and later groups need not wait for it again.

        Args:
            group: identity of the AppGroup, such as its uid; a new one has a window of its own.
            costs: the network costs that it would be planned with now.
            weight_sets: names of the weight sets that its profile uses.
            unserved: whether a Service could still say which replicas are called.
        """
        weights = not settled(costs, weight_sets)
        if not weights and not unserved:
            return None
        now = self.clock()
        waited = now - self._begun(group, now)
        waits = waited < SETTLE_SECONDS and (unserved or not costs.source)
        if weights and costs.source:
            of_topology = now - self._begun(("topology", costs.uid, costs.generation), now)
            waits |= max(waited, of_topology) < WEIGHTS_SECONDS
        return now + POLL_SECONDS if waits else None

    def next_pod(self, entry: QueueEntry, *, first: bool = False) -> float | None:
        """When to look again at a group since another pod may come; None when it is due.

        They gather once there is nothing else to wait for, as pods go on coming meanwhile; and anew after a failure and
        once all had nodes: an application that was scaled to zero comes back one pod after the other, too.

        Args:
            entry: its waiting pods.
            first: whether no pod of the group has a node: these wait for as many as were declared with them.
        """
        now, declared = self.clock(), self.declared if first else None
        if entry.gathers_since is None:
            entry.gathers_since = now
            if declared is not None:
                declared.begin(entry)
        pace = Pace(GATHER_SECONDS, GATHER_AT_MOST_SECONDS)
        if entry.of_several:
            pace = Pace(DEPLOYMENTS_GATHER_SECONDS, DEPLOYMENTS_GATHER_AT_MOST_SECONDS)
        elif declared is not None:
            pace = declared.pace(entry) or pace
        due = min(entry.last_came + pace.gather, entry.gathers_since + pace.at_most)
        return due if now < due else None

    def tell(self, group: Hashable) -> bool:
        """Whether to tell that a group's window ended without something: the first time, and not at every attempt."""
        first = group not in self._told
        self._told[group] = True
        return first

    def _begun(self, key: Hashable, now: float) -> float:
        """When the window of a key began; a new one is over at once while there is no room to remember it.

        Windows that are open are never forgotten: each look would begin them again, and their groups wait for ever.
        """
        if key not in self._since and len(self._since) >= REMEMBERED:
            earliest = next(iter(self._since))
            if now - self._since[earliest] < WEIGHTS_SECONDS:
                return now - WEIGHTS_SECONDS
            del self._since[earliest]
        return self._since.setdefault(key, now)


def settled(costs: NetworkCosts, weight_sets: Collection[str]) -> bool:
    """Whether costs are known, computed ones of the present spec if the profile uses any."""
    if not costs.available:
        return False
    return _COMPUTED.isdisjoint(weight_sets) or (costs.current and not _COMPUTED.isdisjoint(costs.weight_sets))
