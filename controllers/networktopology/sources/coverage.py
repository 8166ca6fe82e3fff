"""How much of the cluster ProbeReports measure, and whether costs may begin to come from them. No I/O.

While agents are rolled out the first few measure a few pairs of zones, each from one end: costs from these alone would
leave most pairs unknown and believe one node. Once costs come from reports, agents that fall out change nothing here:
what was measured is better than going to and fro.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from berth.api.text import counted
from controllers.networktopology.aggregation import Pair
from controllers.networktopology.node_medians import PairFigures
from controllers.networktopology.places import Places
from controllers.networktopology.sources.base import Measurement

SHARE: Final = 0.9
"""Share of the pairs of zones, or of the nodes, from which on it is enough."""
FEWEST_NODES: Final = 2
"""Nodes that measure a pair of zones, from either end: what one alone says may be wrong."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What of the cluster is measured."""

    reporting: int
    """nodes that measure others"""
    nodes: int
    """nodes of the cluster"""
    measured: int
    """pairs of zones that at least :data:`FEWEST_NODES` nodes measure, both directions as one"""
    pairs: int
    """pairs of zones with nodes"""

    @property
    def enough(self) -> bool:
        """Whether costs may begin to come from it.

        Either share will do: agents of some nodes alone may measure all zones, and a cluster with more pairs of zones
        than probes never has all of them measured.
        """
        of_pairs = self.pairs > 0 and self.measured >= SHARE * self.pairs
        return of_pairs or self.reporting >= SHARE * self.nodes

    def __str__(self) -> str:
        """Return it for people."""
        return (
            f"{self.reporting} of {counted(self.nodes, 'node')} report, and {FEWEST_NODES} nodes or more measure "
            f"{self.measured} of {counted(self.pairs, 'pair')} of zones"
        )


def coverage(measurements: Iterable[Measurement], zone_figures: Mapping[Pair, PairFigures], places: Places) -> Coverage:
    """Return what of the cluster is measured.

    Args:
        measurements: those that count.
        zone_figures: figures between zones that were worked out from them.
        places: where the nodes are.
    """
    zones = len(places.zones)
    return Coverage(
        reporting=len({item.origin for item in measurements}),
        nodes=len(places.nodes),
        measured=sum(a < b and figures.nodes >= FEWEST_NODES for (a, b), figures in zone_figures.items()),
        pairs=zones * (zones - 1) // 2,
    )
