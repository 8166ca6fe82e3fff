"""What the published choices have in common: a score from 0 to 1 by the classes on a node's sockets.

Nodes with the same classes on their sockets are judged once.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np
from typing_extensions import override

from berth.kube.owners import owner_of
from berth.scheduling.framework.plugin import MAX_SCORE, ScorePlugin, percentages

if TYPE_CHECKING:
    from berth.api.interference import InterferenceClass
    from berth.scheduling.cache.kind_column import KindColumn
    from berth.scheduling.cache.sockets import Arrangement
    from berth.scheduling.configuration import Profile
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Bools, Floats
    from berth.scheduling.interference.policy import InterferencePolicy

_NONE: Final[Floats] = np.zeros(0)


class ByClass(ScorePlugin):
    """A published choice; no opinion on pods without class, and where no sockets are known."""

    term = "interference"
    policy: ClassVar[InterferencePolicy]
    """the choice of a profile that this is"""

    def __init__(self, *, score_weight: float = 5.0, cost_weight: float = 10.0) -> None:
        """Take the profile's ``weights.interferenceScore`` and ``weights.interference``."""
        self.score_weight = score_weight
        self.cost_weight = cost_weight
        self._column: KindColumn[Arrangement] | None = None
        self._numbering = 0
        self._known: dict[InterferenceClass, Floats] = {}

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """Weigh as the profile says; nothing where it places by another choice."""
        chosen, weights = profile.interference is cls.policy, profile.weights
        return cls(score_weight=chosen * weights.interference_score, cost_weight=chosen * weights.interference)

    @abstractmethod
    def judge(self, newcomer: InterferenceClass, arrangement: Arrangement) -> float:
        """How good a node is, 0 to 1, by the classes on each of its sockets and of pods that are on none."""

    @override
    def score(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """The choice's score in percent."""
        cluster = cycle.cluster
        if not cluster.sockets.active:
            return None
        newcomer = cluster.resident(cycle.pod.template, owner_of(cycle.pod.pod))
        if newcomer is None:
            return None
        column = cluster.sockets.arrangements
        ids = column.ids(cluster.node_index, cluster.size)
        return self._by_kind(newcomer.workload.interference_class, column).take(ids)

    def normalize_score(self, raw: Floats, feasible: Bools) -> Floats:
        """Raw values are from 0 to 100 already."""
        return percentages(raw, feasible)

    def _by_kind(self, newcomer: InterferenceClass, column: KindColumn[Arrangement]) -> Floats:
        """float64[K], score in percent by kind of node; numbers of kinds hold until these are given anew."""
        if column is not self._column or column.numbering != self._numbering:
            self._column, self._numbering, self._known = column, column.numbering, {}
        known = self._known.get(newcomer, _NONE)
        if len(known) < len(column.kinds):
            new = [MAX_SCORE * self.judge(newcomer, kind) for kind in column.kinds[len(known) :]]
            known = self._known[newcomer] = np.append(known, new)
        return known
