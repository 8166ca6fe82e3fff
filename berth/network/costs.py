"""Network costs between the places where nodes stand, read from a NetworkTopology.

The cost rules are those of the NetworkOverhead plugin (sig-scheduling KEP 260): 0 on one node, 1 inside a
zone, or inside a region without zones, the zone cost inside a region, the region cost between regions. They
differ in three points. Where a weight set states a cost for two zones of different regions, that more precise figure
is used instead of the regions' (the plugin looks only at regions). So is that of two segments inside their zone, which
the plugin does not know. A pair whose cost is not known costs 100 there; here it costs more than every known pair, and
100 at least: a pair that is cut must not look near.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from berth.api.base import format_timestamp
from berth.api.conditions import ConditionStatus
from berth.api.labels import (
    LABEL_REGION,
    LABEL_SEGMENT,
    LABEL_ZONE,
    WEIGHTS_DIJKSTRA,
    WEIGHTS_NETPERF,
    WEIGHTS_USER_DEFINED,
)
from berth.api.networktopology import (
    CONDITION_SOURCE_AVAILABLE,
    SOURCE_STATED,
    NetworkTopology,
    closed_pairs,
    iter_costs,
)
from berth.network.link_budgets import PlacePair, read_budgets

SAME_ZONE_COST = 1.0
"""Cost between two nodes of one zone, or of one region without zones, unless their segments have one."""
UNKNOWN_COST = 100.0
"""The least that a pair of unknown cost counts as, and always does in the score of the NetworkOverhead plugin."""
DEFAULT_WEIGHT_SETS = (WEIGHTS_DIJKSTRA, WEIGHTS_NETPERF, WEIGHTS_USER_DEFINED)
"""Weight sets by preference: a pair of places takes its cost from the first set of its scale that has it."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a node stands; empty text for a label that it lacks."""

    region: str = ""
    """value of topology.kubernetes.io/region"""
    zone: str = ""
    """value of topology.kubernetes.io/zone"""
    segment: str = ""
    """value of topology.kubernetes.io/segment: a part of the zone, or of the region where it has no zones"""

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Place:
        """Read it from a node's labels."""
        return cls(labels.get(LABEL_REGION, ""), labels.get(LABEL_ZONE, ""), labels.get(LABEL_SEGMENT, ""))

    def shares_zone(self, other: Place) -> bool:
        """Whether both are in one zone, or in one region without zones."""
        return (self.region, self.zone) == (other.region, other.zone) and bool(self.region or self.zone)


