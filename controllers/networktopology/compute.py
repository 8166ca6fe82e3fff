"""One NetworkTopology's costs from everything that is known: measurements, stated costs, places of nodes.

Composition. Region costs are cheapest paths over links between regions; zone costs are cheapest paths over links
between zones, which may lead through zones of other regions where such links are measured or stated. Zone costs
are given inside a region only: between zones of different regions the region cost applies, as NetworkOverhead
reads it, so a region's cost never turns into a detour between two of its own zones. A zone whose region is not
known, because no node carries it yet, counts as inside the region of the zones that its stated links reach.
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
from controllers.networktopology.aggregation import Pair, aggregate
from controllers.networktopology.algorithms import ALGORITHMS, PathAlgorithm
from controllers.networktopology.graph import CostGraph, PathCosts, TooManyPlacesError
from controllers.networktopology.places import Places
from controllers.networktopology.scale import COST_UNIT, to_cost
from controllers.networktopology.sources.base import Latencies, Measurement, Reading

MAX_COST: Final = 2**63 - 1
"""Largest cost that the API can carry; a longer path counts as this far."""
MAX_COSTS: Final = 50_000
"""Most costs between regions, or between zones, of a weight set: an object has no room for as many."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of one weight set."""

    regions: dict[Pair, int] = field(default_factory=dict)
    """ordered pair of regions to cost"""
    zones: dict[Pair, int] = field(default_factory=dict)
    """ordered pair of zones of one region to cost"""

    def __bool__(self) -> bool:
        """Return whether there is any cost."""
        return bool(self.regions or self.zones)

    def replaced_by(self, others: Costs) -> Costs:
        """Return these costs with those of others in the place of the same pairs; others have no pairs of their own."""
        regions, zones = (
            {pair: theirs.get(pair, cost) for pair, cost in ours.items()}
            for ours, theirs in ((self.regions, others.regions), (self.zones, others.zones))
        )
        return Costs(regions, zones)

    def scaled(self, unit: int) -> Costs:
        """Return the costs of latencies in microseconds, of which ``unit`` cost 1."""
        regions, zones = (
            {pair: to_cost(figure, unit) for pair, figure in level.items()} for level in (self.regions, self.zones)
        )
        return Costs(regions, zones)


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
    missing_regions: tuple[Pair, ...] = ()
    """ordered pairs of regions with nodes and without a path"""
    missing_zones: tuple[Pair, ...] = ()
    """ordered pairs of zones of one region with nodes and without a path"""


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
    sets: dict[str, Costs] = {}
    if reading.stated is not None:
        regions, zones = reading.stated.regions, reading.stated.zones
        direct = None
        cut = frozenset[Pair](), frozenset[Pair]()
    else:
        between_regions, between_zones = reading.latencies or _medians(reading.measurements, places)
        cut = between_regions.cut, between_zones.cut
        regions, zones = CostGraph(between_regions.known), CostGraph(between_zones.known)
        direct = Costs(between_regions.known, _inside_regions(zones, places))
    cheapest = _cheapest(ALGORITHMS[algorithm], regions, zones, places, cut)
    if cheapest:
        sets[algorithm] = cheapest if direct is None else cheapest.replaced_by(direct).scaled(cost_unit)
    if direct:
        sets[WEIGHTS_NETPERF] = direct.scaled(cost_unit)
    known_regions = _links(regions) if cheapest is None else cheapest.regions
    known_zones = _links(zones) if cheapest is None else cheapest.zones
    return Computation(
        sets=sets,
        basis=reading.name if reading.usable else "",
        measured=reading.usable and reading.stated is None,
        too_large=cheapest is None,
        missing_regions=tuple(pair for pair in places.region_pairs() if pair not in known_regions),
        missing_zones=tuple(pair for pair in places.zone_pairs() if pair not in known_zones),
    )


def _medians(measurements: Iterable[Measurement], places: Places) -> tuple[Latencies, Latencies]:
    samples = [(origin, destination, figure) for origin, destination, figure, _ in measurements]
    return Latencies(aggregate(samples, places.region_of_node)), Latencies(aggregate(samples, places.zone_of))


def _cheapest(
    paths: PathAlgorithm,
    regions: CostGraph,
    zones: CostGraph,
    places: Places,
    cut: tuple[frozenset[Pair], frozenset[Pair]],
) -> Costs | None:
    """Return the costs of the cheapest paths; None where there are too many of them."""
    cut_regions, cut_zones = cut
    try:
        return Costs(
            _gather(paths(regions), lambda _, row: row, cut_regions),
            _gather(paths(zones), places.inside_region, cut_zones),
        )
    except TooManyPlacesError:
        return None


def _gather(
    paths: PathCosts, wanted: Callable[[str, Mapping[str, int]], Mapping[str, int]], cut: frozenset[Pair]
) -> dict[Pair, int]:
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


def _links(graph: CostGraph) -> set[Pair]:
    return {(origin, destination) for origin, destination, _ in graph.links()}


def _inside_regions(zones: CostGraph, places: Places) -> dict[Pair, int]:
    rows = ((origin, places.inside_region(origin, zones.links_from(origin))) for origin in zones.places)
    return {(origin, destination): cost for origin, row in rows for destination, cost in row.items()}
