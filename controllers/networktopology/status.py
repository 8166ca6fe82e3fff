"""What the status says: the conditions' reasons and messages, each with what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from berth.api.conditions import set_condition
from berth.api.networktopology import (
    CONDITION_COMPLETE,
    CONDITION_SOURCE_AVAILABLE,
    CONDITION_WEIGHTS_COMPUTED,
    NetworkTopologyStatus,
)
from controllers.networktopology.aggregation import Pair
from controllers.networktopology.compute import Computation
from controllers.networktopology.places import Places
from controllers.networktopology.sources.base import Reading, SourceState

CONDITIONS: Final = (CONDITION_SOURCE_AVAILABLE, CONDITION_WEIGHTS_COMPUTED, CONDITION_COMPLETE)
"""Types of the conditions that this controller writes."""
REASON_PARTLY_USABLE: Final = "SomeMeasurementsUnusable"
"""Reason of SourceAvailable when it is True but not all of the source could be used."""
MAX_NAMED: Final = 10
"""Most things that one message names; the rest is counted."""

_KEY_EXAMPLE: Final = "netperf.p90.latency.milliseconds.origin.<node>.destination.<node>"


class Finding(NamedTuple):
    """One condition before it becomes part of a status."""

    type: str
    """condition type"""
    holds: bool
    """whether it is True"""
    reason: str
    """one word for programs"""
    message: str
    """sentences for people"""


def findings(reading: Reading, computation: Computation, places: Places) -> tuple[Finding, ...]:
    """Return the three conditions."""
    return (
        source_available(reading, computation),
        weights_computed(computation),
        complete(computation, places),
    )


def source_available(reading: Reading, computation: Computation) -> Finding:
    """Say whether the measurements that the spec names can be read, and which of them cannot be used."""
    instead = (
        f"until then costs come from {computation.basis}" if computation.basis else "until then there are no costs"
    )
    match reading.state:
        case SourceState.NONE if computation.basis:
            return _source(True, "UserDefined", f"No ConfigMap is named; {computation.samples} costs are stated.")
        case SourceState.NONE:
            text = "spec.configmapName is empty and UserDefined states no cost; name a ConfigMap or state costs."
            return _source(False, "NoSource", text)
        case SourceState.MISSING:
            remedy = f"create it with keys {_KEY_EXAMPLE}, or correct spec.configmapName"
            return _source(False, "ConfigMapNotFound", f"{reading.name} does not exist; {remedy}; {instead}.")
        case SourceState.EMPTY:
            text = (
                f"{reading.name} has no usable measurement under a key {_KEY_EXAMPLE}; {instead}.{_problems(reading)}"
            )
            return _source(False, "NoUsableMeasurements", text)
        case SourceState.READ:
            text = f"{reading.name}: {_count(len(reading.measurements), 'measurement')}.{_problems(reading)}"
            reason = REASON_PARTLY_USABLE if reading.malformed or reading.unknown_nodes else "MeasurementsRead"
            return _source(True, reason, text)
        case SourceState.PENDING | SourceState.FAILED:
            text = f"{reading.name} cannot be read: {reading.detail}; the computed weights stay as they are."
            return _source(False, "ConfigMapUnreadable", text)


def weights_computed(computation: Computation) -> Finding:
    """Say which weight sets were computed, from what."""
    if not computation.basis:
        text = "There is nothing to compute from; SourceAvailable says why."
        return Finding(CONDITION_WEIGHTS_COMPUTED, False, "NoSource", text)
    if not computation.sets:
        text = (
            f"{computation.basis} connects no two regions and no two zones of a region; label the nodes with "
            "topology.kubernetes.io/region and topology.kubernetes.io/zone, and measure between zones."
        )
        return Finding(CONDITION_WEIGHTS_COMPUTED, False, "NoPlacesConnected", text)
    costs = next(iter(computation.sets.values()))
    text = (
        f"{' and '.join(computation.sets)} from {computation.basis}: {_count(len(costs.regions), 'region cost')}, "
        f"{_count(len(costs.zones), 'zone cost')}."
    )
    return Finding(CONDITION_WEIGHTS_COMPUTED, True, "Computed", text)


def complete(computation: Computation, places: Places) -> Finding:
    """Say which pairs of places lack a cost and which nodes lack a place."""
    regions, zones = computation.missing_regions, computation.missing_zones
    problems: list[tuple[str, str]] = []
    if computation.measured:
        remedy = f"publish measurements between their nodes in {computation.basis}"
    else:
        remedy = "state their costs in UserDefined, or measure them"
    if regions:
        problems.append(("MissingCosts", f"No path between regions: {name_pairs(regions)}; {remedy}."))
    if zones:
        problems.append(("MissingCosts", f"No path between zones: {name_pairs(zones)}; {remedy}."))
    if places.unlabelled:
        fix = "label them with topology.kubernetes.io/region and topology.kubernetes.io/zone"
        listed = name_some(places.unlabelled)
        problems.append(("NodesNotLabelled", f"Nodes without a region or zone label: {listed}; {fix}."))
    if places.split_zones:
        split = [f"{zone} ({', '.join(regions)})" for zone, regions in places.split_zones.items()]
        fix = "give every zone a name of its own"
        problems.append(("ZoneInSeveralRegions", f"Zones with nodes in several regions: {name_some(split)}; {fix}."))
    if problems:
        return Finding(CONDITION_COMPLETE, False, problems[0][0], " ".join(text for _, text in problems))
    pairs = f"{_count(len(places.region_pairs()), 'region pair')} and {_count(len(places.zone_pairs()), 'zone pair')}"
    return Finding(CONDITION_COMPLETE, True, "AllPairsKnown", f"Nothing is missing: {pairs} of nodes' places.")


def next_status(
    current: NetworkTopologyStatus,
    found: Sequence[Finding],
    *,
    generation: int,
    places: Places,
    names: Sequence[str],
    calculated: datetime | None,
    measured: datetime | None,
    now: datetime,
) -> NetworkTopologyStatus:
    """Return the status that belongs to the findings; equal to ``current`` when nothing has changed.

    Args:
        current: status of the object now; conditions that others wrote stay.
        found: the conditions.
        generation: generation of the spec that they belong to.
        places: where nodes are.
        names: names of the weight sets in the spec.
        calculated: when the computed weight sets last changed.
        measured: when the newest measurement was published.
        now: time of a condition whose status changes.
    """
    conditions = current.conditions
    for finding in found:
        conditions = set_condition(
            conditions,
            condition_type=finding.type,
            status=finding.holds,
            reason=finding.reason,
            message=finding.message,
            observed_generation=generation,
            now=now,
        )
    return NetworkTopologyStatus(
        observed_generation=generation,
        node_count=len(places.nodes),
        regions=len(places.regions),
        zones=len(places.zones),
        weight_sets=", ".join(names),
        weight_calculation_time=calculated,
        data_time=measured,
        conditions=conditions,
    )


def name_some(items: Sequence[str]) -> str:
    """Return the first items, comma separated, and how many there are beyond them."""
    listed = ", ".join(items[:MAX_NAMED])
    rest = len(items) - MAX_NAMED
    return f"{listed} and {rest} more" if rest > 0 else listed


def name_pairs(pairs: Sequence[Pair]) -> str:
    """Return ordered pairs as ``a to b``; a pair that is there in both directions as ``a and b``, once."""
    known = set(pairs)
    listed = []
    for origin, destination in sorted(known):
        if (destination, origin) not in known:
            listed.append(f"{origin} to {destination}")
        elif origin < destination:
            listed.append(f"{origin} and {destination}")
    return name_some(listed)


def _source(holds: bool, reason: str, message: str) -> Finding:
    return Finding(CONDITION_SOURCE_AVAILABLE, holds, reason, message)


def _problems(reading: Reading) -> str:
    parts = []
    if reading.malformed:
        listed = name_some(reading.malformed)
        parts.append(f' Not used, because the value is no whole number of milliseconds such as "12": {listed}.')
    if reading.unknown_nodes:
        listed = name_some(reading.unknown_nodes)
        parts.append(f" Not used, because no such node exists (remove the key or correct the name): {listed}.")
    return "".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
