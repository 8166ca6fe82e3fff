"""What the dependency edges of a placed AppGroup cost, counted by workload and place: never pod by pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from berth.kube.objects import Node
from berth.network.costs import NetworkCosts, Place
from berth.network.groups import Group
from berth.network.workload_places import WorkloadPlaces


def node_places(nodes: Iterable[Node]) -> dict[str, Place]:
    """Where each node is, by name."""
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


_Sums = tuple[int, float, int]
"""Those of EdgeTotals, while there are many of them to add up."""
_NONE: _Sums = (0, 0.0, 0)


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
    total, by_pod = _NONE, dict[tuple[str, str], _Sums]()
    ends = {
        workload: _Ends.of(placed.nodes(workload), places)
        for workload in {end for edge in group.edges for end in (edge.dependent, edge.dependency)}
    }
    for edge in group.edges:
        callers, callees = ends[edge.dependent], ends[edge.dependency]
        for workload, own, others, outward in (
            (edge.dependent, callers, callees, True),
            (edge.dependency, callees, callers, False),
        ):
            for node, each in _sums_by_node(own, others, places, costs, outward=outward):
                by_pod[workload, node] = _plus(by_pod.get((workload, node), _NONE), each)
                if outward:
                    total = _plus(total, each, own.nodes[node])
    return EdgeTotals(*total), {end: EdgeTotals(*each) for end, each in by_pod.items()}


def _plus(sums: _Sums, each: _Sums, count: int = 1) -> _Sums:
    """Sums with `count` times others."""
    return sums[0] + count * each[0], sums[1] + count * each[1], sums[2] + count * each[2]


class _Ends(NamedTuple):
    """Pods of one workload where edges begin or end."""

    nodes: Mapping[str, int]
    """how many are on each node whose place is known"""
    places: Mapping[Place, int]
    """how many are in each place"""

    @classmethod
    def of(cls, nodes: Mapping[str, int], places: Mapping[str, Place]) -> _Ends:
        known = {node: count for node, count in nodes.items() if node in places}
        by_place: Counter[Place] = Counter()
        for node, count in known.items():
            by_place[places[node]] += count
        return cls(known, by_place)


def _sums_by_node(
    own: _Ends,
    others: _Ends,
    places: Mapping[str, Place],
    costs: NetworkCosts,
    *,
    outward: bool,
) -> Iterator[tuple[str, _Sums]]:
    """Edges of one pod on each node of `own` to the pods on `others`; `outward` when it is the one that calls."""

    def between(here: Place, there: Place) -> _Sums:
        known = costs.between(here, there) if outward else costs.between(there, here)
        return (1, costs.unknown_cost, 1) if known is None else (1, known, 0)

    sums: dict[Place, tuple[_Sums, _Sums]] = {}
    for here in own.places:
        apart = _NONE
        for there, count in others.places.items():
            apart = _plus(apart, between(here, there), count)
        sums[here] = apart, between(here, here)
    for node in own.nodes:
        apart, inside = sums[places[node]]
        # Within a node an edge costs nothing, whatever its place says.
        together = others.nodes.get(node, 0)
        yield node, (apart[0], apart[1] - together * inside[1], apart[2] - together * inside[2])


def pair_summary(total: EdgeTotals, over: int) -> dict[str, Any]:
    """Number of pairs of pods, how many of them are `over` their limit, and how many of unknown cost."""
    summary: dict[str, Any] = {"pairs": total.edges, "pairsOverLimit": over}
    if total.unknown:
        summary["pairsOfUnknownCost"] = total.unknown
    return summary