@dataclass(frozen=True, slots=True)
class NetworkCosts:
    """Costs between regions, between zones and between segments."""

    source: str = ""
    """``namespace/name`` of the NetworkTopology, empty when there is none."""
    uid: str = ""
    """metadata.uid of the NetworkTopology"""
    absent: str = ""
    """``namespace/name`` of the NetworkTopology that the configuration names and that is not there; else empty"""
    weight_sets: tuple[str, ...] = ()
    """Names of the weight sets that were read, by preference."""
    data_time: str = ""
    """When the newest measurement was made, RFC 3339; empty when not known."""
    generation: int = 0
    """metadata.generation of the NetworkTopology when it was edited last"""
    current: bool = True
    """False while computed weight sets are those of an earlier generation, or lack the measurements that it names"""
    zones: dict[Pair, float] = field(default_factory=dict)
    """Cost by (origin zone, destination zone)."""
    regions: dict[Pair, float] = field(default_factory=dict)
    """Cost by (origin region, destination region)."""
    segments: dict[Pair, float] = field(default_factory=dict)
    """Cost by (origin segment, destination segment), two different ones; it counts inside a zone."""
    cut_segments: frozenset[Pair] = frozenset()
    """Such pairs that do not reach each other."""
    budgets: Mapping[PlacePair, int] = field(default_factory=dict)
    """bit/s that placed dependency edges may take between two places, where that is stated"""
    unknown_cost: float = field(init=False)
    """What a pair counts as whose cost is not known: 100, or one more than the dearest known cost if that is more."""

    def __post_init__(self) -> None:
        """Look for the dearest known cost."""
        dearest = max((*self.zones.values(), *self.regions.values(), *self.segments.values()), default=0.0)
        object.__setattr__(self, "unknown_cost", max(UNKNOWN_COST, dearest + 1))

    @property
    def available(self) -> bool:
        """False when there is no NetworkTopology, or an empty one: every cost is unknown then."""
        return bool(self.zones or self.regions or self.segments)

    def judges_as(self, other: NetworkCosts) -> bool:
        """Whether all that placement follows is the same: what a place costs, and what links carry.

        Measurements that are made anew are of a later time and mostly of the same costs.
        """
        return self is other or self._judged == other._judged

    @property
    def _judged(self) -> tuple[object, ...]:
        return (self.zones, self.regions, self.segments, self.cut_segments, self.budgets)

    @property
    def missing(self) -> str:
        """Why there are no costs, for people; empty when there are."""
        if self.available:
            return ""
        if self.absent:
            return (
                f"NetworkTopology {self.absent}, which the configuration names, does not exist or cannot be read; no "
                "other is used in its place and only equal zones count as close"
            )
        return "no NetworkTopology with costs; only equal zones count as close"

    def between(self, origin: Place, destination: Place) -> float | None:
        """Cost between two different nodes at these places; None when not known."""
        if origin.shares_zone(destination):
            pair = (origin.segment, destination.segment)
            return None if pair in self.cut_segments else self.segments.get(pair, SAME_ZONE_COST)
        if origin.zone and destination.zone:
            known = self.zones.get((origin.zone, destination.zone))
            if known is not None:
                return known
        if origin.region and destination.region and origin.region != destination.region:
            return self.regions.get((origin.region, destination.region))
        return None

    def matrix(self, places: Sequence[Place], *, unknown: float | None = None) -> npt.NDArray[np.float64]:
        """Costs between places as float64[L, L], origin by destination; those not known are `unknown_cost`.

        With `unknown`, they are that instead.
        """
        unknown = self.unknown_cost if unknown is None else unknown
        # Segments may be many, and all of a zone cost the same but for pairs of them.
        numbers: dict[Place, int] = {}
        zone = [numbers.setdefault(replace(place, segment=""), len(numbers)) for place in places]
        costs = np.full((len(numbers), len(numbers)), unknown)
        between_regions = {pair: cost for pair, cost in self.regions.items() if pair[0] != pair[1]}
        # Zones may be as many as nodes: only pairs with a cost are gone through. What comes later counts.
        for known, names in (
            (between_regions, [one.region for one in numbers]),
            (self.zones, [one.zone for one in numbers]),
        ):
            where: dict[str, list[int]] = {}
            for row, name in enumerate(names):
                if name:
                    where.setdefault(name, []).append(row)
            for (origin, destination), cost in known.items():
                here, there = where.get(origin), where.get(destination)
                if here and there:
                    costs[(here[0], there[0]) if len(here) == len(there) == 1 else np.ix_(here, there)] = cost
        for row, place in enumerate(numbers):
            if place.shares_zone(place):
                costs[row, row] = SAME_ZONE_COST
        if len(numbers) < len(places):
            costs = costs[np.ix_(zone, zone)]
        rows: dict[str, list[int]] = {}
        for row, place in enumerate(places):
            if place.segment:
                rows.setdefault(place.segment, []).append(row)
        for pair in (*self.segments, *self.cut_segments) if rows else ():
            for row in rows.get(pair[0], ()):
                for column in rows.get(pair[1], ()):
                    if places[row].shares_zone(places[column]):
                        costs[row, column] = unknown if pair in self.cut_segments else self.segments[pair]
        return costs


NO_COSTS = NetworkCosts()


@lru_cache(maxsize=64)
def absent_costs(name: str) -> NetworkCosts:
    """Return the costs while the configured NetworkTopology `name` is absent: none; the same object every time."""
    return NetworkCosts(absent=name)


