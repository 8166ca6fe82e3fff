"""One NetworkTopology's costs from everything that is known: measurements, stated costs, places of nodes.

Composition. Region costs are cheapest paths over links between regions; zone costs are cheapest paths over links
between zones, which may lead through zones of other regions where such links are measured or stated. Zone costs
are given inside a region only: between zones of different regions the region cost applies, as NetworkOverhead
reads it, so a region's cost never turns into a detour between two of its own zones. A zone whose region is not
known, because no node carries it yet, counts as inside the region of the zones that its stated links reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from berth.api.labels import WEIGHTS_DIJKSTRA, WEIGHTS_NETPERF
from berth.api.networktopology import NetworkTopology
from controllers.networktopology.aggregation import Pair, aggregate
from controllers.networktopology.algorithms import path_algorithm
from controllers.networktopology.graph import Graph
from controllers.networktopology.places import Places
from controllers.networktopology.sources.base import Reading, SourceState
from controllers.networktopology.sources.userdefined import stated_costs

MAX_COST: Final = 2**63 - 1
"""Largest cost that the API can carry; a longer path counts as this far."""


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


@dataclass(frozen=True, slots=True)
class Computation:
    """What was computed from which source, and what could not be."""

    sets: dict[str, Costs]
    """computed weight sets by name, in the order in which they are written; a set without any cost is left out"""
    basis: str
    """source of the path costs for people, empty without one"""
    measured: bool
    """whether that source is measurements, not what people stated"""
    samples: int
    """measurements or stated costs behind the path costs"""
    missing_regions: tuple[Pair, ...] = ()
    """ordered pairs of regions with nodes and without a path"""
    missing_zones: tuple[Pair, ...] = ()
    """ordered pairs of zones of one region with nodes and without a path"""


def compute(
    topology: NetworkTopology, reading: Reading, places: Places, *, algorithm: str = WEIGHTS_DIJKSTRA
) -> Computation:
    """Return the computed weight sets.

    Measurements come first; without a usable one the costs that people stated are the source.

    Args:
        topology: the NetworkTopology.
        reading: what the source that its spec names says; it must be settled.
        places: where nodes are.
        algorithm: path algorithm, which is also the name of its weight set.

    Raises:
        UnknownAlgorithmError: there is no such algorithm.
    """
    paths = path_algorithm(algorithm)
    sets: dict[str, Costs] = {}
    if reading.state is SourceState.READ:
        between_regions = aggregate(reading.measurements, places.region_of_node)
        between_zones = aggregate(reading.measurements, places.zone_of)
        regions = Graph((*pair, found.cost) for pair, found in between_regions.items())
        zones = Graph((*pair, found.cost) for pair, found in between_zones.items())
        basis, samples = reading.name, len(reading.measurements)
        direct = Costs(
            {pair: found.cost for pair, found in between_regions.items()},
            {pair: found.cost for pair, found in between_zones.items() if _inside_region(pair, places)},
        )
    else:
        stated = stated_costs(topology, places.region_of)
        regions, zones = stated.regions, stated.zones
        basis, samples = ("UserDefined" if stated.count else ""), stated.count
        direct = None
    cheapest = Costs(
        _flatten(paths(regions)),
        {pair: cost for pair, cost in _flatten(paths(zones)).items() if _inside_region(pair, places)},
    )
    if cheapest:
        sets[algorithm] = cheapest
    if direct:
        sets[WEIGHTS_NETPERF] = direct
    return Computation(
        sets=sets,
        basis=basis,
        measured=reading.state is SourceState.READ,
        samples=samples,
        missing_regions=tuple(pair for pair in places.region_pairs() if pair not in cheapest.regions),
        missing_zones=tuple(pair for pair in places.zone_pairs() if pair not in cheapest.zones),
    )


def _flatten(paths: dict[str, dict[str, int]]) -> dict[Pair, int]:
    return {
        (origin, destination): min(cost, MAX_COST)
        for origin, row in sorted(paths.items())
        for destination, cost in sorted(row.items())
    }


def _inside_region(pair: Pair, places: Places) -> bool:
    """Whether both zones may be of one region: unknown regions do not separate."""
    first, second = places.region_of.get(pair[0]), places.region_of.get(pair[1])
    return first is None or second is None or first == second
