"""What edges take and cost, pair of pods by pair of pods: the slow way that counted sums are held against."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from berth.network.bandwidth_allocations import NodePair
from berth.network.costs import SAME_ZONE_COST, NetworkCosts, Place
from berth.network.edge_costs import EdgeTotals
from berth.network.edges import PodEdge, pod_edges
from berth.network.groups import Group
from berth.network.members import Member


@dataclass(frozen=True)
class PairCost:
    """One dependency between two placed pods."""

    caller: Member
    called: Member
    cost: float
    known: bool
    limit: float
    bandwidth: float
    near: str

    @property
    def over(self) -> bool:
        """Whether the cost exceeds its limit; the cost inside a zone satisfies every limit."""
        return self.cost > max(self.limit, SAME_ZONE_COST)


def pair_costs(
    group: Group, members: Sequence[Member], places: Mapping[str, Place], costs: NetworkCosts
) -> list[PairCost]:
    """Cost of every edge whose two pods have a node that is known."""
    stated = {(edge.dependent, edge.dependency): edge.max_cost for edge in group.edges}
    found: list[PairCost] = []
    for edge in pod_edges(group, members):
        caller, called = edge.dependent, edge.dependency
        if caller.node not in places or called.node not in places:
            continue
        here, there = places[caller.node], places[called.node]
        same = caller.node == called.node
        cost = 0.0 if same else costs.between(here, there)
        near = "sameNode" if same else "sameZone" if here == there != Place() else "elsewhere"
        limit = stated.get((caller.workload, called.workload), math.inf)
        charged = costs.unknown_cost if cost is None else cost
        found.append(PairCost(caller, called, charged, cost is not None, limit, edge.bandwidth, near))
    return found


def group_bandwidth(edges: Iterable[PodEdge]) -> dict[NodePair, float]:
    """bit/s that edges between placed pods on different nodes take, by pair of nodes."""
    usage: defaultdict[NodePair, float] = defaultdict(float)
    for edge in edges:
        first, second = edge.dependent.node, edge.dependency.node
        if edge.bandwidth and first and second and first != second:
            usage[min(first, second), max(first, second)] += edge.bandwidth
    return dict(usage)


def pairwise_totals(edges: Iterable[PairCost]) -> dict[str, EdgeTotals]:
    """Number and summed cost of the edges of each pod, by uid; an edge counts for both its ends."""
    totals: defaultdict[str, EdgeTotals] = defaultdict(EdgeTotals)
    for edge in edges:
        for uid in (edge.caller.uid, edge.called.uid):
            known = totals[uid]
            totals[uid] = EdgeTotals(known.edges + 1, known.cost + edge.cost, known.unknown + (not edge.known))
    return dict(totals)
