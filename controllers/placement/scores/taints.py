"""TaintToleration: fewer untolerated PreferNoSchedule taints are better."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from controllers.placement.scores.base import Score, Values, scaled_to_greatest
from controllers.placement.state.selection import tolerated

if TYPE_CHECKING:
    from controllers.placement.state.cluster import ClusterState
    from controllers.placement.state.columns import Mask
    from controllers.placement.state.profile import PodInfo


class TaintTolerationScore(Score):
    """Counts taints with effect PreferNoSchedule that the pod does not tolerate."""

    name = "TaintToleration"

    def __init__(self, *, weight: float = 3.0) -> None:
        """``weight`` in the sum."""
        self.weight = weight

    def raw(self, info: PodInfo, state: ClusterState, feasible: Mask) -> Values:  # noqa: ARG002
        """Number of untolerated soft taints on each node."""
        tolerations = [t for t in info.profile.tolerations if t.effect in ("", "PreferNoSchedule")]
        sets = state.nodes.taint_sets
        table = np.fromiter(
            (sum(t.effect == "PreferNoSchedule" and not tolerated(tolerations, t) for t in taints) for taints in sets),
            dtype=np.float64,
            count=len(sets),
        )
        return table[state.nodes.taint_ids]

    def normalise(self, raw: Values, feasible: Mask) -> Values:
        """100 without such taints, 0 for the node with the most."""
        return scaled_to_greatest(raw, feasible, reverse=True)
