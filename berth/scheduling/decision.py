"""What was decided about a pod: data for the binding, the Event and ``berth explain``. Text is made last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from berth.api.text import counted
from berth.kube.objects import Pod
from berth.network.groups import GroupKey
from berth.scheduling.framework.rejection import Rejection, sentence

ALONE = "alone"
"""Strategy of a pod that was placed by itself, by filters and scores."""
MAX_RUNNER_UPS = 3


class Scale(StrEnum):
    """In what a node's worth is expressed."""

    COST = "cost"
    """cost units of the objective of a joint plan, lower is better"""
    SCORE = "score"
    """weighted sum of scores of a pod placed by itself, higher is better"""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A node that was considered."""

    node: str
    """node name"""
    value: float
    """its cost or score, on the scale of the decision"""
    terms: Mapping[str, float] = field(default_factory=dict)
    """the same by term"""


@dataclass(frozen=True, slots=True)
class Decision:
    """A pod gets a node."""

    pod: Pod
    """the pod"""
    node: str
    """name of the node"""
    strategy: str
    """joint strategy (``berth``, ``phare``, ...), or ``alone``"""
    value: float
    """the pod's share of the joint plan's cost, or its score"""
    terms: Mapping[str, float]
    """the same by term"""
    runner_ups: tuple[Alternative, ...] = ()
    """up to three next best nodes"""
    feasible: int = 0
    """nodes that passed all filters"""
    nodes: int = 0
    """nodes that were looked at"""
    rejections: tuple[Rejection, ...] = ()
    """why the others did not"""
    group: GroupKey | None = None
    """AppGroup, None for a pod outside any"""
    planned_with: int = 1
    """pods that were planned in the same go"""
    edges: int = 0
    """dependency edges with both ends placed, this pod's"""
    edge_cost: float = 0.0
    """network cost of those edges, in full"""

    @property
    def scale(self) -> Scale:
        """What `value` and `terms` are."""
        return Scale.SCORE if self.strategy == ALONE else Scale.COST


@dataclass(frozen=True, slots=True)
class Failure:
    """A pod gets no node for now."""

    pod: Pod
    """the pod"""
    group: GroupKey | None = None
    """AppGroup, None for a pod outside any"""
    nodes: int = 0
    """nodes that were looked at"""
    rejections: tuple[Rejection, ...] = ()
    """why none of them takes the pod"""
    blocker: str = ""
    """why no node ever will: only a change of the pod itself can help (unsupported field, scheduling gate)"""
    waits_for: Failure | None = None
    """member of the AppGroup that fits nowhere, and without which this one is not placed"""
    problem: str = ""
    """what else is wrong, a sentence"""
    unplanned: bool = False
    """True when the time was over before the pod was looked at"""
    error: bool = False
    """True when planning ended with an unforeseen error, which says nothing about the nodes"""

    @property
    def message(self) -> str:
        """One sentence in kube-scheduler's words: who was rejected by what."""
        if self.waits_for is not None and self.group is not None:
            other = self.waits_for
            return (
                f"AppGroup {self.group.name} is placed all or nothing and waits for pod {other.pod.metadata.name}: "
                f"{other.message}"
            )
        if self.error:
            return (
                "planning failed for a reason that nobody foresaw, and is tried again after a pause; the log of the "
                "placement controller has the details"
            )
        if self.unplanned:
            return "planning ran out of time (gang.planningSeconds) before this pod was looked at"
        if self.blocker:
            return f"0/{self.nodes} nodes are available: {self.blocker}."
        return self.problem or sentence(self.rejections, feasible=0, nodes=self.nodes)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one queue entry."""

    decisions: tuple[Decision, ...] = ()
    """placed pods; assumed in the cache already"""
    failures: tuple[Failure, ...] = ()
    """pods without a node"""
    cut_short: bool = False
    """True when the time budget ended the planning: this is the best plan so far"""

    @property
    def complete(self) -> bool:
        """True when every pod got a node."""
        return not self.failures

    @classmethod
    def together(cls, parts: Sequence[Outcome]) -> Outcome:
        """Outcomes of parts of an entry as one."""
        return cls(
            decisions=tuple(decision for part in parts for decision in part.decisions),
            failures=tuple(failure for part in parts for failure in part.failures),
            cut_short=any(part.cut_short for part in parts),
        )


def summary(decision: Decision) -> str:
    """One sentence for the Event."""
    text = f"Assigned to node {decision.node}"
    if decision.group is not None:
        if decision.planned_with > 1:
            others = counted(decision.planned_with - 1, "other pod")
            text += f", planned together with {others} of AppGroup {decision.group.name}"
        text += f"; network cost {decision.edge_cost:g} over {counted(decision.edges, 'dependency edge')}"
    return f"{text}; {decision.feasible} of {decision.nodes} nodes were feasible"
