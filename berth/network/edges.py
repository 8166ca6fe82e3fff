"""Dependency edges between pods: what a group's workload edges become when workloads have replicas.

How minBandwidth is split over the pods that are called is said in `berth.network.bandwidth_split`; for a placed pod
it is what the pod was admitted with.
Every pair counts once in the network cost, as in the NetworkOverhead plugin. All pairs of two workloads between the
same two nodes are alike, so sums are taken over counts of pods by workload and node, never over pairs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from berth.network.admitted import Callers
from berth.network.bandwidth_split import pair_bandwidth
from berth.network.costs import SAME_ZONE_COST, Place
from berth.network.groups import Group, GroupEdge, GroupKey
from berth.network.members import Member
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


@dataclass(frozen=True, slots=True)
class Routes:
    """Where calls go."""

    routing: Callable[[GroupKey, str], Routing]
    """how calls to a workload of a group are routed"""
    zone: Callable[[str], str | None]
    """a node's zone, empty without one, None for a node that is not known"""
    place: Callable[[str], Place] = lambda _: Place()
    """where a node is, empty texts for a node that is not known"""


TO_ALL = Routes(lambda _, __: Routing.ALL, lambda _: "")
"""Every call goes to all endpoints."""


def endpoints_of(
    workload: str, routing: Routing, places: WorkloadPlaces, zone: Callable[[str], str | None]
) -> Mapping[str, int]:
    """Placed endpoints by node; where the Service keeps calls near, those that are called."""
    if routing is Routing.ALL:
        return places.nodes(workload)
    return {node: count for node, count in places.staying(workload).items() if zone(node) is not None}


def placed_demand(
    workload: str, group: Group | None, callers: Callers, places: WorkloadPlaces
) -> dict[str, Mapping[str, int]]:
    """bit/s that placed callers on each node take towards every replica of a workload, by calling workload.

    As if all calls went to all replicas. It is what callers were admitted with, whatever the AppGroup still states or
    has been deleted; those without demand are left out.
    """
    demand: defaultdict[str, Counter[str]] = defaultdict(Counter)
    replicas = places.replicas(workload)
    for caller, amount, nodes in callers.towards(group, workload) if replicas else ():
        share, by_node = pair_bandwidth(amount, replicas), demand[caller]
        for node, count in nodes.items():
            by_node[node] += share * count
    return dict(demand)
