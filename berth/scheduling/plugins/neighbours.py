"""What placed neighbours mean for one pod that is placed alone: network cost and hard limits per node.

Filter and score follow the NetworkOverhead plugin (KEP 260), with its known weaknesses mended: edges count in
both directions, and a neighbour whose maxNetworkCost a node exceeds rules that node out, however many other
neighbours would be satisfied.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int32]

MAX_SCORE = 100


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A placed pod that the pod to place has an edge with."""

    node: int
    """slot of its node"""
    max_cost: float
    """limit on the network cost, infinite for none"""
    bandwidth: float
    """bit/s between the two"""
    calls_us: bool
    """True when the placed pod depends on the one to place: the cost is that of the way towards it"""


@dataclass(frozen=True, slots=True)
class NeighbourView:
    """Edges of one pod towards all its placed neighbours, per candidate node."""

    cost: Floats
    """float64[N], sum of the network costs of all edges if the pod went there"""
    violated: Bools
    """bool[N], some edge would exceed its maxNetworkCost"""
    edges: int
    """number of placed neighbours"""


def view_neighbours(
    neighbours: Iterable[Neighbour], *, location: Ints, location_cost: Floats, enforce_limits: bool
) -> NeighbourView:
    """Add up the edges towards placed neighbours.

    Args:
        neighbours: placed pods with an edge to the one to place.
        location: int32[N], place of each node.
        location_cost: float64[L, L], cost from place to place; the same node costs 0.
        enforce_limits: False when no costs are known at all: limits cannot be judged then.
    """
    places = location_cost.shape[0]
    by_place = np.zeros(places)
    violations = np.zeros(places, dtype=np.int64)
    at_home: dict[int, tuple[float, int]] = {}
    count = 0
    for neighbour in neighbours:
        count += 1
        home = location[neighbour.node]
        costs = location_cost[home] if neighbour.calls_us else location_cost[:, home]
        by_place += costs
        over = costs > neighbour.max_cost
        violations += over
        cost, violation = at_home.get(neighbour.node, (0.0, 0))
        at_home[neighbour.node] = (cost + float(costs[home]), violation + int(over[home]))
    cost_by_node = by_place[location]
    violations_by_node = violations[location]
    for node, (cost, violation) in at_home.items():
        cost_by_node[node] -= cost
        violations_by_node[node] -= violation
    violated = violations_by_node > 0 if enforce_limits else np.zeros(len(location), dtype=np.bool_)
    return NeighbourView(cost=cost_by_node, violated=violated, edges=count)


def normalise(costs: Floats) -> Floats:
    """Turn costs of the feasible nodes into scores from 0 to 100, lower cost first.

    ``100 - int(100 * (x - min) / (max - min))``; all equal and above zero: 100; all zero: unchanged
    (NetworkOverhead's NormalizeScore).
    """
    if not costs.size:
        return costs.copy()
    low, high = float(costs.min()), float(costs.max())
    if high == 0:
        return costs.copy()
    if low == high:
        return np.full_like(costs, MAX_SCORE)
    return MAX_SCORE - np.floor(MAX_SCORE * (costs - low) / (high - low))
