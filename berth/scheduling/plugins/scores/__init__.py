"""Scores: how well a node suits a pod, in kube-scheduler's terms.

Contract
    Reads: a ``PodInfo``, the ``ClusterState`` and the mask of feasible nodes; writes nothing; pure.
    Every score gives float64[N], 0 to 100 on feasible nodes and 0 elsewhere; ``ScorePipeline``
    adds them up by weight and keeps the parts for explanations.
    Left out: ImageLocality (kubelets' image lists are not kept), and kube-scheduler's system
    default spreading for pods without constraints of their own, which would need Services and
    ReplicaSets; see docs/reference/filters.md.
"""

from berth.scheduling.plugins.scores.base import Score
from berth.scheduling.plugins.scores.pipeline import ScorePipeline, ScoreResult, default_scores

__all__ = ["Score", "ScorePipeline", "ScoreResult", "default_scores"]
