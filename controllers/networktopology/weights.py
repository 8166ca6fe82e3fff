"""Computed weight sets in the shape of ``spec.weights``, and what of them an object already has.

Everything is ordered: region before zone before segment, origins and destinations by name. The same costs therefore
give the same JSON, and nothing is written when nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from berth.api.base import read_timestamp
from berth.api.labels import LABEL_REGION, LABEL_SEGMENT, LABEL_ZONE
from berth.kube.managed_fields import owned_items
from controllers.networktopology.aggregation import Pair
from controllers.networktopology.compute import Costs

FIELD_MANAGER: Final = "berth-networktopology"
"""Name under which the API server keeps track of what this controller owns."""


def weight_set(name: str, costs: Costs) -> dict[str, Any]:
    """Return one weight set as the API has it; a level without any cost has no entry."""
    segments = {**costs.segments, **dict.fromkeys(costs.cut_segments)}
    levels: tuple[tuple[str, Mapping[Pair, int | None]], ...] = (
        (LABEL_REGION, costs.regions),
        (LABEL_ZONE, costs.zones),
        (LABEL_SEGMENT, segments),
    )
    return {
        "name": name,
        "topologyList": [{"topologyKey": key, "originList": origin_list(pairs)} for key, pairs in levels if pairs],
    }


def origin_list(costs: Mapping[Pair, int | None]) -> list[dict[str, Any]]:
    """Return costs by ordered pair as an originList, sorted by origin and destination; None: there is no link."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for origin, destination in sorted(costs):
        cost = costs[origin, destination]
        entry = {"isAllowed": False} if cost is None else {"networkCost": cost}
        rows.setdefault(origin, []).append({"destination": destination, **entry})
    return [{"origin": origin, "costList": row} for origin, row in rows.items()]


def weight_sets(sets: Mapping[str, Costs]) -> list[dict[str, Any]]:
    """Return the computed sets in their order, as the API has them."""
    return [weight_set(name, costs) for name, costs in sets.items()]


EMPTY_SPEC: Final[Mapping[str, Any]] = {"weights": [], "configmapName": ""}
"""Spec of an object that has none: the kind lets it pass, as upstream's does, and it states nothing."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """What ``metadata.managedFields`` says about this controller's part of the spec."""

    names: frozenset[str] = frozenset()
    """weight sets that this controller applied and that are still its own"""
    time: datetime | None = None
    """when they last changed"""


def ownership(managed_fields: Iterable[Mapping[str, Any]]) -> Ownership:
    """Return what this controller owns of ``spec.weights``.

    The API server keeps this for every field manager, so it survives restarts and is true after a crash between
    two writes.
    """
    for entry in managed_fields:
        if entry.get("manager") != FIELD_MANAGER or entry.get("operation") != "Apply" or entry.get("subresource"):
            continue
        names = frozenset(owned_items(entry, "spec", "weights", key="name"))
        moment = entry.get("time")
        return Ownership(names, read_timestamp(moment) if moment and names else None)
    return Ownership()


def without_computed(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object as it is without the costs that this controller applied, which are most of it.

    What it reads of the object is what others wrote, and which computed sets there are.
    """
    spec: Mapping[str, Any] = raw.get("spec") or EMPTY_SPEC
    names = ownership(raw["metadata"].get("managedFields", ())).names
    if not names:
        return {**raw, "spec": spec}
    sets = [{**item, "topologyList": []} if item["name"] in names else item for item in spec["weights"]]
    return {**raw, "spec": {**spec, "weights": sets}}


def status_time(managed_fields: Iterable[Mapping[str, Any]]) -> datetime | None:
    """Return when this controller's part of the status last changed."""
    for entry in managed_fields:
        if entry.get("manager") == FIELD_MANAGER and entry.get("subresource") == "status" and entry.get("time"):
            return read_timestamp(entry["time"])
    return None


def needs_write(live: Iterable[Mapping[str, Any]], wanted: Iterable[Mapping[str, Any]], owned: frozenset[str]) -> bool:
    """Return whether the object's weights differ from the wanted computed sets.

    Args:
        live: ``spec.weights`` of the object.
        wanted: computed sets; empty when nothing can be computed.
        owned: weight sets that this controller owns. One that is owned and not wanted has to go; a set of the same
            name that people wrote themselves stays until there is something to put in its place.
    """
    present = {item["name"]: item for item in live}
    wanted_by_name = {item["name"]: item for item in wanted}
    if any(present.get(name) != item for name, item in wanted_by_name.items()):
        return True
    return any(name in present and name not in wanted_by_name for name in owned)
