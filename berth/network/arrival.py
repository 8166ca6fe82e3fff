"""What the arrival of a pod changes in the bandwidth of calls, where Services keep some of them near.

A new endpoint takes calls away from others, and a caller takes none to where its Service does not send them: so what is
taken before and after is compared, for one node of every zone and each node with pods that call or are called.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from berth.network.admitted import Callers, stated
from berth.network.bandwidth_split import Bundle, Calls, Demand, node_usage, pair_usage
from berth.network.edges import Routes, endpoints_of, placed_calls
from berth.network.groups import Group
from berth.network.limits import NOTHING_PLANNED, Planned
from berth.network.routing import Routing
from berth.network.workload_places import WorkloadPlaces

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Amounts = npt.NDArray[np.int64]
Key = TypeVar("Key")
_MOST = 2**62
"""bit/s at which sums saturate."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Calls from one workload to another, of which a pod that comes makes or takes some; nodes are slots."""

    now: Calls[int]
    """before it comes"""
    then: Calls[int]
    """with all that is planned, but for the pod itself"""
    demand: int | None
    """bit/s that the pod calls with; None when it is called"""

    @property
    def nodes(self) -> set[int]:
        """Nodes with pods that call or are called."""
        return {*self.now.demand, *self.now.endpoints, *self.then.demand, *self.then.endpoints}

    def at(self, slot: int) -> Calls[int]:
        """The calls with the pod on a node."""
        if self.demand is None:
            endpoints = {**self.then.endpoints, slot: self.then.endpoints.get(slot, 0) + 1}
            return replace(self.then, endpoints=endpoints)
        return replace(
            self.then, demand={**self.then.demand, slot: [*self.then.demand.get(slot, ()), (self.demand, 1)]}
        )


def arrivals(
    workload: str,
    group: Group,
    callers: Callers,
    places: WorkloadPlaces,
    node_index: Mapping[str, int],
    routes: Routes,
    planned: Planned = NOTHING_PLANNED,
) -> list[Arrival]:
    """Calls with bandwidth that a pod makes or takes; none where all that it may make or take go to all endpoints.

    Args:
        workload: the pod's workload.
        group: its AppGroup.
        callers: its placed pods by what they were admitted with.
        places: where its pods are.
        node_index: slot by node name; pods on other nodes are left out.
        routes: where calls go.
        planned: pods that will be there as well.
    """
    own = dict(stated(group, workload))
    routing = {name: routes.routing(group.key, name) for name in (workload, *own)}
    if all(how is Routing.ALL for how in routing.values()):
        return []
    placed = placed_calls(group, callers, places)
    ends = {(workload, dependency) for dependency in own if places.replicas(dependency)}
    ends |= {pair for pair in placed if pair[1] == workload}
    ends |= {(caller, workload) for caller in planned if dict(stated(group, caller)).get(workload)}

    def slots(counts: Iterable[tuple[str, int]]) -> dict[int, int]:
        return {node_index[node]: count for node, count in counts if count and node in node_index}

    found: list[Arrival] = []
    for caller, dependency in sorted(ends):
        now = {
            node_index[node]: rows for node, rows in placed.get((caller, dependency), {}).items() if node in node_index
        }
        each, how = dict(stated(group, caller)).get(dependency, 0), routing[dependency]
        coming = slots(planned.get(caller, {}).items()) if each else {}
        endpoints = slots(endpoints_of(dependency, how, places, routes.zone).items())
        live = places.replicas(dependency)
        found.append(
            Arrival(
                Calls(how, now, endpoints, live),
                Calls(how, _with(now, coming, each), _sum(endpoints, slots(planned.get(dependency, {}).items())), live),
                each if caller == workload else None,
            )
        )
    return found


def _with(demand: Demand[int], coming: Mapping[int, int], each: int) -> Demand[int]:
    together = {node: list(rows) for node, rows in demand.items()}
    for node, count in coming.items():
        together.setdefault(node, []).append((each, count))
    return together


