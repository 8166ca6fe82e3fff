"""What a score is, and kube-scheduler's default normalisation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState

Values = NDArray[np.float64]

MAX_SCORE = 100.0
"""What a normalised score reaches at best."""


class Score(ABC):
    """One opinion on nodes."""

    name: ClassVar[str]
    """Name of the kube-scheduler plugin whose formula this is."""
    weight: float
    """Factor in the sum; the default is kube-scheduler's."""

    @abstractmethod
    def raw(self, info: PodInfo, state: ClusterState, feasible: Mask) -> Values | None:
        """float64[N] in the score's own unit, or None when it has no opinion on this pod."""

    @abstractmethod
    def normalise(self, raw: Values, feasible: Mask) -> Values:
        """float64[N] from 0 to 100, given raw values; entries of nodes that are not feasible are 0."""

    def normalised(self, info: PodInfo, state: ClusterState, feasible: Mask) -> Values:
        """float64[N] from 0 to 100, higher is better; all 0 when the score has no opinion."""
        raw = self.raw(info, state, feasible) if feasible.any() else None
        return np.zeros(state.size) if raw is None else self.normalise(raw, feasible)


def scaled_to_greatest(raw: Values, feasible: Mask, *, reverse: bool) -> Values:
    """kube-scheduler's DefaultNormalizeScore: 100 * value / greatest, in whole numbers.

    ``reverse`` turns it around, so that the greatest value scores 0. When all values are 0, all
    scores are 0, or 100 when reversed.
    """
    values = np.where(feasible, raw, 0.0)
    greatest = values.max(initial=0.0)
    if greatest == 0:
        return np.where(feasible, MAX_SCORE, 0.0) if reverse else values
    scores: Values = np.floor(MAX_SCORE * values / greatest)
    return np.where(feasible, MAX_SCORE - scores, 0.0) if reverse else scores


def kept(raw: Values, feasible: Mask) -> Values:
    """Values that are from 0 to 100 already, with 0 where the node is not feasible."""
    return np.where(feasible, raw, 0.0)
