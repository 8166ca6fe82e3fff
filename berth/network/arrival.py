"""What the arrival of a pod changes in the bandwidth of calls, where Services keep some of them near.

A new endpoint takes calls away from others, and a caller takes none to where its Service does not send them: so what is
taken before and after is compared. Nodes of a zone differ only in the pods that call or are called there, so each zone
is looked at once, with the pod on a node of its own; only where that does not fit, such nodes are looked at too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from berth.network.admitted import Callers, stated
from berth.network.bandwidth_allocations import demand_towards
from berth.network.bandwidth_split import Bundle, Calls, Demand, Endpoints, node_usage, pair_usage
from berth.network.edges import Routes, endpoints_of
from berth.network.groups import Group
from berth.network.limits import NOTHING_PLANNED, Planned
from berth.network.peers import LinkShortage, first_shortage
from berth.network.routing import Routing
from berth.network.workload_places import WorkloadPlaces

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Amounts = npt.NDArray[np.int64]
_MOST = 2**62
"""bit/s at which sums saturate."""
_APART = -1
"""Slot of a node that has the pod and nobody else."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Calls to one workload, of which a pod that comes makes or takes some; nodes are slots."""

    now: Calls[int]
    """before it comes"""
    then: Calls[int]
    """with all that is planned, but for the pod itself"""
    demand: int | None
    """bit/s that the pod calls with; None when it is called"""

    @property
    def nodes(self) -> set[int]:
        """Nodes with pods that call or are called."""
        return set[int]().union(*(end for calls in (self.now, self.then) for end in _ends(calls)))

    def at(self, slot: int) -> Calls[int]:
        """The calls with the pod on a node."""
        if self.demand is None:
            return replace(self.then, endpoints=Counter(self.then.endpoints) + Counter({slot: 1}))
        return replace(self.then, demand=_sum(self.then.demand, {self.demand: {slot: 1}}))


def _ends(calls: Calls[int]) -> Iterable[Mapping[int, int]]:
    return (*calls.demand.values(), calls.endpoints)


def _sum(one: Demand[int], other: Demand[int]) -> Demand[int]:
    return {
        each: Counter(one.get(each, {})) + Counter(other.get(each, {})) for each in one.keys() | other.keys() if each
    }


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
    own = {name: amount for name, amount in stated(group, workload) if name != workload and places.replicas(name)}
    routing = {name: routes.routing(group.key, name) for name in (workload, *own)}
    if all(how is Routing.ALL for how in routing.values()):
        return []

    def slots(counts: Mapping[str, int]) -> dict[int, int]:
        return {node_index[node]: count for node, count in counts.items() if count and node in node_index}

    def arrival(called: str, demand: Demand[str], coming: Demand[str], pod: int | None) -> Arrival:
        now = {amount: slots(nodes) for amount, nodes in demand.items()}
        endpoints = slots(endpoints_of(called, routing[called], places, routes.zone))
        calls = Calls(routing[called], now, endpoints, places.replicas(called))
        then = _sum(now, {amount: slots(nodes) for amount, nodes in coming.items()}) if coming else now
        more = slots(planned.get(called, {}))
        return Arrival(
            calls, replace(calls, demand=then, endpoints=Counter(endpoints) + Counter(more) if more else endpoints), pod
        )

    found: list[Arrival] = []
    for called, amount in own.items():
        others: dict[int, Counter[str]] = {}
        if called in planned:  # otherwise those who call already go on as they do
            for admitted, nodes in callers.of(workload).items():
                each = amount if admitted is None else dict(admitted).get(called, 0)
                others.setdefault(each, Counter()).update(nodes)
        found.append(arrival(called, others, {amount: planned.get(workload, {})}, amount))
    coming: dict[int, Counter[str]] = {}
    for caller in planned:
        if caller != workload and (amount := dict(stated(group, caller)).get(workload, 0)):
            coming.setdefault(amount, Counter()).update(planned[caller])
    demand = demand_towards(group, callers, workload)
    if demand or coming:
        found.append(arrival(workload, demand, coming, None))
    return found


