"""Costs that people wrote into the weight set ``UserDefined``, as links between regions and between zones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from berth.api.labels import LABEL_REGION, LABEL_ZONE, WEIGHTS_USER_DEFINED
from berth.api.networktopology import Cost, NetworkTopology, iter_costs
from controllers.networktopology.aggregation import Pair, aggregate
from controllers.networktopology.graph import Graph
from controllers.networktopology.sources.base import Measurement


@dataclass(frozen=True, slots=True)
class StatedCosts:
    """Links that people stated."""

    regions: Graph
    """links between regions"""
    zones: Graph
    """links between zones, also across regions where people stated such"""
    count: int
    """number of entries with a cost"""


def stated_costs(topology: NetworkTopology, region_of: Mapping[str, str]) -> StatedCosts:
    """Return the links of ``UserDefined``.

    An entry without networkCost (one that gives bandwidth only) is no link. Two regions without a stated cost, but
    with stated costs between their zones, are linked by the median of those.

    Args:
        topology: the NetworkTopology.
        region_of: zone to region.
    """
    weights = topology.weight_set(WEIGHTS_USER_DEFINED)
    if weights is None:
        return StatedCosts(Graph(), Graph(), 0)
    regions = _stated(iter_costs(weights, LABEL_REGION))
    zones = _stated(iter_costs(weights, LABEL_ZONE))
    region_graph = Graph((origin, destination, cost) for (origin, destination), cost in regions.items())
    between_zones = [Measurement(origin, destination, cost) for (origin, destination), cost in zones.items()]
    for pair, derived in aggregate(between_zones, lambda zone: region_of.get(zone, "")).items():
        if pair not in regions:
            region_graph.add(*pair, derived.cost)
    zone_graph = Graph((origin, destination, cost) for (origin, destination), cost in zones.items())
    return StatedCosts(region_graph, zone_graph, len(regions) + len(zones))


def _stated(entries: list[tuple[str, str, Cost]]) -> dict[Pair, int]:
    """Return the cheapest stated cost by pair; an entry from a place to itself says nothing about others."""
    found: dict[Pair, int] = {}
    for origin, destination, entry in entries:
        cost = entry.network_cost
        if cost is not None and origin != destination:
            found[origin, destination] = min(cost, found.get((origin, destination), cost))
    return found