def _sum(one: Mapping[int, int], other: Mapping[int, int]) -> Mapping[int, int]:
    return Counter(one) + Counter(other)


def short_on_arrival(found: Sequence[Arrival], *, location: Ints, zone: Ints, free: Amounts, alive: Bools) -> Bools:
    """Return bool[N], the nodes on which the pod would have some node's calls exceed its budget.

    Args:
        found: calls that the pod makes or takes.
        location: int[N], location of each node.
        zone: int[L], zone of each location, -1 without one.
        free: int64[N], bit/s that the pod, and its peers, may take of each node's budget.
        alive: bool[N], nodes to look at.

    A budget that is overdrawn already takes a pod that adds nothing to it.
    """
    short = np.zeros(len(free), dtype=np.bool_)
    usage = _Usage(found, node_usage, location, zone)
    for nodes in _alike(found, location, zone, alive):
        one = int(nodes[0])
        change = usage.change(one)
        own = change.pop(one, 0)
        if any(amount > 0 and min(amount, _MOST) > free[node].item() for node, amount in change.items()):
            short[nodes] = True
        elif own > 0:
            short[nodes] = free[nodes] < min(own, _MOST)
    return short


def over_links_on_arrival(
    found: Sequence[Arrival],
    *,
    location: Ints,
    zone: Ints,
    path: Callable[[int, int], Iterable[int]],
    free: Sequence[float],
    among: Bools,
) -> Bools:
    """Return bool[N], the nodes of `among` on which the pod would have some physical link exceed its capacity.

    Args:
        found: calls that the pod makes or takes.
        location: int[N], location of each node.
        zone: int[L], zone of each location, -1 without one.
        path: the links that traffic between two nodes uses, none inside a node.
        free: P amounts, what is left of each link.
        among: bool[N], the nodes to look at.
    """
    over = np.zeros(len(among), dtype=np.bool_)
    usage = _Usage(found, pair_usage, location, zone)
    for nodes in _alike(found, location, zone, among):
        one = int(nodes[0])
        change = usage.change(one)
        for node in nodes.tolist():
            load: defaultdict[int, int] = defaultdict(int)
            for pair, amount in change.items():
                for link in path(*(node if end == one else end for end in pair)):
                    load[link] += amount
            over[node] = any(amount > 0 and amount > free[link] for link, amount in load.items())
    return over


def _alike(found: Sequence[Arrival], location: Ints, zone: Ints, among: Bools) -> Iterator[npt.NDArray[np.intp]]:
    """Nodes that nothing tells apart: each with callers or endpoints, others of a zone that has some, the rest."""
    peers = sorted(set[int]().union(*(each.nodes for each in found)))
    at = zone[location]
    others = among.copy()
    others[peers] = False
    busy = np.unique(at[peers])
    kind = np.where((at < 0) | np.isin(at, busy), at, -2)
    for peer in peers:
        if among[peer]:
            yield np.array([peer], dtype=np.intp)
    for each in np.unique(kind[others]).tolist():
        yield np.flatnonzero(others & (kind == each))


class _Usage(Generic[Key]):
    """What calls use, before the pod and with it on a node."""

    def __init__(
        self,
        found: Sequence[Arrival],
        count: Callable[[Iterable[Bundle[int]]], Counter[Key]],
        location: Ints,
        zone: Ints,
    ) -> None:
        self._found, self._count = found, count
        self._location, self._zone = location, zone.tolist()
        self._before = count(bundle for each in found for bundle in each.now.bundles(self._zone_of))

    def change(self, slot: int) -> Counter[Key]:
        """What the pod on a node adds, or takes off."""
        change = self._count(bundle for each in self._found for bundle in each.at(slot).bundles(self._zone_of))
        change.subtract(self._before)
        return change

    def _zone_of(self, slot: int) -> int | None:
        number: int = self._zone[self._location[slot]]
        return number if number >= 0 else None
