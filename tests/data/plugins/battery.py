"""Battery (score): pods stay on nodes that are on mains power, as far as nothing else speaks against it.

An example of a new score: this file, and its class in the list of plugins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.scheduling.framework.plugin import ScorePlugin, percentages

if TYPE_CHECKING:
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Bools, Floats

LABEL = "example.com/power"
"""Node label: ``mains`` or ``battery``."""


class Battery(ScorePlugin):
    """100 for nodes on mains power, 0 for all others."""

    name = "Battery"
    score_weight = 4.0
    cost_weight = 3.0

    def score(self, cycle: CycleState, feasible: Bools) -> Floats:
        """100 or 0 per node."""
        cluster = cycle.cluster
        return 100.0 * cluster.nodes.column(LABEL).among({"mains"}, cluster.size).astype(float)

    def normalize_score(self, raw: Floats, feasible: Bools) -> Floats:
        """Raw values are percentages already."""
        return percentages(raw, feasible)
