"""What the dependency edges of a placed AppGroup cost, one by one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.kube.objects import Node
from berth.network.costs import SAME_ZONE_COST, UNKNOWN_COST, NetworkCosts, Place
from berth.network.edges import effective_limit, pod_edges
from berth.network.groups import Group, GroupEdge
from berth.network.members import Member
from berth.network.workload_places import WorkloadPlaces


@dataclass(frozen=True, slots=True)
class EdgeCost:
    """One dependency between two placed pods."""

    dependent: Member
    """the pod that calls"""
    dependency: Member
    """the pod that is called"""
    cost: float
    """network cost of the way; 0 on one node, 100 when not known"""
    known: bool
    """False when no weight set states the cost"""
    limit: float | None
    """maxNetworkCost, None for none"""
    bandwidth: int
    """bit/s reserved for the pair"""

    @property
    def over(self) -> bool:
        """Whether the cost exceeds its limit; the cost inside a zone satisfies every limit."""
        return self.limit is not None and self.cost > max(self.limit, SAME_ZONE_COST)

    def document(self) -> dict[str, Any]:
        """JSON form."""
        document: dict[str, Any] = {
            "from": {"pod": _name(self.dependent), "workload": self.dependent.workload, "node": self.dependent.node},
            "to": {"pod": _name(self.dependency), "workload": self.dependency.workload, "node": self.dependency.node},
            "cost": self.cost,
            "known": self.known,
            "overLimit": self.over,
        }
        if self.limit is not None:
            document["maxNetworkCost"] = self.limit
        if self.bandwidth:
            document["bandwidth"] = self.bandwidth
        return document


def _name(member: Member) -> str:
    return member.key.partition("/")[2]


def node_places(nodes: Iterable[Node]) -> dict[str, Place]:
    """Region and zone by node name."""
    return {node.metadata.name: Place.of(node.metadata.labels) for node in nodes}


def group_edges(
    group: Group, members: Sequence[Member], places: Mapping[str, Place], costs: NetworkCosts
) -> list[EdgeCost]:
    """Cost of every edge whose two pods have a node that is known.

    Args:
        group: the AppGroup.
        members: its pods, waiting ones included: they share the callers' bandwidth.
        places: where each node is, by name.
        costs: network costs of the application.
    """
    stated = {(edge.dependent, edge.dependency): edge.max_cost for edge in group.edges}
    found: list[EdgeCost] = []
    for edge in pod_edges(group, members):
        origin, destination = places.get(edge.dependent.node), places.get(edge.dependency.node)
        if origin is None or destination is None:
            continue
        same = edge.dependent.node == edge.dependency.node
        cost = 0.0 if same else costs.between(origin, destination)
        limit = stated[edge.dependent.workload, edge.dependency.workload]
        found.append(
            EdgeCost(
                edge.dependent,
                edge.dependency,
                cost=UNKNOWN_COST if cost is None else cost,
                known=cost is not None,
                limit=None if math.isinf(limit) else limit,
                bandwidth=edge.bandwidth,
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class EdgeTotals:
    """Sums over edges between placed pods."""

    edges: int = 0
    """number of pairs of pods"""
    cost: float = 0.0
    """network cost of all of them"""
    over: int = 0
    """how many exceed their maxNetworkCost"""
    unknown: int = 0
    """how many have a cost that no weight set states"""

    def __add__(self, other: EdgeTotals) -> EdgeTotals:
        """Both together."""
        return EdgeTotals(
            self.edges + other.edges, self.cost + other.cost, self.over + other.over, self.unknown + other.unknown
        )

    def times(self, count: int) -> EdgeTotals:
        """That many alike."""
        return EdgeTotals(count * self.edges, count * self.cost, count * self.over, count * self.unknown)


def edge_totals(
    group: Group, placed: WorkloadPlaces, places: Mapping[str, Place], costs: NetworkCosts
) -> tuple[EdgeTotals, dict[tuple[str, str], EdgeTotals]]:
    """Edges of a group, and those of each pod by its workload and node; an edge counts for both its ends.

    The sums are those of :func:`group_edges`, counted by workload and place.

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
            for node, each in _totals_by_node(edge, own, others, places, costs, outward=outward).items():
                by_pod[workload, node] = by_pod.get((workload, node), EdgeTotals()) + each
                if outward:
                    total += each.times(own[node])
    return total, by_pod


def _totals_by_node(
    edge: GroupEdge,
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
        cost = UNKNOWN_COST if known is None else known
        return EdgeTotals(1, cost, int(cost > effective_limit(edge)), int(known is None))

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


def edge_summary(total: EdgeTotals) -> dict[str, Any]:
    """Number, mean cost and breaches of edges; no mean without edges."""
    summary: dict[str, Any] = {"edges": total.edges}
    if total.edges:
        summary["meanEdgeCost"] = round(total.cost / total.edges, 6)
        summary["edgesOverLimit"] = total.over
        if total.unknown:
            summary["edgesOfUnknownCost"] = total.unknown
    return summary


def workload_edges(group: Group, edges: Sequence[EdgeCost]) -> list[dict[str, Any]]:
    """Every dependency of the group with its placed pairs of pods; those above their limit and dear ones first."""
    by_pair: dict[tuple[str, str], list[EdgeCost]] = {}
    for edge in edges:
        by_pair.setdefault((edge.dependent.workload, edge.dependency.workload), []).append(edge)
    rows: list[dict[str, Any]] = []
    for stated in group.edges:
        pairs = by_pair.get((stated.dependent, stated.dependency), [])
        row: dict[str, Any] = {"from": stated.dependent, "to": stated.dependency, "pairs": len(pairs)}
        if not math.isinf(stated.max_cost):
            row["maxNetworkCost"] = stated.max_cost
        if pairs:
            worst = max(pairs, key=lambda edge: edge.cost)
            row["meanCost"] = round(sum(edge.cost for edge in pairs) / len(pairs), 6)
            row["highestCost"] = worst.cost
            row["known"] = all(edge.known for edge in pairs)
            row["pairsOverLimit"] = sum(edge.over for edge in pairs)
            row["worst"] = {"fromNode": worst.dependent.node, "toNode": worst.dependency.node}
        rows.append(row)
    rows.sort(key=lambda row: (-row.get("pairsOverLimit", 0), -row.get("highestCost", -1.0)))
    return rows
