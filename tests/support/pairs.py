"""What edges take and cost, pair of pods by pair of pods: the slow way that counted sums are held against."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from berth.network.edge_costs import EdgeCost, EdgeTotals
from berth.network.edges import NodePair, PodEdge


def group_bandwidth(edges: Iterable[PodEdge]) -> dict[NodePair, float]:
    """bit/s that edges between placed pods on different nodes take, by pair of nodes."""
    usage: defaultdict[NodePair, float] = defaultdict(float)
    for edge in edges:
        first, second = edge.dependent.node, edge.dependency.node
        if edge.bandwidth and first and second and first != second:
            usage[min(first, second), max(first, second)] += edge.bandwidth
    return dict(usage)


def pairwise_totals(edges: Iterable[EdgeCost]) -> dict[str, EdgeTotals]:
    """Number and summed cost of the edges of each pod, by uid; an edge counts for both its ends."""
    totals: defaultdict[str, EdgeTotals] = defaultdict(EdgeTotals)
    for edge in edges:
        for uid in (edge.dependent.uid, edge.dependency.uid):
            totals[uid] += EdgeTotals(1, edge.cost, int(edge.over), int(not edge.known))
    return dict(totals)