def short_on_arrival(
    found: Sequence[Arrival], *, location: Ints, zone: Ints, free: Amounts, alive: Bools, request: int = 0
) -> Bools:
    """Return bool[N], the nodes on which the pod would have some node's calls exceed its budget.

    Args:
        found: calls that the pod makes or takes.
        location: int[N], location of each node.
        zone: int[L], zone of each location, -1 without one.
        free: int64[N], bit/s that the pod, and its peers, may take of each node's budget.
        alive: bool[N], nodes to look at.
        request: bit/s that the pod takes of its node's budget beside its calls.

    A budget that is overdrawn already takes a pod that adds nothing to it.
    """
    short = np.zeros(len(free), dtype=np.bool_)
    at = zone[location]
    peers = np.array(sorted(set[int]().union(*(each.nodes for each in found))), dtype=np.intp)
    changes = [_Changes(each, _zone_of(at)) for each in found]

    own_free = free - request

    def over(node: int, amount: int, left: Amounts = free) -> bool:
        return amount > 0 and min(amount, _MOST) > left[node].item()

    for number in np.unique(at[alive]).tolist():
        here = alive & (at == number)
        parts = [change.within(number if number >= 0 else None) for change in changes]
        usage: Counter[int] = Counter()
        for change, part in zip(changes, parts, strict=True):
            usage.update(change.planned)
            usage.update(part.apart)
        own = usage.pop(_APART, 0)
        full = [node for node, amount in usage.items() if over(node, amount)]
        if full:
            short |= here
        elif own > 0:
            short |= here & (own_free < min(own, _MOST))
        # Beside peers the pod takes no more of anybody than on a node of its own.
        for slot in peers[short[peers] & here[peers]].tolist():
            short[slot] = any(
                over(
                    node,
                    sum(c.planned[node] + part.on(slot, node) for c, part in zip(changes, parts, strict=True)),
                    own_free if node == slot else free,
                )
                for node in {*full, slot}
            )
    return short


class _Changes:
    """What one arrival changes, zone by zone."""

    def __init__(self, arrival: Arrival, zone_of: Callable[[int], object]) -> None:
        self._arrival, self._zone_of = arrival, zone_of
        now, then = arrival.now, arrival.then
        self.planned: Counter[int] = Counter()
        """bit/s by node that pods which are planned take, whatever becomes of this one"""
        if now is not then:
            self.planned = node_usage(then.bundles(zone_of))
            self.planned.subtract(node_usage(now.bundles(zone_of)))
        self._endpoints = Endpoints.of(then.routing, then.endpoints, then.live, zone_of)
        self._zones_count = then.routing is not Routing.ALL and (bool(self._endpoints.by_zone) or not then.endpoints)
        self._callers: defaultdict[object, dict[int, dict[int, int]]] = defaultdict(dict)
        """those who call by zone, None for those that reach all endpoints, or may"""
        for each, callers in then.demand.items():
            for slot, count in callers.items():
                zone = zone_of(slot)
                home = zone if zone in self._endpoints.by_zone else None
                self._callers[home].setdefault(each, {})[slot] = count
        self._known: dict[object, _InZone] = {}

    def within(self, zone: object) -> _InZone:
        """With the pod in a zone, None for nodes without one."""
        kind = zone if self._zones_count else None
        if self._arrival.demand is not None and zone not in self._endpoints.by_zone:
            kind = None  # it calls all endpoints
        if kind not in self._known:
            self._known[kind] = self._in_zone(zone)
        return self._known[kind]

    def _in_zone(self, zone: object) -> _InZone:
        def zone_of(slot: int) -> object:
            return zone if slot == _APART else self._zone_of(slot)

        touched, endpoints, demand = self._touched(zone), self._endpoints, self._arrival.demand
        before = node_usage(endpoints.bundles(touched, zone_of))
        if demand is None:
            after = endpoints.with_one(_APART, zone).bundles(touched, zone_of)
        else:
            after = endpoints.bundles({demand: {_APART: 1}}, zone_of)
        return _InZone(self._arrival, before, list(after))

    def _touched(self, zone: object) -> Demand[int]:
        """Callers whose calls the pod changes: only its own where it calls."""
        if self._arrival.demand is not None:
            return {}
        if zone is None or not self._zones_count:
            return self._arrival.then.demand
        return _sum(self._callers.get(zone, {}), self._callers.get(None, {}))


