"""What the dependency edges of a placed AppGroup cost, counted by workload and place: never pod by pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from berth.kube.objects import Node
from berth.network.costs import NetworkCosts, Place
from berth.network.groups import Group
from berth.network.workload_places import WorkloadPlaces


def node_places(nodes: Iterable[Node]) -> dict[str, Place]:
    """Region and zone by node name."""
    return {node.metadata.name: Place.of(node.metadata.labels) for node in nodes}


@dataclass(frozen=True, slots=True)
class EdgeTotals:
    """Sums over edges between placed pods."""

    edges: int = 0
    """number of pairs of pods"""
    cost: float = 0.0
    """network cost of all of them"""
    unknown: int = 0
    """how many have a cost that no weight set states"""

    def __add__(self, other: EdgeTotals) -> EdgeTotals:
        """Both together."""
        return EdgeTotals(self.edges + other.edges, self.cost + other.cost, self.unknown + other.unknown)

    def times(self, count: int) -> EdgeTotals:
        """That many alike."""
        return EdgeTotals(count * self.edges, count * self.cost, count * self.unknown)


def edge_totals(
    group: Group, placed: WorkloadPlaces, places: Mapping[str, Place], costs: NetworkCosts
) -> tuple[EdgeTotals, dict[tuple[str, str], EdgeTotals]]:
    """Edges of a group, and those of each pod by its workload and node; an edge counts for both its ends.

    Args:
        group: the AppGroup.
        placed: where its pods are.
        places: where each node is, by name.
        costs: network costs of the application.
    """
    total = EdgeTotals()
    by_pod: dict[tuple[str, str], EdgeTotals] = {}
    for edge in group.edges:
        callers, callees = (
            {node: count for node, count in placed.nodes(workload).items() if node in places}
            for workload in (edge.dependent, edge.dependency)
        )
        for workload, own, others, outward in (
            (edge.dependent, callers, callees, True),
            (edge.dependency, callees, callers, False),
        ):
            for node, each in _totals_by_node(own, others, places, costs, outward=outward).items():
                by_pod[workload, node] = by_pod.get((workload, node), EdgeTotals()) + each
                if outward:
                    total += each.times(own[node])
    return total, by_pod


def _totals_by_node(
    own: Mapping[str, int],
    others: Mapping[str, int],
    places: Mapping[str, Place],
    costs: NetworkCosts,
    *,
    outward: bool,
) -> dict[str, EdgeTotals]:
    """Edges of one pod on each node of `own` to the pods on `others`; `outward` when it is the one that calls."""
    by_place: Counter[Place] = Counter()
    for node, count in others.items():
        by_place[places[node]] += count

    def between(here: Place, there: Place) -> EdgeTotals:
        known = costs.between(here, there) if outward else costs.between(there, here)
        cost = costs.unknown_cost if known is None else known
        return EdgeTotals(1, cost, int(known is None))

    sums: dict[Place, EdgeTotals] = {}
    for here in {places[node] for node in own}:
        sums[here] = EdgeTotals()
        for there, count in by_place.items():
            sums[here] += between(here, there).times(count)
    totals: dict[str, EdgeTotals] = {}
    for node in own:
        here = places[node]
        totals[node] = sums[here]
        if together := others.get(node, 0):
            # Within a node an edge costs nothing, whatever its place says.
            totals[node] += between(here, here).times(-together) + EdgeTotals(edges=together)
    return totals


def pair_summary(total: EdgeTotals, over: int) -> dict[str, Any]:
    """Number of pairs of pods, how many of them are `over` their limit, and how many of unknown cost."""
    summary: dict[str, Any] = {"pairs": total.edges, "pairsOverLimit": over}
    if total.unknown:
        summary["pairsOfUnknownCost"] = total.unknown
    return summary
