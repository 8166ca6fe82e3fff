"""Dependency edges between pods: what a group's workload edges become when workloads have replicas.

How minBandwidth is split over the pods that are called is said in `berth.network.bandwidth_split`; for a placed pod
it is what the pod was admitted with.
Every pair counts once in the network cost, as in the NetworkOverhead plugin. All pairs of two workloads between the
same two nodes are alike, so sums are taken over counts of pods by workload and node, never over pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from berth.network.admitted import Callers, all_stated
from berth.network.bandwidth_split import Bundle, Calls, node_usage, pair_bandwidth, pair_usage
from berth.network.costs import SAME_ZONE_COST
from berth.network.groups import Group, GroupEdge, GroupKey
from berth.network.members import GroupMembers, Member
from berth.network.routing import Routing
from berth.network.workload_places import WorkloadPlaces


@dataclass(frozen=True, slots=True)
class PodEdge:
    """One dependency between two pods of a group."""

    dependent: Member
    """the pod that calls"""
    dependency: Member
    """the pod that is called"""
    bandwidth: int
    """bit/s"""
    max_cost: float
    """limit on the network cost, at least the cost inside a zone: same zone always satisfies
    (so a limit of 0 also admits another zone at that cost)"""


def pod_edges(group: Group, members: Sequence[Member]) -> Iterator[PodEdge]:
    """All pod pairs that the group's dependencies connect, waiting and placed ones alike."""
    by_workload: defaultdict[str, list[Member]] = defaultdict(list)
    for member in members:
        by_workload[member.workload].append(member)
    for edge in group.edges:
        callees = by_workload.get(edge.dependency, ())
        if not callees:
            continue
        limit = effective_limit(edge)
        for caller in by_workload.get(edge.dependent, ()):
            demand = edge.bandwidth if caller.admitted is None else dict(caller.admitted).get(edge.dependency, 0)
            share = pair_bandwidth(demand, len(callees))
            for callee in callees:
                yield PodEdge(caller, callee, share, limit)


def effective_limit(edge: GroupEdge) -> float:
    """The limit on the network cost of each pair, infinite for none; see :attr:`PodEdge.max_cost`."""
    return max(edge.max_cost, SAME_ZONE_COST)


NodePair = tuple[str, str]
"""Two different nodes, in alphabetical order."""


Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Routes:
    """Where calls go."""

    routing: Callable[[GroupKey, str], Routing]
    """how calls to a workload of a group are routed"""
    zone: Callable[[str], str | None]
    """a node's zone, empty without one, None for a node that is not known"""


TO_ALL = Routes(lambda _, __: Routing.ALL, lambda _: "")
"""Every call goes to all endpoints."""


class BandwidthAllocations:
    """Bandwidth that the placed dependency edges of all groups take, kept up to date group by group."""

    def __init__(self, members: GroupMembers, routes: Routes = TO_ALL) -> None:
        """Start empty; `members` says where pods are, `routes` whom they call."""
        # Integers: what a group gives back is exactly what it took, however large.
        self.nodes: defaultdict[str, int] = defaultdict(int)
        """bit/s taken from each node's budget."""
        self._pairs: defaultdict[NodePair, int] = defaultdict(int)
        self._members, self._routes = members, routes
        self._groups: Mapping[GroupKey, Group] = {}
        self._nodes_of: dict[GroupKey, Mapping[str, int]] = {}
        self._pairs_of: dict[GroupKey, Mapping[NodePair, int]] = {}
        self._routed: dict[GroupKey, bool] = {}
        """groups whose placed pods make calls with bandwidth, and whether a Service keeps some of them near"""
        self._dirty: set[GroupKey] = set()
        self._dirty_pairs: set[GroupKey] = set()

    def mark(self, key: GroupKey | None) -> None:
        """Note that a group or the place of one of its pods changed."""
        if key is not None:
            self._dirty.add(key)

    def mark_namespace(self, namespace: str) -> None:
        """Note that Services of a namespace route calls otherwise."""
        self._dirty.update(key for key in self._routed if key.namespace == namespace)

    def mark_zones(self) -> None:
        """Note that nodes may be in other zones."""
        self._dirty.update(key for key, routed in self._routed.items() if routed)

    def refresh(self, groups: Mapping[GroupKey, Group]) -> None:
        """Recompute the groups that changed since the last call."""
        self._groups = groups
        for key in self._dirty:
            calls = _calls(key, groups.get(key), *self._of(key))
            _replace(self.nodes, self._nodes_of, key, node_usage(_bundles(calls, self._routes)))
            self._routed.pop(key, None)
            if calls:
                self._routed[key] = any(one.routing is not Routing.ALL for one in calls)
            # Groups come and go for ever, and pairs may never be asked for: noted are those alone that have some.
            if key in self._nodes_of or key in self._pairs_of:
                self._dirty_pairs.add(key)
            else:
                self._dirty_pairs.discard(key)
        self._dirty.clear()

    @property
    def pairs(self) -> Mapping[NodePair, int]:
        """bit/s between two nodes as of the last `refresh`, for links that several pairs share.

        Worked out on demand: few clusters have such links, and pairs of nodes are many.
        """
        for key in self._dirty_pairs:
            calls = _calls(key, self._groups.get(key), *self._of(key))
            _replace(self._pairs, self._pairs_of, key, pair_usage(_bundles(calls, self._routes)))
        self._dirty_pairs.clear()
        return self._pairs

    def _of(self, key: GroupKey) -> tuple[Callers, WorkloadPlaces, Routes]:
        return self._members.callers(key), self._members.places(key), self._routes


