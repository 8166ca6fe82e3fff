"""bandwidthAllocated in the shape of ``spec.weights``, and when a change of it is worth a write. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from berth.api.labels import TOPOLOGY_LEVELS, WEIGHTS_ALLOCATED
from berth.network.link_budgets import PlacePair

FIELD_MANAGER: Final = "berth-placement"
"""Name under which the API server keeps track of what this controller owns."""
WRITE_SECONDS: Final = 30.0
"""Seconds between two writes to one NetworkTopology."""
SMALL_SECONDS: Final = 120.0
"""Seconds after which changes are written that are small."""
SMALL_SHARE: Final = 0.01
"""Share of a link's capacity up to which a change is small, unless the link was unused or is so now."""
MAX_PAIRS: Final = 1000
"""Pairs of places in one object, some 250 KiB of it; of more, those that are used most."""

Usage = Mapping[PlacePair, int]
"""bit/s by pair of places"""


def shown(budgets: Usage, usage: Usage) -> dict[PlacePair, int]:
    """Return what is taken of the links to show: all that have a capacity, or the fullest."""
    most = sorted(budgets, key=lambda pair: (-usage.get(pair, 0), pair))[:MAX_PAIRS]
    return {pair: usage.get(pair, 0) for pair in sorted(most)}


def weight_sets(budgets: Usage, taken: Usage) -> list[dict[str, Any]]:
    """Return the weight set of what is allocated, both directions of each pair; empty when there is none."""
    if not taken:
        return []
    levels = []
    for key in TOPOLOGY_LEVELS:
        rows: dict[str, dict[str, dict[str, Any]]] = {}
        for pair, amount in taken.items():
            if pair.topology_key == key:
                entry = {"bandwidthCapacity": str(budgets[pair]), "bandwidthAllocated": str(amount)}
                for origin, destination in ((pair.first, pair.second), (pair.second, pair.first)):
                    rows.setdefault(origin, {})[destination] = {"destination": destination, **entry}
        if rows:
            origins = [{"origin": name, "costList": [row[end] for end in sorted(row)]} for name, row in rows.items()]
            levels.append({"topologyKey": key, "originList": sorted(origins, key=lambda row: str(row["origin"]))})
    return [{"name": WEIGHTS_ALLOCATED, "topologyList": levels}]


def read_usage(weights: Iterable[Mapping[str, Any]], budgets: Usage) -> dict[PlacePair, int] | None:
    """Return what the weight set of an object says; None where it is not as it would be written now.

    Args:
        weights: ``spec.weights`` of the object.
        budgets: capacities that the object states.
    """
    own = [item for item in weights if item.get("name") == WEIGHTS_ALLOCATED]
    try:
        found = {
            PlacePair.of(level["topologyKey"], row["origin"], cost["destination"]): int(cost["bandwidthAllocated"])
            for item in own
            for level in item["topologyList"]
            for row in level["originList"]
            for cost in row["costList"]
        }
    except (KeyError, TypeError, ValueError):
        return None
    known = found.keys() <= budgets.keys()
    return found if known and weight_sets(budgets, {pair: found[pair] for pair in sorted(found)}) == own else None


def seconds_between(budgets: Usage, before: Usage, now: Usage) -> float | None:
    """Return how long after the last write a change may be written; None without one."""
    if before.keys() != now.keys():
        return WRITE_SECONDS
    changes = [(pair, was, now[pair]) for pair, was in before.items() if was != now[pair]]
    if not changes:
        return None
    large = any(
        not was or not amount or abs(amount - was) > SMALL_SHARE * budgets[pair] for pair, was, amount in changes
    )
    return WRITE_SECONDS if large else SMALL_SECONDS
