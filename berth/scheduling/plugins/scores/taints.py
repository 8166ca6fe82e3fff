"""TaintToleration: fewer untolerated PreferNoSchedule taints are better."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.selection import tolerated
from berth.scheduling.plugins.scores.base import Score, Values, scaled_to_greatest

if TYPE_CHECKING:
    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState


class TaintTolerationScore(Score):
    """Counts taints with effect PreferNoSchedule that the pod does not tolerate."""

    name = "TaintToleration"

    def __init__(self, *, weight: float = 3.0) -> None:
        """``weight`` in the sum."""
        self.weight = weight

    def raw(self, info: PodInfo, state: ClusterState, feasible: Mask) -> Values:  # noqa: ARG002
        """Number of untolerated soft taints on each node."""
        tolerations = [t for t in info.template.tolerations if t.effect in ("", "PreferNoSchedule")]
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
