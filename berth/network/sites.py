"""Where nodes are, as arrays: what placements of whole AppGroups are judged over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from berth.network.costs import NetworkCosts, Place
from berth.network.routing import Floats, Ints

Placed = Mapping[str, Mapping[str, int]]
"""Pods of an AppGroup by workload and node; all of these nodes have a row."""


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """Nodes by row; N of them in L locations."""

    row: Mapping[str, int]
    """row of each node, by name"""
    location: Ints
    """int[N], what costs are stated for: region, zone and segment, as a number"""
    location_cost: Floats
    """float64[L, L], cost from location to location"""
    zone: Ints
    """int[N], value of topology.kubernetes.io/zone as a number, -1 without the label"""

    @classmethod
    def of(cls, places: Mapping[str, Place], costs: NetworkCosts) -> Sites:
        """Number the places of nodes."""
        locations: dict[Place, int] = {}
        zones: dict[str, int] = {}
        location = [locations.setdefault(place, len(locations)) for place in places.values()]
        zone = [zones.setdefault(place.zone, len(zones)) if place.zone else -1 for place in places.values()]
        return cls(
            row={name: number for number, name in enumerate(places)},
            location=np.array(location, dtype=np.int64),
            location_cost=costs.matrix(list(locations)),
            zone=np.array(zone, dtype=np.int64),
        )
