"""PodTopologySpread: soft topologySpreadConstraints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.domains import counted_nodes, domain_sums, matching_pods
from berth.scheduling.cache.nodes import HOSTNAME
from berth.scheduling.plugins.scores.base import MAX_SCORE, Score, Values

if TYPE_CHECKING:
    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState

IGNORED = -1.0
"""Raw value of nodes that lack a topology key: they score 0."""


class PodTopologySpreadScore(Score):
    """Prefers domains with fewer matching pods.

    A constraint contributes count * ln(domains + 2) + maxSkew - 1, where domains is the number of
    domains among the feasible nodes: large domains in small numbers weigh as much as many small
    ones. The sum over the constraints is rounded.
    """

    name = "PodTopologySpread"

    def __init__(self, *, weight: float = 2.0) -> None:
        """``weight`` in the sum."""
        self.weight = weight

    def raw(self, info: PodInfo, state: ClusterState, feasible: Mask) -> Values | None:
        """Weighted matching pods around each node; no opinion on pods without soft constraints."""
        constraints = info.template.soft_spread
        if not constraints:
            return None
        complete: Mask = state.alive.copy()
        for constraint in constraints:
            complete &= state.domains(constraint.topology_key) >= 0
        scored = feasible & complete
        total = np.zeros(state.size)
        for constraint in constraints:
            ids = state.domains(constraint.topology_key)
            pods = matching_pods(constraint, info.template, state)
            if constraint.topology_key == HOSTNAME:
                size = int(np.count_nonzero(scored))
                counts = pods
            else:
                size = len(np.unique(ids[scored]))
                counted = counted_nodes(constraint, info.template, state, complete)
                counts = domain_sums(state, constraint.topology_key, pods, counted)[ids]
            total += counts * math.log(size + 2) + (constraint.max_skew - 1)
        return np.where(scored, np.floor(total + 0.5), IGNORED)

    def normalise(self, raw: Values, feasible: Mask) -> Values:
        """100 * (greatest + least - value) / greatest in whole numbers; 100 when nothing matches anywhere."""
        scores = np.zeros(len(raw))
        scored = feasible & (raw != IGNORED)
        if not scored.any():
            return scores
        greatest, least = raw[scored].max(), raw[scored].min()
        if greatest == 0:
            scores[scored] = MAX_SCORE
        else:
            scores[scored] = np.floor(MAX_SCORE * (greatest + least - raw[scored]) / greatest)
        return scores