class _InZone:
    """What one arrival changes with the pod on some node of a zone."""

    def __init__(self, arrival: Arrival, before: Counter[int], after: Sequence[Bundle[int]]) -> None:
        self._called = arrival.demand is None
        self._same_node = arrival.then.routing is Routing.SAME_NODE
        self._endpoints = arrival.then.endpoints
        self._before, self._after = before, after
        self._totals = [(sum(each.callers.values()), sum(each.endpoints.values())) for each in after]
        self.apart = node_usage(after)
        """bit/s by node with the pod on one of its own"""
        self.apart.subtract(before)

    def on(self, slot: int, node: int) -> int:
        """bit/s that a node's calls take more with the pod on the node `slot`, of this zone."""
        usage = -self._before[node]
        for bundle, (all_callers, called) in zip(self._after, self._totals, strict=True):
            calling, callers, endpoints = all_callers, bundle.callers.get(node, 0), bundle.endpoints.get(node, 0)
            own = bundle.callers.get(_APART, 0)
            if self._same_node and self._called:
                # Its callers stay there now.
                calling -= bundle.callers.get(slot, 0)
                callers = 0 if node == slot else callers
            elif self._same_node and slot in self._endpoints:
                calling, own = calling - own, 0
            if node == slot:
                callers, endpoints = callers + own, endpoints + bundle.endpoints.get(_APART, 0)
            usage += callers * (called - endpoints) + endpoints * (calling - callers)
        return usage


def over_links_on_arrival(
    found: Sequence[Arrival],
    *,
    location: Ints,
    zone: Ints,
    path: Callable[[int, int], Iterable[int]],
    kind: Ints,
    free: Sequence[float],
    among: Bools,
) -> list[LinkShortage]:
    """Return the nodes of `among` on which the pod would have some link exceed its capacity, by the first such.

    Args:
        found: calls that the pod makes or takes.
        location: int[N], location of each node.
        zone: int[L], zone of each location, -1 without one.
        path: the links that traffic between two nodes uses, none inside a node.
        kind: int[N]; towards other nodes, nodes of one kind use the same links.
        free: P amounts, what is left of each link.
        among: bool[N], the nodes to look at.
    """
    short: list[LinkShortage] = []
    at = zone[location]
    zone_of = _zone_of(at)
    before = pair_usage(bundle for each in found for bundle in each.now.bundles(zone_of))
    for nodes in _alike(found, at, among):
        one = int(nodes[0])
        change = pair_usage(bundle for each in found for bundle in each.at(one).bundles(zone_of))
        change.subtract(before)
        for each in np.unique(kind[nodes]).tolist():
            group = nodes[kind[nodes] == each]
            load: defaultdict[int, float] = defaultdict(int)
            for pair, amount in change.items():
                for link in path(*(int(group[0]) if end == one else end for end in pair)):
                    load[link] += amount
            short.extend(first_shortage(load, free, group, len(among)))
    return short


def _alike(found: Sequence[Arrival], at: Ints, among: Bools) -> Iterator[npt.NDArray[np.intp]]:
    """Nodes that nothing tells apart: each with callers or endpoints, others of a zone that has some, the rest."""
    peers = sorted(set[int]().union(*(each.nodes for each in found)))
    others = among.copy()
    others[peers] = False
    busy = np.unique(at[peers])
    kind = np.where((at < 0) | np.isin(at, busy), at, -2)
    for peer in peers:
        if among[peer]:
            yield np.array([peer], dtype=np.intp)
    for each in np.unique(kind[others]).tolist():
        yield np.flatnonzero(others & (kind == each))


def _zone_of(at: Ints) -> Callable[[int], int | None]:
    """Zone by slot."""
    zones = at.tolist()
    return lambda slot: zones[slot] if zones[slot] >= 0 else None
