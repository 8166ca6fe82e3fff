"""The costs between all zones, and segments of a zone, with the measurements behind them, as one document. No I/O.

Costs are those of the object, as placement reads them. The figures behind them are not stored in it: where costs come
from ProbeReports they are worked out from these by the functions that the controller uses. What other sources measured
is with these sources alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from berth.api.base import format_timestamp
from berth.api.labels import (
    LABEL_REGION,
    LABEL_SEGMENT,
    LABEL_ZONE,
    TOPOLOGY_LEVELS,
    WEIGHTS_NETPERF,
    WEIGHTS_USER_DEFINED,
)
from berth.api.networktopology import API_VERSION, CONDITION_SOURCE_AVAILABLE, KIND, NetworkTopology, iter_costs
from berth.kube.objects import CustomObject
from berth.kube.probe_reports import Report
from berth.network.costs import NetworkCosts, Place, read_costs
from controllers.networktopology.aggregation import inside_zones
from controllers.networktopology.node_medians import PairFigures, pair_figures
from controllers.networktopology.places import NodePlace, Places
from controllers.networktopology.sources.base import UNREACHABLE
from controllers.networktopology.sources.configmap import ConfigMaps
from controllers.networktopology.sources.probe_measurements import read_reports
from controllers.networktopology.sources.probereports import ProbeReports
from controllers.networktopology.sources.prometheus import Prometheus
from controllers.networktopology.sources.userdefined import UserDefined

Pair = tuple[str, str]

REPORTS: Final = ProbeReports.choice
"""Source whose figures are shown."""
MAX_ZONES: Final = 200
"""Zones that are shown at most, as a matrix of them all: an object has room for the costs of no more."""
MAX_SEGMENTS: Final = 200
"""Segments of one zone that are shown at most: their pairs are 39,800."""
_ELSEWHERE: Final[Mapping[str, str]] = {
    Prometheus.choice: "with Prometheus alone: ask it for the controller's query",
    ConfigMaps.choice: "in the ConfigMap alone, by pairs of nodes",
    UserDefined.choice: "none: the costs are stated",
}
"""Where the round trips behind costs of other sources are."""


def parsed(found: CustomObject) -> NetworkTopology:
    """Return the NetworkTopology that was read.

    Raises:
        berth.api.errors.InvalidObjectError: it does not fit its kind.
    """
    return NetworkTopology.parse(found.document(api_version=API_VERSION, kind=KIND))


def has_figures(topology: NetworkTopology) -> bool:
    """Return whether the round trips behind the costs are in ProbeReports, as far as the object says."""
    return topology.status.source in (None, REPORTS)


def topology_document(
    topology: NetworkTopology,
    nodes: Mapping[str, Mapping[str, str]],
    reports: Iterable[Report],
    *,
    now: datetime,
    unread: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the document.

    Args:
        topology: the NetworkTopology.
        nodes: labels by node name.
        reports: all ProbeReports; their 90th percentiles are shown if costs come from them.
        now: the present, for ages.
        unread: plural names of what may not be listed: ProbeReports can be done without.
    """
    places = Places.of({name: NodePlace.of(labels) for name, labels in nodes.items()})
    read = read_reports(reports if has_figures(topology) else (), places, percentile="p90", now=now)
    figures = pair_figures(read.measurements, places.zone_of)
    inside = pair_figures(inside_zones(read.measurements, places), places.segment_of)
    costs = read_costs(topology)
    direct = _direct(topology, costs, {LABEL_ZONE: figures, LABEL_SEGMENT: inside})
    zones, left = _shown_zones(places, costs, figures)
    status = topology.status
    document: dict[str, Any] = {"namespace": topology.metadata.namespace, "name": topology.metadata.name}
    for condition in status.conditions:
        if condition.type == CONDITION_SOURCE_AVAILABLE:
            document["source"] = {"reason": condition.reason, "message": condition.message}
    if status.source is not None:
        document["costsFrom"] = status.source
    if not has_figures(topology):
        document["roundTrips"] = _ELSEWHERE.get(status.source or "", "unknown to this version")
    document["weightSets"] = list(costs.weight_sets)
    if status.data_time is not None:
        document["dataTime"] = format_timestamp(status.data_time)
        document["dataAgeSeconds"] = int((now - status.data_time).total_seconds())
    document["unread"] = [{"resource": name, "effect": "the round trips behind costs are left out"} for name in unread]
    document["zones"] = [
        {"name": zone, **({"region": places.region_of[zone]} if zone in places.region_of else {})} for zone in zones
    ]
    document["zonesLeft"] = left
    document["pairs"] = [
        _pair(
            (origin, destination),
            (
                Place(places.region_of.get(origin, ""), origin),
                Place(places.region_of.get(destination, ""), destination),
            ),
            costs,
            direct,
            figures.get((origin, destination)),
        )
        for origin in zones
        for destination in zones
        if origin != destination
    ]
    document["segments"] = _segments(places, costs, direct, inside)
    return document


