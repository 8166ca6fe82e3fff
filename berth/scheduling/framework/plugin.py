"""What a scheduling plugin is: one concern, in one file, at the extension points that it needs.

The points are kube-scheduler's. ``pre_filter`` and ``filter`` decide where a pod may go, ``score`` how well a node
suits it (0 to 100, higher is better), ``cost`` what it would cost there (cost units, lower is better). Scores choose
the node of a pod that is placed alone; costs make up the objective of a joint plan. Both have weights of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from berth.scheduling.cache.node_changes import NOTHING, NodePart

if TYPE_CHECKING:
    from berth.scheduling.cache.node_changes import NodeChange
    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.configuration import Profile
    from berth.scheduling.framework.cycle_state import CycleState

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class RejectedNodes(NamedTuple):
    """Nodes that one reason rules out."""

    reason: str
    """in kube-scheduler's words, e.g. ``Insufficient cpu``"""
    nodes: Bools
    """bool[N]: the nodes ruled out; slots without a node may have any value"""


class Afterwards(NamedTuple):
    """A pod on a node that has changed since the pod was assumed there."""

    pod: PodInfo
    """the pod"""
    cluster: ClusterState
    """nodes and the pods on them, this one among them"""
    change: NodeChange
    """what differs from the node that was chosen"""


class Plugin(ABC):
    """One concern. A plugin may keep caches of its own; it writes nothing else."""

    name: ClassVar[str]
    """name in messages, decisions and configuration; that of the kube-scheduler plugin whose rule this is"""

    @classmethod
    def of(cls, profile: Profile) -> Self:  # noqa: ARG003 - most plugins have nothing to configure
        """Make the plugin as a profile configures it."""
        return cls()


class FilterPlugin(Plugin):
    """A rule that a node must satisfy to take a pod."""

    in_joint_plan: ClassVar[bool] = False
    """True when the gang engine judges this rule itself, since it depends on where other members go"""

    reads: ClassVar[NodePart] = NOTHING
    """parts of a node that may rule it out for a pod that is assumed there already, labels of any key apart"""

    def concerned(self, after: Afterwards) -> bool:
        """Whether what has changed of a node may rule it out for a pod that is assumed there.

        The binding cycle asks. It looks at cordon, taints, node affinity and room itself.
        """
        return bool(self.reads & after.change.parts)

    def pre_filter(self, cycle: CycleState) -> str | None:  # noqa: ARG002 - most rules have nothing to say here
        """Why the pod cannot be placed anywhere whatever the nodes, or None."""
        return None

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:  # noqa: ARG002 - some rules look at no node
        """The nodes that are ruled out, by reason; empty when the rule does not concern the pod.

        A node may be ruled out for several reasons; each of them is reported, as in kube-scheduler.
        """
        return ()

    def mask(self, cycle: CycleState) -> Bools:
        """bool[N]: live nodes that satisfy this rule alone."""
        mask: Bools = cycle.cluster.alive.copy()
        if self.pre_filter(cycle) is not None:
            return np.zeros_like(mask)
        for rejected in self.filter(cycle):
            mask &= ~rejected.nodes
        return mask


class ScorePlugin(Plugin):
    """An opinion on nodes."""

    term: ClassVar[str] = ""
    """name of its term in decisions, the plugin's own name by default"""
    score_weight: float = 1.0
    """factor in the total score of a pod that is placed alone"""
    cost_weight: float = 0.0
    """cost units that a score of 0 instead of 100 is worth in a joint plan; 0 takes no part in it"""
    in_objective: ClassVar[bool] = False
    """True when what it scores has a price in the objective of replicas, so that its points do not count there"""

    @abstractmethod
    def score(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """float64[N] in the plugin's own unit, or None when it has no opinion on this pod."""

    @abstractmethod
    def normalize_score(self, raw: Floats, feasible: Bools) -> Floats:
        """float64[N] from 0 to 100, higher is better; entries of nodes that are not feasible are 0."""

    def normalized(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """The normalised score, None when the plugin has no opinion or no node is feasible."""
        raw = self.score(cycle, feasible) if feasible.any() else None
        return None if raw is None else self.normalize_score(raw, feasible)

    def joint_cost(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """float64[N] in cost units for a member of a joint plan, None when the plugin takes no part in it."""
        score = self.normalized(cycle, feasible) if self.cost_weight else None
        return None if score is None else self.cost_weight * (MAX_SCORE - score) / MAX_SCORE

    def objective_cost(self, cycle: CycleState, feasible: Bools) -> Floats | None:
        """float64[N] in cost units where replicas are placed by their objective: as in joint plans by default."""
        return self.joint_cost(cycle, feasible)


class CostPlugin(ScorePlugin):
    """What a pod would cost on a node; its score is the cost, normalised the other way round."""

    @abstractmethod
    def cost(self, cycle: CycleState) -> Floats | None:
        """float64[N] in cost units, or None when nothing is charged."""

    def score(self, cycle: CycleState, feasible: Bools) -> Floats | None:  # noqa: ARG002 - the same for all nodes
        """The cost."""
        return self.cost(cycle)

    def normalize_score(self, raw: Floats, feasible: Bools) -> Floats:
        """100 for the cheapest feasible node, 0 for the dearest."""
        scores = np.zeros(len(raw))
        scores[feasible] = cheapest_first(raw[feasible])
        return scores

    def joint_cost(self, cycle: CycleState, feasible: Bools) -> Floats | None:  # noqa: ARG002 - the same for all
        """The weighted cost, unless joint plans compute it themselves since it depends on where other members go."""
        cost = self.cost(cycle) if self.cost_weight and not self.in_objective else None
        return None if cost is None else self.cost_weight * cost


MAX_SCORE = 100.0
"""What a normalised score reaches at best."""


def scaled_to_greatest(raw: Floats, feasible: Bools, *, reverse: bool) -> Floats:
    """kube-scheduler's DefaultNormalizeScore: 100 * value / greatest, in whole numbers.

    ``reverse`` turns it around, so that the greatest value scores 0. When all values are 0, all scores are 0, or 100
    when reversed.
    """
    values = np.where(feasible, raw, 0.0)
    greatest = values.max(initial=0.0)
    if greatest == 0:
        return np.where(feasible, MAX_SCORE, 0.0) if reverse else values
    scores: Floats = np.floor(MAX_SCORE * values / greatest)
    return np.where(feasible, MAX_SCORE - scores, 0.0) if reverse else scores


def percentages(raw: Floats, feasible: Bools) -> Floats:
    """Values that are from 0 to 100 already, with 0 where the node is not feasible."""
    return np.where(feasible, raw, 0.0)


def cheapest_first(costs: Floats) -> Floats:
    """Turn costs of feasible nodes into scores from 0 to 100, lower cost first.

    ``100 - int(100 * (x - min) / (max - min))``; all equal and above zero: 100; all zero: unchanged
    (NetworkOverhead's NormalizeScore, sig-scheduling KEP 260).
    """
    if not costs.size:
        return costs.copy()
    low, high = float(costs.min()), float(costs.max())
    if high == 0:
        return costs.copy()
    if low == high:
        return np.full_like(costs, MAX_SCORE)
    scores: Floats = MAX_SCORE - np.floor(MAX_SCORE * (costs - low) / (high - low))
    return scores
