"""What the published choices have in common: a score from 0 to 1 by the classes on a node's sockets.

Nodes with the same classes on their sockets are judged once.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np

from berth.kube.owners import owner_of
from berth.scheduling.framework.plugin import MAX_SCORE, ScorePlugin, percentages

if TYPE_CHECKING:
    from berth.api.interference import InterferenceClass
    from berth.scheduling.cache.sockets import Arrangement
    from berth.scheduling.configuration import Profile
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Bools, Floats
    from berth.scheduling.interference.policy import InterferencePolicy

_REMEMBERED: Final = 16_384
"""Scores by class and classes on sockets that are remembered."""


class ByClass(ScorePlugin):
    """A published choice; no opinion on pods without class, and where no sockets are known."""

    term = "interference"
    policy: ClassVar[InterferencePolicy]
    """the choice of a profile that this is"""

    def __init__(self, *, score_weight: float = 5.0, cost_weight: float = 10.0) -> None:
        """Take the profile's ``weights.interferenceScore`` and ``weights.interference``."""
        self.score_weight = score_weight
        self.cost_weight = cost_weight
        self._known: dict[tuple[InterferenceClass, Arrangement], float] = {}

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """Weigh as the profile says; nothing where it places by another choice."""
        chosen, weights = profile.interference is cls.policy, profile.weights
        return cls(score_weight=chosen * weights.interference_score, cost_weight=chosen * weights.interference)

    @abstractmethod
    def judge(self, newcomer: InterferenceClass, arrangement: Arrangement) -> float:
        """How good a node is, 0 to 1, by the classes on each of its sockets and of pods that are on none."""

    def score(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """The choice's score in percent."""
        cluster = cycle.cluster
        if not cluster.sockets.active:
            return None
        newcomer = cluster.resident(cycle.pod.template, owner_of(cycle.pod.pod))
        if newcomer is None:
            return None
        column, letter = cluster.sockets.arrangements, newcomer.workload.interference_class
        ids = column.ids(cluster.node_index, cluster.size)
        by_kind = np.zeros(len(column.kinds))
        for number in np.flatnonzero(np.bincount(ids[feasible], minlength=len(by_kind))).tolist():
            by_kind[number] = MAX_SCORE * self._judged(letter, column.kinds[number])
        return by_kind.take(ids)

    def normalize_score(self, raw: Floats, feasible: Bools) -> Floats:
        """Raw values are from 0 to 100 already."""
        return percentages(raw, feasible)

    def _judged(self, newcomer: InterferenceClass, arrangement: Arrangement) -> float:
        key = newcomer, arrangement
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = self.judge(newcomer, arrangement)
        return self._known[key]
