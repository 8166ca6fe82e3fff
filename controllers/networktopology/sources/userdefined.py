"""Costs that people wrote into the weight set ``UserDefined``, as links between regions, zones and segments.

Every NetworkTopology has this source: it counts when no measurements are named or none of them can be used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from typing_extensions import override

from berth.api.conditions import ConditionUpdate
from berth.api.labels import LABEL_REGION, LABEL_SEGMENT, LABEL_ZONE, WEIGHTS_USER_DEFINED
from berth.api.networktopology import SOURCE_STATED, Cost, NetworkTopology, iter_costs
from berth.api.text import counted
from controllers.networktopology.aggregation import Pair, aggregate
from controllers.networktopology.graph import CostGraph
from controllers.networktopology.places import Places
from controllers.networktopology.sources.base import (
    Published,
    Reading,
    Source,
    SourceState,
    StatedCosts,
    available,
)

MAX_LABEL: Final = 63
"""Longest value of a label, which is what places are."""


class UserDefined(Source):
    """What people stated."""

    choice: ClassVar[str] = SOURCE_STATED

    @classmethod
    @override
    def named_by(cls, topology: NetworkTopology) -> bool:
        """Every spec may state costs."""
        return True

    @classmethod
    @override
    def reading(cls, topology: NetworkTopology, places: Places, published: Published) -> Reading:
        """Return the stated costs."""
        return read_stated(topology, places.region_of)

    @override
    def availability(self, reading: Reading, instead: str) -> ConditionUpdate:
        """Return the condition SourceAvailable of a spec that names no measurements."""
        if reading.stated is None:
            text = "The spec names no measurements and UserDefined states no cost; name a ConfigMap or state costs"
            return available(False, "NoSource", text)
        text = f"The spec names no measurements; {counted(reading.stated.count, 'cost')} stated in UserDefined"
        return available(True, "UserDefined", text)


def read_stated(topology: NetworkTopology, region_of: Mapping[str, str]) -> Reading:
    """Return the links of ``UserDefined``.

    An entry without networkCost (one that gives bandwidth only) is no link. Two regions without a stated cost, but
    with stated costs between their zones, are linked by the median of those.

    Args:
        topology: the NetworkTopology.
        region_of: zone to region.
    """
    weights = topology.weight_set(WEIGHTS_USER_DEFINED)
    regions, zones, segments = (
        _cheapest(iter_costs(weights, key)) if weights else {} for key in (LABEL_REGION, LABEL_ZONE, LABEL_SEGMENT)
    )
    count = len(regions) + len(zones) + len(segments)
    if not count:
        return Reading(SourceState.EMPTY, WEIGHTS_USER_DEFINED)
    between_zones = [(*pair, cost) for pair, cost in zones.items()]
    derived = aggregate(between_zones, lambda zone: region_of.get(zone, ""))
    stated = StatedCosts(CostGraph(derived | regions), CostGraph(zones), CostGraph(segments), count)
    return Reading(SourceState.READ, WEIGHTS_USER_DEFINED, stated=stated)


def _cheapest(entries: list[tuple[str, str, Cost]]) -> dict[Pair, int]:
    """Return the cheapest stated cost by pair.

    An entry from a place to itself says nothing about others, and no node is at a place whose name no label can hold:
    one name of a megabyte, in the paths to thousands of places, would take gigabytes.
    """
    found: dict[Pair, int] = {}
    for origin, destination, entry in entries:
        cost = entry.network_cost
        if cost is not None and origin != destination and max(len(origin), len(destination)) <= MAX_LABEL:
            found[origin, destination] = min(cost, found.get((origin, destination), cost))
    return found
