"""One NetworkTopology's costs from everything that is known: measurements, stated costs, places of nodes.

Composition. Region costs are cheapest paths over links between regions; zone costs are cheapest paths over links
between zones, which may lead through zones of other regions where such links are measured or stated. Zone costs
are given inside a region only: between zones of different regions the region cost applies, as NetworkOverhead
reads it, so a region's cost never turns into a detour between two of its own zones. A zone whose region is not
known, because no node carries it yet, counts as inside the region of the zones that its stated links reach. Costs of
segments are given inside a zone only, as those of zones are inside a region.
Measured latencies are added up in microseconds and become costs at the end, so that paths are
rounded once. Paths fill in for pairs that nobody measured: packets go the way they go, however short the round trips to
a third place, so that a measured pair keeps its measure, and one that was measured and does not reach each other has
no cost. What people state are prices, of which the cheapest path is the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from berth.api.labels import WEIGHTS_DIJKSTRA, WEIGHTS_NETPERF
from controllers.networktopology.aggregation import Pair, aggregate, inside_zones
from controllers.networktopology.algorithms import ALGORITHMS, PathAlgorithm
from controllers.networktopology.graph import CostGraph, PathCosts, TooManyPlacesError
from controllers.networktopology.place_pairs import NO_PAIRS, PlacePairs
from controllers.networktopology.places import Places, Site
from controllers.networktopology.scale import COST_UNIT, to_cost
from controllers.networktopology.sources.base import Latencies, LatenciesByLevel, Measurement, Reading

MAX_COST: Final = 2**63 - 1
"""Largest cost that the API can carry; a longer path counts as this far."""
MAX_COSTS: Final = 50_000
"""Most costs between regions, between zones or between segments of a weight set: an object has no room for as many."""
MAX_SEGMENT_COSTS: Final = 10_000
"""Most costs between segments of a weight set, those of 100 in one zone; zones with the fewest come first."""


_Wanted = Callable[[str, Mapping[str, int]], Mapping[str, int]]
"""Of the costs from a place, those to give."""
_NOTHING: Final = LatenciesByLevel(Latencies({}), Latencies({}))


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of one weight set."""

    regions: dict[Pair, int] = field(default_factory=dict)
    """ordered pair of regions to cost"""
    zones: dict[Pair, int] = field(default_factory=dict)
    """ordered pair of zones of one region to cost"""
    segments: dict[Pair, int] = field(default_factory=dict)
    """ordered pair of segments of one zone to cost"""
    cut_segments: frozenset[Pair] = frozenset()
    """ordered pairs of segments of one zone that do not reach each other: without a cost they would be as near as any
    two nodes of the zone"""

    def __bool__(self) -> bool:
        """Return whether there is anything to say."""
        return bool(self.regions or self.zones or self.segments or self.cut_segments)

    def replaced_by(self, others: Costs) -> Costs:
        """Return these costs with those of others for the same pairs, and their cuts; others have no more pairs."""
        return Costs(
            _replaced(self.regions, others.regions),
            _replaced(self.zones, others.zones),
            _replaced(self.segments, others.segments),
            others.cut_segments,
        )

    def scaled(self, unit: int) -> Costs:
        """Return the costs of latencies in microseconds, of which ``unit`` cost 1."""
        regions, zones, segments = (
            {pair: to_cost(figure, unit) for pair, figure in level.items()}
            for level in (self.regions, self.zones, self.segments)
        )
        return Costs(regions, zones, segments, self.cut_segments)


@dataclass(frozen=True, slots=True)
class Computation:
    """What was computed from which source, and what could not be."""

    sets: dict[str, Costs]
    """computed weight sets by name, in the order in which they are written; a set without any cost is left out"""
    basis: str
    """source of the path costs for people, empty without one"""
    measured: bool
    """whether that source is measurements, not what people stated"""
    too_large: bool = False
    """whether it connects more places than paths are computed for; then only direct links count"""
    missing_regions: PlacePairs = NO_PAIRS
    """ordered pairs of regions with nodes and without a path"""
    missing_zones: PlacePairs = NO_PAIRS
    """ordered pairs of zones of one region with nodes and without a path"""
    cut_segments: tuple[Pair, ...] = ()
    """ordered pairs of segments of one zone that were measured and do not reach each other"""
    crowded: tuple[Site, ...] = ()
    """regions and zones with so many segments that their costs, of which some are known, are not given"""
    left_out: tuple[str, ...] = ()
    """computed costs that the object has no room for, as phrases"""


