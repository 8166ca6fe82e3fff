"""Where the nodes of the cluster are: the region and zone that their labels state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from berth.api.labels import LABEL_REGION, LABEL_ZONE


@dataclass(frozen=True, slots=True)
class NodePlace:
    """The place of one node."""

    region: str = ""
    """value of the region label, empty without one"""
    zone: str = ""
    """value of the zone label, empty without one"""

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> NodePlace:
        """Read the place from a node's labels."""
        return cls(region=labels.get(LABEL_REGION, ""), zone=labels.get(LABEL_ZONE, ""))


@dataclass(frozen=True, slots=True)
class Places:
    """All nodes of a cluster, by place; made by :meth:`of`."""

    nodes: Mapping[str, NodePlace] = field(default_factory=dict)
    """node name to place"""
    regions: tuple[str, ...] = ()
    """regions that nodes carry, sorted"""
    zones: tuple[str, ...] = ()
    """zones that nodes carry, sorted"""
    region_of: Mapping[str, str] = field(default_factory=dict)
    """zone to region, for zones with a node that carries both labels"""
    zones_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """region to those zones, sorted"""
    unlabelled: tuple[str, ...] = ()
    """nodes without a region or a zone label, sorted"""
    split_zones: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """zones whose nodes name several regions, with those regions, sorted"""

    @classmethod
    def of(cls, nodes: Mapping[str, NodePlace]) -> Places:
        """Return the places of ``nodes`` (node name to place).

        Kubernetes takes zone names as unique across regions. A zone whose nodes disagree about the region counts to
        the region that most of its nodes name, the alphabetically first on a tie, and is listed in ``split_zones``.
        """
        votes: dict[str, dict[str, int]] = {}
        for place in nodes.values():
            if place.zone and place.region:
                counts = votes.setdefault(place.zone, {})
                counts[place.region] = counts.get(place.region, 0) + 1
        region_of = {zone: _winner(counts) for zone, counts in sorted(votes.items())}
        members: dict[str, list[str]] = {}
        for zone, region in region_of.items():
            members.setdefault(region, []).append(zone)
        return cls(
            nodes=dict(nodes),
            regions=tuple(sorted({place.region for place in nodes.values() if place.region})),
            zones=tuple(sorted({place.zone for place in nodes.values() if place.zone})),
            region_of=region_of,
            zones_of={region: tuple(zones) for region, zones in members.items()},
            unlabelled=tuple(sorted(name for name, place in nodes.items() if not (place.region and place.zone))),
            split_zones={zone: tuple(sorted(counts)) for zone, counts in sorted(votes.items()) if len(counts) > 1},
        )

    def zone_of(self, node: str) -> str:
        """Return the zone of a node, empty when the node or its zone is unknown."""
        place = self.nodes.get(node)
        return place.zone if place else ""

    def region_of_node(self, node: str) -> str:
        """Return the region of a node, empty when the node or its region is unknown."""
        place = self.nodes.get(node)
        return place.region if place else ""

    def inside_region(self, zone: str, costs: Mapping[str, int]) -> Mapping[str, int]:
        """Return those costs to zones that may be of the same region; one whose region is not known may be of any."""
        region = self.region_of.get(zone)
        if region is None:
            return costs
        # Looked up, for in a large cluster most costs are to other regions.
        others = [*self.zones_of[region], *(costs.keys() - self.region_of.keys())]
        return {other: costs[other] for other in sorted(others) if other in costs}

    def zone_pairs(self) -> list[tuple[str, str]]:
        """Return the ordered pairs of different zones inside one region, sorted."""
        return sorted(pair for zones in self.zones_of.values() for pair in _ordered_pairs(zones))

    def region_pairs(self) -> list[tuple[str, str]]:
        """Return the ordered pairs of different regions, sorted."""
        return _ordered_pairs(self.regions)


def _winner(counts: Mapping[str, int]) -> str:
    return min(counts, key=lambda region: (-counts[region], region))


def _ordered_pairs(places: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(origin, destination) for origin in places for destination in places if origin != destination]
