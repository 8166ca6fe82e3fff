"""Budgets of links between places: the bandwidth that a NetworkTopology states for a pair of regions, zones or
segments.

minBandwidth does not say which way data flow, and neither do the budgets of nodes. So a pair of places has one budget,
which calls of either direction take from; where both directions state a capacity, the smaller one counts. A pair of
equal places is the traffic between the nodes of one place.

bandwidthAllocated is not read: it says what is placed, and whoever places knows that, later and better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from berth.api.labels import LABEL_REGION, LABEL_SEGMENT, LABEL_ZONE, TOPOLOGY_LEVELS, WEIGHTS_ALLOCATED
from berth.api.networktopology import NetworkTopology, iter_costs
from berth.api.quantity import read_quantity

if TYPE_CHECKING:
    from berth.network.costs import Place

MAX_BUDGET = 2**52
"""bit/s that a budget counts as at the most: more than all calls together may take."""


class PlacePair(NamedTuple):
    """Two places of one level, in alphabetical order; or a place twice."""

    topology_key: str
    """node label whose values the places are"""
    first: str
    second: str

    @classmethod
    def of(cls, topology_key: str, one: str, other: str) -> PlacePair:
        """Put two places in order."""
        return cls(topology_key, min(one, other), max(one, other))

    def __str__(self) -> str:
        """Return what messages call the link, such as ``eu-us (region)``."""
        return f"{self.first}-{self.second} ({self.topology_key.rpartition('/')[2]})"


def read_budgets(topology: NetworkTopology, weight_sets: Sequence[str]) -> dict[PlacePair, int]:
    """Return bit/s by pair of places; pairs without a stated capacity are left out.

    Each direction has its capacity from the first of the weight sets that states one. A capacity of 0 is none: clients
    in Go write it for a field that nobody has set.
    """
    stated: dict[tuple[str, str, str], int] = {}
    for name in weight_sets:
        weights = topology.weight_set(name)
        if weights is None or name == WEIGHTS_ALLOCATED:  # that repeats what others state
            continue
        for key in TOPOLOGY_LEVELS:
            for origin, destination, cost in iter_costs(weights, key):
                capacity = read_quantity(cost.bandwidth_capacity)
                if capacity is not None and capacity.value() > 0:
                    stated.setdefault((key, origin, destination), min(capacity.value(), MAX_BUDGET))
    budgets: dict[PlacePair, int] = {}
    for (key, origin, destination), amount in stated.items():
        pair = PlacePair.of(key, origin, destination)
        budgets[pair] = min(amount, budgets.get(pair, amount))
    return budgets


def pairs_between(one: Place, other: Place) -> tuple[PlacePair, ...]:
    """Return the pairs of places whose budgets traffic between two different nodes takes from.

    Segments are parts of a zone: traffic between zones takes from these alone.
    """
    regions = (PlacePair.of(LABEL_REGION, one.region, other.region),) if one.region and other.region else ()
    zones = (PlacePair.of(LABEL_ZONE, one.zone, other.zone),) if one.zone and other.zone else ()
    inside = one.segment and other.segment and one.shares_zone(other)
    segments = (PlacePair.of(LABEL_SEGMENT, one.segment, other.segment),) if inside else ()
    return (*regions, *zones, *segments)


def taken(usage: Mapping[tuple[Place, Place], int]) -> dict[PlacePair, int]:
    """Return bit/s by pair of regions, of zones and of segments, of what is taken between places."""
    total: dict[PlacePair, int] = {}
    for (one, other), amount in usage.items():
        for pair in pairs_between(one, other):
            total[pair] = total.get(pair, 0) + amount
    return total
