"""The links of a plan: the profile's physical ones, and the budgets that a NetworkTopology states between places."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement, product, repeat

import numpy as np

from berth.api.labels import LABEL_REGION, LABEL_SEGMENT, LABEL_ZONE
from berth.api.quantity import parse_quantity
from berth.network.costs import Place
from berth.network.link_budgets import PlacePair
from berth.scheduling.configuration import Link, Profile
from berth.scheduling.gang.exact import WIDEST
from berth.scheduling.gang.links import LinkModel

_Site = tuple[str, str]
"""Region and zone, either of which may be empty."""
_Pair = tuple[int, int]
_Links = defaultdict[_Pair, list[int]]
"""Numbers of links by pair of sites, or of locations"""


def links_of(
    profile: Profile, budgets: Mapping[PlacePair, int], places: Sequence[Place], node_index: Mapping[str, int]
) -> LinkModel | None:
    """Return the links that some node's traffic uses; None without any.

    Args:
        profile: its links all count, whoever uses them.
        budgets: bit/s by pair of places.
        places: what the nodes' locations stand for.
        node_index: slot of each node.
    """
    names, capacity = [link.name for link in profile.links], [_capacity(link) for link in profile.links]
    # Locations of a region and zone have its links in common, and with segments there may be hundreds of them.
    sites: dict[_Site, list[int]] = {}
    for location, place in enumerate(places):
        sites.setdefault((place.region, place.zone), []).append(location)
    of_sites: _Links = defaultdict(list)
    for number, link in enumerate(profile.links):
        if link.zones:
            _by_zones(number, link, list(sites), of_sites)
    of_segments: _Links = defaultdict(list)
    where: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for site, (region, zone) in enumerate(sites if budgets else ()):
        where[LABEL_REGION, region].append(site)
        where[LABEL_ZONE, zone].append(site)
    for location, place in enumerate(places if budgets else ()):
        where[LABEL_SEGMENT, place.segment].append(location)
    for pair, amount in budgets.items():
        inside = pair.topology_key == LABEL_SEGMENT
        used = {
            (min(here, there), max(here, there))
            for here in where.get((pair.topology_key, pair.first), ())
            for there in where.get((pair.topology_key, pair.second), ())
            if not inside or places[here].shares_zone(places[there])
        }
        if used and pair.first and pair.second:
            for one in used:
                (of_segments if inside else of_sites)[one].append(len(names))
            names.append(str(pair))
            capacity.append(min(amount, WIDEST))
    if not names:
        return None
    by_node: defaultdict[int, list[int]] = defaultdict(list)
    for number, link in enumerate(profile.links):
        for name in link.nodes:
            if name in node_index:
                by_node[node_index[name]].append(number)
    # A link carries no part of a bit; as floats these whole numbers are exact.
    amounts = np.array(capacity, dtype=np.float64)
    return LinkModel(
        names=tuple(names),
        capacity=amounts,
        free=amounts.copy(),
        by_location=_by_location(list(sites.values()), of_sites, of_segments),
        by_node={slot: tuple(numbers) for slot, numbers in by_node.items()},
    )


def _capacity(link: Link) -> int:
    return min(int(parse_quantity(link.capacity)), WIDEST)


def _by_zones(number: int, link: Link, sites: Sequence[_Site], of_sites: _Links) -> None:
    pairs = {(min(first, second), max(first, second)) for first, second in link.zones}
    for row, (_, origin) in enumerate(sites):
        for column, (_, other) in enumerate(sites[row:], start=row):
            if (min(origin, other), max(origin, other)) in pairs:
                of_sites[row, column].append(number)


def _by_location(sites: Sequence[Sequence[int]], of_sites: _Links, of_segments: _Links) -> dict[_Pair, tuple[int, ...]]:
    """Return the links of every pair of locations that has some, by the locations of each site."""
    found: dict[_Pair, tuple[int, ...]] = {}
    for (one, other), numbers in of_sites.items():
        here, there = sites[one], sites[other]
        pairs = combinations_with_replacement(here, 2) if one == other else product(here, there)
        found.update(zip(pairs, repeat(tuple(numbers))))
    for pair, numbers in of_segments.items():
        found[pair] = tuple(sorted((*found.get(pair, ()), *numbers)))
    return found