def _shown_zones(places: Places, costs: NetworkCosts, figures: Mapping[Pair, PairFigures]) -> tuple[list[str], int]:
    """The zones with nodes by region, and how many are left out; of many, those first of which something is known."""
    known = {end for pair in (*costs.zones, *figures) for end in pair}
    shown = sorted(places.zones, key=lambda zone: (zone not in known, zone))[:MAX_ZONES]
    return sorted(shown, key=lambda zone: (places.region_of.get(zone, ""), zone)), len(places.zones) - len(shown)


def _segments(
    places: Places, costs: NetworkCosts, direct: Mapping[str, set[Pair]], figures: Mapping[Pair, PairFigures]
) -> list[dict[str, Any]]:
    """The segments of each zone of which something is known, with their pairs; of many, some."""
    known = {*costs.segments, *costs.cut_segments, *figures}
    named = {end for pair in known for end in pair}
    found: list[dict[str, Any]] = []
    for (region, zone), segments in sorted(places.segments_of.items()):
        there = [segment for segment in segments if segment in named]
        shown = there[:MAX_SEGMENTS]
        pairs = [(one, other) for one in shown for other in shown if one != other]
        if known.isdisjoint(pairs):
            continue
        entries = [
            _pair(pair, (Place(region, zone, pair[0]), Place(region, zone, pair[1])), costs, direct, figures.get(pair))
            for pair in pairs
        ]
        left = len(there) - len(shown)
        found.append({"region": region, "zone": zone, "names": shown, "left": left, "pairs": entries})
    return found


def _direct(
    topology: NetworkTopology, costs: NetworkCosts, figures: Mapping[str, Mapping[Pair, PairFigures]]
) -> dict[str, set[Pair]]:
    """Pairs by topology key whose cost was measured or stated, and is not that of a path.

    An object may have no room for what was measured of a level. Reports tell it now; of other sources it is not known,
    and that topology key is not there.
    """
    weights = topology.weight_set(WEIGHTS_NETPERF)
    stated = topology.status.source == UserDefined.choice and WEIGHTS_NETPERF not in costs.weight_sets
    measured = weights is not None and not stated
    if not measured:
        weights = topology.weight_set(WEIGHTS_USER_DEFINED)
    if weights is None:
        return {key: set() for key in TOPOLOGY_LEVELS}
    found = {key: {(start, end) for start, end, _ in iter_costs(weights, key)} for key in TOPOLOGY_LEVELS}
    if not measured:
        return found
    for key, pairs in figures.items():
        found[key] = found[key] or {pair for pair, item in pairs.items() if item.microseconds < UNREACHABLE}
    return {key: pairs for key, pairs in found.items() if pairs}


def _source(pair: Pair, ends: tuple[Place, Place], costs: NetworkCosts) -> tuple[str, Pair | None]:
    """The topology key that a pair has its cost from, and the pair there; None: any two nodes of a zone cost that."""
    one, other = ends
    if one.segment:
        return (LABEL_SEGMENT, pair) if pair in costs.segments else (LABEL_ZONE, None)
    return (LABEL_ZONE, pair) if pair in costs.zones else (LABEL_REGION, (one.region, other.region))


def _pair(
    pair: Pair,
    ends: tuple[Place, Place],
    costs: NetworkCosts,
    direct: Mapping[str, set[Pair]],
    figures: PairFigures | None,
) -> dict[str, Any]:
    entry: dict[str, Any] = {"origin": pair[0], "destination": pair[1]}
    cost = costs.between(*ends)
    if cost is not None:
        key, known = _source(pair, ends, costs)
        entry |= {"cost": int(cost), "level": key.rpartition("/")[2]}
        if known is None or key in direct:
            entry["derived"] = known is not None and known not in direct[key]
    if figures is None:
        return entry
    if figures.microseconds < UNREACHABLE:
        entry["p90Microseconds"] = figures.microseconds
    else:
        entry["unreachable"] = True
    if figures.minimum < UNREACHABLE:
        entry["minMicroseconds"] = figures.minimum
    if figures.maximum < UNREACHABLE:
        entry["maxMicroseconds"] = figures.maximum
    return entry | {"samples": figures.samples, "ageSeconds": int(figures.age)}
