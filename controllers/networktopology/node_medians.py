"""From round trips between nodes to latencies between places, so that no single node can move one.

A node's figure of a place is the median of what it measures of the nodes there, and the latency is the median of the
nodes' figures: a node with many peers counts once. Both medians are weighted by age, and what is older than
:data:`MAX_AGE` does not count. A round trip leads both ways, so a direction that fewer than :data:`FEWEST_NODES` nodes
measure also takes in those that measure the other, and so does one in which most reach one node alone, which may be
slow or cut off; any other stands for itself. Nodes count there by age too, as in medians. Of three nodes that measure
and are alive, none outweighs the others; of two, the lower figure counts, so that one of them can neither make a pair
dearer than the other measures nor cut it.

A node that answers nothing is infinitely far. A pair of places that is so by the median is cut: it has no latency, and
must not get one by way of others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from berth.kube.probe_reports import FRESH_AGE
from controllers.networktopology.aggregation import Pair
from controllers.networktopology.sources.base import UNREACHABLE, Latencies, Measurement

MAX_AGE: Final = 900.0
"""Seconds after which a measurement does not count."""
FEWEST_NODES: Final = 3
"""Nodes that make a direction stand for itself, those with old measurements in part: of two, a wrong one is half."""
_TIE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class PairFigures:
    """What was measured between two places, in one direction."""

    microseconds: int
    """latency; :data:`~.sources.base.UNREACHABLE` when most nodes have no answer"""
    minimum: int
    """least that counted, in microseconds"""
    maximum: int
    """most that counted, in microseconds"""
    samples: int
    """pairs of nodes that counted"""
    nodes: int
    """nodes that measured them"""
    age: float
    """seconds since the newest was measured"""
    one_decides: bool
    """whether one node outweighs all others, by age too, so that what it says counts whatever these say"""


class _NodeFigure(NamedTuple):
    microseconds: int
    weight: float
    samples: list[Measurement]


def weight_of(age: float) -> float:
    """Return what a measurement counts ``age`` seconds after it was made.

    1 up to :data:`FRESH_AGE`, then (900 - age) / 570, 0 at the limit. Those of agents that work weigh the same, or the
    median of two would be now the one and now the other.
    """
    return 1.0 if age <= FRESH_AGE else max(0.0, (MAX_AGE - age) / (MAX_AGE - FRESH_AGE))


def pair_figures(measurements: Iterable[Measurement], place_of: Callable[[str], str]) -> dict[Pair, PairFigures]:
    """Return the figures of every ordered pair of different places that was measured either way, sorted by pair.

    Args:
        measurements: round trips between nodes.
        place_of: place of a node, empty when it has none; such measurements and those inside a place are left out.
    """
    samples = list(measurements)
    # Nodes are few where measurements are many.
    place = {node: place_of(node) for node in {end for item in samples for end in (item.origin, item.destination)}}
    found: dict[Pair, dict[str, list[Measurement]]] = {}
    for item in samples:
        start, end = place[item.origin], place[item.destination]
        if start and end and start != end and item.age < MAX_AGE:
            found.setdefault((start, end), {}).setdefault(item.origin, []).append(item)
    nodes = {pair: [_of_node(row) for row in rows.values()] for pair, rows in found.items()}
    own_right = {pair for pair, row in nodes.items() if _stands_for_itself(row)}
    figures: dict[Pair, PairFigures] = {}
    for pair in sorted({*nodes, *((end, start) for start, end in nodes)}):
        back = (pair[1], pair[0])
        own, opposite = nodes.get(pair, []), nodes.get(back, [])
        if pair in own_right:
            figures[pair] = _of_pair(own)
        elif back in figures and back not in own_right:
            figures[pair] = figures[back]  # from the same nodes
        else:
            figures[pair] = _of_pair(own + opposite)
    return figures


def _stands_for_itself(nodes: list[_NodeFigure]) -> bool:
    """Return whether a direction needs not the other one: no node alone has made most of what its median weighs."""
    total = math.fsum(node.weight for node in nodes)
    if total < FEWEST_NODES:
        return False
    reached: dict[str, float] = defaultdict(float)
    for node in nodes:
        reached[_most_reached(node)] += node.weight
    reached.pop("", None)
    return 2 * max(reached.values(), default=0.0) <= total


def _most_reached(node: _NodeFigure) -> str:
    """Return whom more than half of the weight of a node's measurements is about; empty if nobody."""
    first = node.samples[0].destination
    if len(node.samples) == 1:
        return first
    weights: dict[str, float] = defaultdict(float)
    for item in node.samples:
        weights[item.destination] += weight_of(item.age)
    most = max(weights, key=weights.__getitem__)
    return most if 2 * weights[most] > math.fsum(weights.values()) else ""


def latencies(figures: Mapping[Pair, PairFigures]) -> Latencies:
    """Return the latencies, and the pairs that are cut."""
    known = {pair: item.microseconds for pair, item in figures.items() if item.microseconds < UNREACHABLE}
    return Latencies(known, frozenset(figures.keys() - known.keys()))


def of_several(figures: Mapping[Pair, PairFigures]) -> dict[Pair, PairFigures]:
    """Return those that no node decides alone.

    Agents see to several that measure a pair of zones. Of two segments it may be one, whatever it says.
    """
    return {pair: item for pair, item in figures.items() if not item.one_decides}


def weighted_median(values: Iterable[tuple[int, float]]) -> int:
    """Return the value with half of the weight on either side; of two in the middle, the lower.

    Load and loss make round trips longer, never shorter: the mean of two would follow the one that is disturbed.

    Raises:
        ValueError: there are no values.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("the median of nothing is unknown, not 0")
    half = math.fsum(weight for _, weight in ordered) / 2
    reached = 0.0
    for value, weight in ordered:
        reached += weight
        if reached > half or math.isclose(reached, half, rel_tol=_TIE):
            return value
    return ordered[-1][0]


def _of_node(samples: list[Measurement]) -> _NodeFigure:
    if len(samples) == 1:
        return _NodeFigure(samples[0].microseconds, weight_of(samples[0].age), samples)
    weights = [weight_of(item.age) for item in samples]
    figure = weighted_median((item.microseconds, weight) for item, weight in zip(samples, weights, strict=True))
    return _NodeFigure(figure, max(weights), samples)


def _of_pair(nodes: list[_NodeFigure]) -> PairFigures:
    samples = [item for node in nodes for item in node.samples]
    figures = [item.microseconds for item in samples]
    weights = [node.weight for node in nodes]
    return PairFigures(
        microseconds=weighted_median((node.microseconds, node.weight) for node in nodes),
        minimum=min(figures),
        maximum=max(figures),
        samples=len(samples),
        nodes=len(nodes),
        age=min(item.age for item in samples),
        one_decides=2 * max(weights) > math.fsum(weights) * (1 + _TIE),
    )
