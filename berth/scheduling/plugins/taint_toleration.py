"""TaintToleration (filter, score, cost): hard taints must be tolerated, fewer soft ones are better."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from berth.scheduling.cache.selection import tolerated
from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes, ScorePlugin, scaled_to_greatest
from berth.scheduling.replicas.problem import SOFT_RULE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Bools, Floats

REASON = "node(s) had untolerated taint(s)"


class TaintToleration(FilterPlugin, ScorePlugin):
    """Rejects nodes with a NoSchedule or NoExecute taint that is not tolerated; counts PreferNoSchedule ones."""

    name = "TaintToleration"
    score_weight = 3.0
    in_objective = True

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Nodes with untolerated taints."""
        return (RejectedNodes(REASON, ~cycle.cluster.selection.tolerated(cycle.pod.template)),)

    @override
    def score(self, cycle: CycleState, feasible: Bools) -> Floats:
        """Number of untolerated soft taints on each node."""
        nodes = cycle.cluster.nodes
        tolerations = [t for t in cycle.pod.template.tolerations if t.effect in ("", "PreferNoSchedule")]
        sets = nodes.taint_sets
        table = np.fromiter(
            (sum(t.effect == "PreferNoSchedule" and not tolerated(tolerations, t) for t in taints) for taints in sets),
            dtype=np.float64,
            count=len(sets),
        )
        return table[nodes.taint_ids]

    def objective_cost(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """A price for every untolerated soft taint; none where no node has one."""
        cost: Floats = SOFT_RULE * self.score(cycle, feasible)
        return cost if cost.any() else None

    def normalize_score(self, raw: Floats, feasible: Bools) -> Floats:
        """100 without such taints, 0 for the node with the most."""
        return scaled_to_greatest(raw, feasible, reverse=True)
