"""The links of a plan: the profile's physical ones, and the budgets that a NetworkTopology states between places."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from berth.api.labels import LABEL_REGION, LABEL_SEGMENT, LABEL_ZONE
from berth.api.quantity import parse_quantity
from berth.network.costs import Place
from berth.network.link_budgets import PlacePair
from berth.scheduling.configuration import Link, Profile
from berth.scheduling.gang.exact import WIDEST
from berth.scheduling.gang.links import LinkModel


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
    by_location: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    names, capacity = [link.name for link in profile.links], [_capacity(link) for link in profile.links]
    for number, link in enumerate(profile.links):
        if link.zones:
            _by_zones(number, link, places, by_location)
    where: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for location, place in enumerate(places) if budgets else ():
        where[LABEL_REGION, place.region].append(location)
        where[LABEL_ZONE, place.zone].append(location)
        where[LABEL_SEGMENT, place.segment].append(location)
    for pair, amount in budgets.items():
        used = {
            (min(here, there), max(here, there))
            for here in where.get((pair.topology_key, pair.first), ())
            for there in where.get((pair.topology_key, pair.second), ())
            if pair.topology_key != LABEL_SEGMENT or places[here].shares_zone(places[there])
        }
        if used and pair.first and pair.second:
            for one in used:
                by_location[one].append(len(names))
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
        by_location={key: tuple(numbers) for key, numbers in by_location.items()},
        by_node={slot: tuple(numbers) for slot, numbers in by_node.items()},
    )


def _capacity(link: Link) -> int:
    return min(int(parse_quantity(link.capacity)), WIDEST)


def _by_zones(
    number: int, link: Link, places: Sequence[Place], by_location: defaultdict[tuple[int, int], list[int]]
) -> None:
    pairs = {(min(first, second), max(first, second)) for first, second in link.zones}
    for row, origin in enumerate(places):
        for column, other in enumerate(places[row:], start=row):
            if (min(origin.zone, other.zone), max(origin.zone, other.zone)) in pairs:
                by_location[row, column].append(number)
