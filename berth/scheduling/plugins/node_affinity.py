"""NodeAffinity (filter, score, cost): nodeSelector and required node affinity must match, preferred terms should."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes, ScorePlugin, scaled_to_greatest
from berth.scheduling.replicas.problem import SOFT_RULE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Bools, Floats

MAX_WEIGHT = 100
"""The greatest weight of a preferred term."""
REASON = "node(s) didn't match Pod's node affinity/selector"


class NodeAffinity(FilterPlugin, ScorePlugin):
    """Rejects nodes that are not selected; adds up the weights of the preferred terms that match a node."""

    name = "NodeAffinity"
    score_weight = 2.0
    in_objective = True

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Nodes that are not selected; none for pods that select nothing."""
        template = cycle.pod.template
        if not template.node_selector and template.required_affinity is None:
            return ()
        return (RejectedNodes(REASON, ~cycle.cluster.selection.affinity(template)),)

    @override
    def score(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """Sum of the weights of matching terms; no opinion on pods without preferred terms."""
        terms = cycle.pod.template.preferred_affinity
        if not terms:
            return None
        total = np.zeros(cycle.cluster.size)
        for term in terms:
            total[cycle.cluster.selection.term(term.preference)] += term.weight
        return total

    def objective_cost(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """A price for every preferred term that does not match, by its weight."""
        matching = self.score(cycle, feasible)
        if matching is None:
            return None
        most = sum(term.weight for term in cycle.pod.template.preferred_affinity)
        return SOFT_RULE * (most - matching) / MAX_WEIGHT

    def normalize_score(self, raw: Floats, feasible: Bools) -> Floats:
        """100 for the node with the greatest sum, the others in proportion."""
        return scaled_to_greatest(raw, feasible, reverse=False)