def compute(
    reading: Reading, places: Places, *, algorithm: str = WEIGHTS_DIJKSTRA, cost_unit: int = COST_UNIT
) -> Computation:
    """Return the computed weight sets.

    Args:
        reading: what the source of costs says, measurements or stated costs; empty when there are none.
        places: where nodes are.
        algorithm: one of :data:`~.algorithms.ALGORITHMS`, whose name is that of its weight set.
        cost_unit: microseconds of a measured latency that cost 1; stated costs have a scale of their own.
    """
    crowded = _crowded(places)
    direct: Costs | None = None
    measured = _NOTHING
    if reading.stated is not None:
        segments = reading.stated.segments
        graphs = reading.stated.regions, reading.stated.zones, _sparse(segments, places, crowded)
    else:
        measured = reading.latencies or _medians(reading.measurements, places)
        regions, zones, segments = (CostGraph(level.known) for level in measured)
        graphs = regions, zones, _sparse(segments, places, crowded)
        direct = Costs(
            measured.regions.known,
            _within(zones, places.inside_region),
            _within(graphs[2], places.inside_zone),
            frozenset(pair for pair in measured.segments.cut if places.site_of.get(pair[0]) not in crowded),
        )
    cheapest = _cheapest(ALGORITHMS[algorithm], graphs, places, measured)
    sets: dict[str, Costs] = {}
    if cheapest:
        sets[algorithm] = cheapest if direct is None else cheapest.replaced_by(direct).scaled(cost_unit)
    if direct:
        sets[WEIGHTS_NETPERF] = direct.scaled(cost_unit)
    known_regions = _links(graphs[0]) if cheapest is None else cheapest.regions
    known_zones = _links(graphs[1]) if cheapest is None else cheapest.zones
    return Computation(
        sets=sets,
        basis=reading.name if reading.usable else "",
        measured=reading.usable and reading.stated is None,
        too_large=cheapest is None,
        missing_regions=places.region_pairs().without(known_regions),
        missing_zones=places.zone_pairs().without(known_zones),
        cut_segments=tuple(sorted(direct.cut_segments)) if direct else (),
        crowded=tuple(sorted(crowded & _sites([*_links(segments), *measured.segments.cut], places))),
    )


def _medians(measurements: Iterable[Measurement], places: Places) -> LatenciesByLevel:
    samples = [(origin, destination, figure) for origin, destination, figure, _ in measurements]
    return LatenciesByLevel(
        Latencies(aggregate(samples, places.region_of_node)),
        Latencies(aggregate(samples, places.zone_of)),
        Latencies(aggregate(inside_zones(samples, places), places.segment_of)),
    )


def _crowded(places: Places) -> frozenset[Site]:
    """Return the regions and zones whose segments have no costs, since an object has no room for as many."""
    left, crowded = MAX_SEGMENT_COSTS, set[Site]()
    for site, segments in sorted(places.segments_of.items(), key=lambda item: (len(item[1]), item[0])):
        left -= len(segments) * (len(segments) - 1)
        if left < 0:
            crowded.add(site)
    return frozenset(crowded)


def _sites(pairs: Iterable[Pair], places: Places) -> set[Site]:
    """Return the regions and zones whose segments these are."""
    return {places.site_of[segment] for pair in pairs for segment in pair if segment in places.site_of}


def _sparse(segments: CostGraph, places: Places, crowded: frozenset[Site]) -> CostGraph:
    """Return the links between segments that are not of these regions and zones."""
    if not crowded:
        return segments
    links = segments.links()
    return CostGraph({(one, other): cost for one, other, cost in links if places.site_of.get(one) not in crowded})


def _cheapest(
    paths: PathAlgorithm, graphs: tuple[CostGraph, CostGraph, CostGraph], places: Places, measured: LatenciesByLevel
) -> Costs | None:
    """Return the costs of the cheapest paths; None where there are too many of them."""
    wanted: tuple[_Wanted, _Wanted, _Wanted] = (lambda _, row: row, places.inside_region, places.inside_zone)
    try:
        regions, zones, segments = (
            _gather(paths(graph), want, of.cut) for graph, want, of in zip(graphs, wanted, measured, strict=True)
        )
    except TooManyPlacesError:
        return None
    return Costs(regions, zones, segments)


def _gather(paths: PathCosts, wanted: _Wanted, cut: frozenset[Pair]) -> dict[Pair, int]:
    """Return the costs of those pairs that are wanted of each place's row and are not cut, sorted.

    Raises:
        TooManyPlacesError: there are more than :data:`MAX_COSTS`, or finding them takes too long.
    """
    found: dict[Pair, int] = {}
    for origin, row in paths:
        for destination, cost in sorted(wanted(origin, row).items()):
            pair = (origin, destination)
            if pair not in cut:
                found[pair] = min(cost, MAX_COST)
        if len(found) > MAX_COSTS:
            raise TooManyPlacesError
    return found


def _replaced(ours: Mapping[Pair, int], theirs: Mapping[Pair, int]) -> dict[Pair, int]:
    return {pair: theirs.get(pair, cost) for pair, cost in ours.items()}


def _links(graph: CostGraph) -> set[Pair]:
    return {(origin, destination) for origin, destination, _ in graph.links()}


def _within(graph: CostGraph, wanted: _Wanted) -> dict[Pair, int]:
    """Return the costs of those links that are wanted."""
    rows = ((origin, wanted(origin, graph.links_from(origin))) for origin in graph.places)
    return {(origin, destination): cost for origin, row in rows for destination, cost in row.items()}
