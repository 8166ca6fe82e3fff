"""NodeAffinity: preferred node affinity terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.plugins.scores.base import Score, Values, scaled_to_greatest

if TYPE_CHECKING:
    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState


class NodeAffinityScore(Score):
    """Adds up the weights of the preferred terms that match a node."""

    name = "NodeAffinity"

    def __init__(self, *, weight: float = 2.0) -> None:
        """``weight`` in the sum."""
        self.weight = weight

    def raw(self, info: PodInfo, state: ClusterState, feasible: Mask) -> Values | None:  # noqa: ARG002
        """Sum of the weights of matching terms; no opinion on pods without preferred terms."""
        terms = info.template.preferred_affinity
        if not terms:
            return None
        total = np.zeros(state.size)
        for term in terms:
            total[state.selection.term(term.preference)] += term.weight
        return total

    def normalise(self, raw: Values, feasible: Mask) -> Values:
        """100 for the node with the greatest sum, the others in proportion."""
        return scaled_to_greatest(raw, feasible, reverse=False)
