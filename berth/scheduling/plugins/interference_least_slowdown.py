"""InterferenceLeastSlowdown (score, cost): where all may expect to suffer least, the pod and those beside it.

The cost is `weights.interference` times the harm that the pod adds to the best pairing of the node's pods. The score
falls from 100 where it adds none to 0 where it adds as much as one pod that becomes 1.3 times slower: points mean the
same on every cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import numpy as np

from berth.kube.owners import owner_of
from berth.scheduling.framework.plugin import MAX_SCORE, ScorePlugin, percentages
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.interference.slowdown import harm

if TYPE_CHECKING:
    from berth.scheduling.configuration import Profile
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Bools, Floats
    from berth.scheduling.interference.residents import Resident

WORST: Final = harm(1.3)
"""Added harm from which on a node has no points."""


class InterferenceLeastSlowdown(ScorePlugin):
    """Charges the slowdown that a pod with an interference class adds on a node; no opinion on others."""

    name = "InterferenceLeastSlowdown"
    term = "interference"

    def __init__(self, *, score_weight: float = 5.0, cost_weight: float = 10.0) -> None:
        """Take the profile's ``weights.interferenceScore`` and ``weights.interference``."""
        self.score_weight = score_weight
        self.cost_weight = cost_weight

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """Weigh as the profile says; nothing where it places by another choice."""
        chosen, weights = profile.interference is InterferencePolicy.LEAST_SLOWDOWN, profile.weights
        return cls(score_weight=chosen * weights.interference_score, cost_weight=chosen * weights.interference)

    def score(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """Harm that the pod adds; no opinion where no sockets are known, or on a pod without class."""
        newcomer, cluster = self._newcomer(cycle), cycle.cluster
        if newcomer is None or not feasible.any():
            return None
        harm, ids = cluster.socket_choice.added_harm(newcomer, cluster.node_index, cluster.size, feasible)
        return harm.take(ids)

    def normalize_score(self, raw: Floats, feasible: Bools) -> Floats:
        """100 for no harm, 0 for `WORST` and more."""
        return percentages(_points(raw), feasible)

    def normalized(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """The same, worked out for each kind of node, and kept where no other pod came."""
        newcomer, cluster, count = self._newcomer(cycle), cycle.cluster, np.count_nonzero(feasible)
        if newcomer is None or not count:
            return None
        points = cluster.socket_choice.harm_worth(newcomer, cluster.node_index, cluster.size, feasible, _points)
        return points if count == len(feasible) else percentages(points, feasible)

    def joint_cost(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """The weighted harm beside the pods that are there."""
        harm = self.score(cycle, feasible) if self.cost_weight else None
        return None if harm is None else self.cost_weight * harm

    @staticmethod
    def _newcomer(cycle: CycleState) -> Resident | None:
        """What the pod is for others on its socket; None without class, and where no sockets are known."""
        cluster = cycle.cluster
        if not cluster.sockets.active:
            return None
        return cluster.resident(cycle.pod.template, owner_of(cycle.pod.pod))


def _points(harm: Floats) -> Floats:
    return np.maximum(MAX_SCORE - MAX_SCORE / WORST * harm, 0.0)
