"""The scores added up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.pod_templates import PodInfo
from berth.scheduling.plugins.scores.node_affinity import NodeAffinityScore
from berth.scheduling.plugins.scores.pod_affinity import InterPodAffinityScore
from berth.scheduling.plugins.scores.resources import BalancedAllocationScore, LeastAllocatedScore
from berth.scheduling.plugins.scores.taints import TaintTolerationScore
from berth.scheduling.plugins.scores.topology_spread import PodTopologySpreadScore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.kube.objects import Pod
    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.plugins.scores.base import Score, Values


def default_scores() -> tuple[Score, ...]:
    """kube-scheduler's default scores with its default weights, ImageLocality left out."""
    return (
        TaintTolerationScore(),
        NodeAffinityScore(),
        PodTopologySpreadScore(),
        InterPodAffinityScore(),
        LeastAllocatedScore(),
        BalancedAllocationScore(),
    )


@dataclass(slots=True)
class ScoreResult:
    """Scores of one pod over all nodes."""

    total: Values
    """float64[N]: weighted sum, 0 on nodes that are not feasible."""
    feasible: Mask
    """bool[N]: the nodes that were scored."""
    parts: dict[str, Values] = field(default_factory=dict)
    """float64[N] per score, normalised and not yet weighted."""

    def best(self) -> int | None:
        """Slot of the feasible node with the greatest total, the lowest slot among equals; None without any."""
        if not self.feasible.any():
            return None
        return int(np.argmax(np.where(self.feasible, self.total, -np.inf)))


class ScorePipeline:
    """Runs scores and adds them up."""

    def __init__(self, scores: Sequence[Score] | None = None) -> None:
        """``scores`` to add; kube-scheduler's defaults when None."""
        self.scores: tuple[Score, ...] = tuple(default_scores() if scores is None else scores)

    def evaluate(self, pod: Pod | PodInfo, state: ClusterState, feasible: Mask) -> ScoreResult:
        """Score the feasible nodes."""
        info = pod if isinstance(pod, PodInfo) else state.info(pod)
        result = ScoreResult(total=np.zeros(state.size), feasible=feasible)
        for score in self.scores:
            part = score.normalised(info, state, feasible)
            result.parts[score.name] = part
            result.total += score.weight * part
        return result