def _replace(
    total: defaultdict[Key, int], parts: dict[GroupKey, Mapping[Key, int]], group: GroupKey, amounts: Mapping[Key, int]
) -> None:
    """Put a group's amounts in the place of its former ones."""
    changes = [(key, -amount) for key, amount in parts.pop(group, {}).items()]
    if amounts:
        parts[group] = amounts
    for key, amount in (*changes, *amounts.items()):
        total[key] += amount
        if not total[key]:
            del total[key]


def placed_calls(
    group: Group | None, callers: Callers, places: WorkloadPlaces, *, towards: str | None = None
) -> dict[tuple[str, str], defaultdict[str, list[tuple[int, int]]]]:
    """Demand of placed callers by node, (bit/s, callers), by dependent and dependency.

    That is what they were admitted with, whatever the AppGroup still states or has been deleted. With `towards` only
    calls to that dependency.
    """
    demand: dict[tuple[str, str], defaultdict[str, list[tuple[int, int]]]] = {}
    now = all_stated(group)
    for workload, admitted, nodes in callers:
        for dependency, amount in now.get(workload, ()) if admitted is None else admitted:
            if towards is not None and dependency != towards:
                continue
            if dependency != workload and places.replicas(dependency):
                by_node = demand.setdefault((workload, dependency), defaultdict(list))
                for node, count in nodes.items():
                    by_node[node].append((amount, count))
    return demand


def placed_demand(
    group: Group | None, callers: Callers, places: WorkloadPlaces, *, towards: str | None = None
) -> dict[tuple[str, str], dict[str, int]]:
    """bit/s that the placed callers of a workload on each node take towards every replica of a dependency.

    By dependent and dependency, as if all calls went to all replicas; those without demand left out. With `towards`
    only what is taken towards that dependency.
    """
    return {
        ends: {
            node: sum(pair_bandwidth(amount, places.replicas(ends[1])) * count for amount, count in amounts)
            for node, amounts in by_node.items()
        }
        for ends, by_node in placed_calls(group, callers, places, towards=towards).items()
    }


def endpoints_of(
    workload: str, routing: Routing, places: WorkloadPlaces, zone: Callable[[str], str | None]
) -> Mapping[str, int]:
    """Placed endpoints by node; where the Service keeps calls near, those that are called."""
    if routing is Routing.ALL:
        return places.nodes(workload)
    return {node: count for node, count in places.staying(workload).items() if zone(node) is not None}


def _calls(
    key: GroupKey, group: Group | None, callers: Callers, places: WorkloadPlaces, routes: Routes
) -> list[Calls[str]]:
    """Calls with bandwidth from placed pods to placed pods."""
    found: list[Calls[str]] = []
    for (_, dependency), demand in placed_calls(group, callers, places).items():
        routing = routes.routing(key, dependency)
        endpoints = endpoints_of(dependency, routing, places, routes.zone)
        found.append(Calls(routing, demand, endpoints, places.replicas(dependency)))
    return found


def _bundles(calls: Iterable[Calls[str]], routes: Routes) -> Iterator[Bundle[str]]:
    return (bundle for one in calls for bundle in one.bundles(routes.zone))


def node_bandwidth(
    key: GroupKey, group: Group | None, callers: Callers, places: WorkloadPlaces, routes: Routes
) -> Mapping[str, int]:
    """bit/s that edges between placed pods on different nodes take from the budget of each node."""
    return node_usage(_bundles(_calls(key, group, callers, places, routes), routes))
