"""Where the nodes of the cluster are: the region, zone and segment that their labels state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from berth.api.labels import LABEL_REGION, LABEL_SEGMENT, LABEL_ZONE
from controllers.networktopology.place_pairs import PlacePairs

Site = tuple[str, str]
"""Region and zone, either of which may be empty: what segments are parts of."""
_Outer = TypeVar("_Outer", bound=str | Site)


@dataclass(frozen=True, slots=True)
class NodePlace:
    """The place of one node."""

    region: str = ""
    """value of the region label, empty without one"""
    zone: str = ""
    """value of the zone label, empty without one"""
    segment: str = ""
    """value of the segment label, empty without one"""

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> NodePlace:
        """Read the place from a node's labels."""
        return cls(labels.get(LABEL_REGION, ""), labels.get(LABEL_ZONE, ""), labels.get(LABEL_SEGMENT, ""))

    @property
    def site(self) -> Site:
        """Region and zone."""
        return self.region, self.zone


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
    segments: tuple[str, ...] = ()
    """segments that nodes carry, sorted"""
    site_of: Mapping[str, Site] = field(default_factory=dict)
    """segment to where it is, for segments with a node that carries a region or a zone as well"""
    segments_of: Mapping[Site, tuple[str, ...]] = field(default_factory=dict)
    """region and zone to those segments, sorted"""
    split_segments: Mapping[str, tuple[Site, ...]] = field(default_factory=dict)
    """segments whose nodes are in several zones, with these, sorted"""

    @classmethod
    def of(cls, nodes: Mapping[str, NodePlace]) -> Places:
        """Return the places of ``nodes`` (node name to place).

        Kubernetes takes zone names as unique across regions. A zone whose nodes disagree about the region counts to
        the region that most of its nodes name, the alphabetically first on a tie, and is listed in ``split_zones``. So
        it is with segments, whose names are to be unique across zones.
        """
        votes: dict[str, dict[str, int]] = {}
        site_votes: dict[str, dict[Site, int]] = {}
        for place in nodes.values():
            if place.zone and place.region:
                counts = votes.setdefault(place.zone, {})
                counts[place.region] = counts.get(place.region, 0) + 1
            if place.segment and any(place.site):
                sites = site_votes.setdefault(place.segment, {})
                sites[place.site] = sites.get(place.site, 0) + 1
        region_of = {zone: _winner(counts) for zone, counts in sorted(votes.items())}
        site_of = {segment: _winner(sites) for segment, sites in sorted(site_votes.items())}
        return cls(
            nodes=dict(nodes),
            regions=tuple(sorted({place.region for place in nodes.values() if place.region})),
            zones=tuple(sorted({place.zone for place in nodes.values() if place.zone})),
            region_of=region_of,
            zones_of=_members(region_of),
            unlabelled=tuple(sorted(name for name, place in nodes.items() if not (place.region and place.zone))),
            split_zones={zone: tuple(sorted(counts)) for zone, counts in sorted(votes.items()) if len(counts) > 1},
            segments=tuple(sorted({place.segment for place in nodes.values() if place.segment})),
            site_of=site_of,
            segments_of=_members(site_of),
            split_segments={name: tuple(sorted(v)) for name, v in sorted(site_votes.items()) if len(v) > 1},
        )

    def zone_of(self, node: str) -> str:
        """Return the zone of a node, empty when the node or its zone is unknown."""
        place = self.nodes.get(node)
        return place.zone if place else ""

    def region_of_node(self, node: str) -> str:
        """Return the region of a node, empty when the node or its region is unknown."""
        place = self.nodes.get(node)
        return place.region if place else ""

    def segment_of(self, node: str) -> str:
        """Return the segment of a node; empty when it is unknown, or most nodes of that name are in another zone."""
        place = self.nodes.get(node)
        return place.segment if place and self.site_of.get(place.segment) == place.site else ""

    def share_zone(self, one: str, other: str) -> bool:
        """Return whether two nodes with segments are in one zone, or in one region without zones."""
        here = self.site_of.get(self.segment_of(one))
        return here is not None and here == self.site_of.get(self.segment_of(other))

    def inside_region(self, zone: str, costs: Mapping[str, int]) -> Mapping[str, int]:
        """Return those costs to zones that may be of the same region; one whose region is not known may be of any."""
        return _inside(zone, costs, self.region_of, self.zones_of)

    def inside_zone(self, segment: str, costs: Mapping[str, int]) -> Mapping[str, int]:
        """Return those costs to segments that may be of the same zone, as :meth:`inside_region` does of zones."""
        return _inside(segment, costs, self.site_of, self.segments_of)

    def zone_pairs(self) -> PlacePairs:
        """Return the ordered pairs of different zones inside one region."""
        return PlacePairs(tuple(self.zones_of.values()))

    def region_pairs(self) -> PlacePairs:
        """Return the ordered pairs of different regions."""
        return PlacePairs((self.regions,))


def _winner(counts: Mapping[_Outer, int]) -> _Outer:
    def order(outer: _Outer) -> tuple[int, _Outer]:
        return -counts[outer], outer

    return min(counts, key=order)


def _members(outer_of: Mapping[str, _Outer]) -> dict[_Outer, tuple[str, ...]]:
    members: dict[_Outer, list[str]] = {}
    for place, outer in outer_of.items():
        members.setdefault(outer, []).append(place)
    return {outer: tuple(places) for outer, places in members.items()}


def _inside(
    place: str, costs: Mapping[str, int], outer_of: Mapping[str, _Outer], members: Mapping[_Outer, tuple[str, ...]]
) -> Mapping[str, int]:
    outer = outer_of.get(place)
    if outer is None:
        return costs
    # Looked up, for in a large cluster most costs are to places elsewhere.
    others = [*members[outer], *(costs.keys() - outer_of.keys())]
    return {other: costs[other] for other in sorted(others) if other in costs}