def read_costs(
    topology: NetworkTopology, *, weight_sets: Sequence[str] = DEFAULT_WEIGHT_SETS, edited: int | None = None
) -> NetworkCosts:
    """Take the costs out of a NetworkTopology; entries without a cost stay unknown.

    Costs of different scales are not mixed: of each topology key, the first of the sets that has a cost decides the
    scale, measured or stated, and sets of the other scale are not read there.

    Args:
        topology: the NetworkTopology.
        weight_sets: names of weight sets by preference.
        edited: its generation when it was edited last, if nothing else than bandwidthAllocated is newer.
    """
    generation = topology.metadata.generation if edited is None else edited
    observed = topology.status.observed_generation
    outdated = observed is not None and observed < generation
    zones, of_zones = _read_level(topology, LABEL_ZONE, weight_sets, outdated=outdated)
    regions, of_regions = _read_level(topology, LABEL_REGION, weight_sets, outdated=outdated)
    segments, of_segments = _read_level(topology, LABEL_SEGMENT, weight_sets, outdated=outdated)
    moment = topology.status.data_time or topology.status.weight_calculation_time
    return NetworkCosts(
        source=topology.key,
        uid=topology.metadata.uid,
        weight_sets=tuple(name for name in weight_sets if name in of_zones | of_regions | of_segments),
        data_time=format_timestamp(moment) if moment else "",
        generation=generation,
        current=not outdated and _current(topology),
        zones=zones,
        regions=regions,
        segments={pair: cost for pair, cost in segments.items() if _two(pair)},
        cut_segments=frozenset(_cut_segments(topology, weight_sets, segments, of_segments)),
        budgets=read_budgets(topology, weight_sets),
    )


def _current(topology: NetworkTopology) -> bool:
    """Whether the computed sets are of the measurements that the spec names, as far as their controller says."""
    missing = any(
        item.type == CONDITION_SOURCE_AVAILABLE and item.status is ConditionStatus.FALSE
        for item in topology.status.conditions
    )
    return not (missing and topology.spec.configmap_name)


def _read_level(
    topology: NetworkTopology, key: str, weight_sets: Sequence[str], *, outdated: bool
) -> tuple[dict[Pair, float], set[str]]:
    """Return the costs of one topology key, and the names of the weight sets that they were read from.

    Args:
        topology: the NetworkTopology.
        key: the topology key.
        weight_sets: names of weight sets by preference.
        outdated: whether its status is of an earlier spec.
    """
    table: dict[Pair, float] = {}
    read: dict[str, str] = {}
    for name in weight_sets:
        weights = topology.weight_set(name)
        scale = _scale(topology, name, outdated=outdated)
        if weights is None or not {scale}.issuperset(read.values()):
            continue
        for origin, destination, cost in iter_costs(weights, key):
            if cost.network_cost is not None:
                table.setdefault((origin, destination), float(cost.network_cost))
                read[name] = scale
    return table, set(read)


def _cut_segments(
    topology: NetworkTopology, weight_sets: Sequence[str], costs: Mapping[Pair, float], read: Collection[str]
) -> set[Pair]:
    """Return the pairs of different segments that have no link.

    Sets before the first that has a cost say so of whatever the others state: all that was measured may be cut.

    Args:
        topology: the NetworkTopology.
        weight_sets: names of weight sets by preference.
        costs: costs of segments.
        read: names of the weight sets that these were read from.
    """
    cut: set[Pair] = set()
    before = True
    for name in weight_sets:
        before = before and name not in read
        weights = topology.weight_set(name)
        if weights is not None and (before or name in read):
            closed = closed_pairs(weights, LABEL_SEGMENT)
            cut |= {pair for pair in closed if _two(pair) and (before or pair not in costs)}
    return cut


def _two(pair: Pair) -> bool:
    """Return whether these are two segments; upstream's controller has an empty name for nodes without the label."""
    return pair[0] != pair[1] and all(pair)


def _scale(topology: NetworkTopology, name: str, *, outdated: bool) -> str:
    """Return a name of the scale of a weight set's costs; those of equal scale may be compared.

    The controller writes NetperfCosts whenever it measures; without it, Dijkstra has paths over stated costs. So it has
    beside a NetperfCosts that another controller has left, where the status says that what is stated was the source.
    """
    if name != WEIGHTS_DIJKSTRA:
        return name
    stated = topology.status.source == SOURCE_STATED and not outdated
    return WEIGHTS_USER_DEFINED if stated or topology.weight_set(WEIGHTS_NETPERF) is None else WEIGHTS_NETPERF
