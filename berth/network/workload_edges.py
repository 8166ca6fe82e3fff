"""What each dependency of a placed AppGroup costs: one summary for all its pairs of pods, however many there are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from berth.network.bandwidth_split import pair_bandwidth
from berth.network.costs import NetworkCosts, Place
from berth.network.groups import Group, GroupEdge
from berth.network.over_limit import RoutingOf, over_limit
from berth.network.routing import Routing
from berth.network.workload_places import WorkloadPlaces

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs of pods that are alike."""

    count: int
    cost: float
    known: bool
    near: str
    """sameNode, sameZone or elsewhere"""
    ends: tuple[str, str]
    """nodes of one of them: of the caller and of the called"""


def workload_edges(
    group: Group, placed: WorkloadPlaces, places: Mapping[str, Place], costs: NetworkCosts, routing: RoutingOf
) -> list[dict[str, Any]]:
    """Every dependency of the group, those above their limit and dear ones first.

    Each has `from`, `to`, the number of placed pods at both ends (`callers`, `called`) and of `pairs`, and where the
    group states them `maxNetworkCost` and `bandwidth` (bit/s of a pair). With pairs also `meanCost`, `lowestCost` and
    `highestCost`, how many of them are on the `sameNode`, in the `sameZone` or `elsewhere`, how many
    call each other beyond their limit (`pairsOverLimit`), whether all costs are `known`, and the nodes of the `worst`
    pair.

    Args:
        group: the AppGroup.
        placed: where its pods are.
        places: where each node is, by name; pods on other nodes are left out.
        costs: network costs of the application.
        routing: how calls to each workload are routed.
    """
    rows = [_row(edge, placed, places, costs, routing(edge.dependency)) for edge in group.edges]
    rows.sort(key=lambda row: (-row.get("pairsOverLimit", 0), -row.get("highestCost", -1.0)))
    return rows


def _row(
    edge: GroupEdge, placed: WorkloadPlaces, places: Mapping[str, Place], costs: NetworkCosts, routing: Routing
) -> dict[str, Any]:
    callers, called = (
        {node: count for node, count in placed.nodes(workload).items() if node in places}
        for workload in (edge.dependent, edge.dependency)
    )
    pairs = list(_pairs(callers, called, places, costs))
    total = sum(item.count for item in pairs)
    row: dict[str, Any] = {
        "from": edge.dependent,
        "to": edge.dependency,
        "callers": sum(callers.values()),
        "called": sum(called.values()),
        "pairs": total,
    }
    if not math.isinf(edge.max_cost):
        row["maxNetworkCost"] = edge.max_cost
    if edge.bandwidth and total:
        row["bandwidth"] = pair_bandwidth(edge.bandwidth, placed.replicas(edge.dependency))
    if pairs:
        worst = max(pairs, key=lambda item: item.cost)
        row["meanCost"] = round(sum(item.count * item.cost for item in pairs) / total, 6)
        row["lowestCost"] = min(item.cost for item in pairs)
        row["highestCost"] = worst.cost
        for near in ("sameNode", "sameZone", "elsewhere"):
            row[near] = sum(item.count for item in pairs if item.near == near)
        row["known"] = all(item.known for item in pairs)
        over, _ = over_limit(edge, placed, places, costs, routing)
        row["pairsOverLimit"] = sum(each * callers[node] for node, each in over.items())
        row["worst"] = {"fromNode": worst.ends[0], "toNode": worst.ends[1]}
    return row


def _pairs(callers: Counts, called: Counts, places: Mapping[str, Place], costs: NetworkCosts) -> Iterator[_Pairs]:
    """Pairs on one node, then those of every two places."""
    shared = [node for node in callers if node in called]
    if shared:
        together = sum(callers[node] * called[node] for node in shared)
        yield _Pairs(together, 0.0, True, "sameNode", (shared[0], shared[0]))
    here, there = _by_place(callers, places), _by_place(called, places)
    on_one_node = Counter[Place]()
    for node in shared:
        on_one_node[places[node]] += callers[node] * called[node]
    for origin, ours in here.items():
        for destination, theirs in there.items():
            count = ours.total() * theirs.total() - (on_one_node[origin] if origin == destination else 0)
            if not count:
                continue
            cost = costs.between(origin, destination)
            near = "sameZone" if origin.shares_zone(destination) else "elsewhere"
            ends = next((one, other) for one in ours for other in theirs if one != other)
            yield _Pairs(count, costs.unknown_cost if cost is None else cost, cost is not None, near, ends)


def _by_place(counts: Counts, places: Mapping[str, Place]) -> dict[Place, Counter[str]]:
    """Pods by place and node."""
    found: dict[Place, Counter[str]] = {}
    for node, count in counts.items():
        found.setdefault(places[node], Counter())[node] += count
    return found
