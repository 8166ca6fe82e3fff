"""What was decided about a pod, and the annotation ``berth.dev/decision`` that keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from berth.kube.objects import Pod
from berth.network.costs import NetworkCosts
from berth.network.groups import GroupKey

MAX_RUNNER_UPS = 3
MAX_REASONS = 8
"""Reasons for rejected nodes that the annotation keeps, those of most nodes first."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A node that was considered."""

    node: str
    """node name"""
    cost: float
    """value of the objective there (joint plan: lower is better), or total score (alone: higher is better)"""
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
    """joint strategy (``berth``, ``phare``, ...), or ``alone`` for single-pod filter and score"""
    cost: float
    """the pod's share of the objective (joint) or its total score (alone)"""
    terms: Mapping[str, float]
    """the same by term"""
    runner_ups: tuple[Alternative, ...] = ()
    """up to three next best nodes"""
    feasible: int = 0
    """nodes that passed all filters"""
    nodes: int = 0
    """nodes that were looked at"""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """nodes by the reason that ruled them out"""
    group: GroupKey | None = None
    """AppGroup, None for a pod outside any"""
    planned_with: int = 1
    """pods that were planned in the same go"""
    edges: int = 0
    """dependency edges with both ends placed, this pod's"""
    edge_cost: float = 0.0
    """network cost of those edges, in full"""


@dataclass(frozen=True, slots=True)
class Failure:
    """A pod gets no node for now."""

    pod: Pod
    """the pod"""
    message: str
    """one sentence in kube-scheduler's words: who was rejected by what"""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """nodes by the reason that ruled them out"""
    group: GroupKey | None = None
    """AppGroup, None for a pod outside any"""
    permanent: bool = False
    """True when only a change of the pod itself can help (unsupported field, scheduling gate)"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one unit of scheduling."""

    decisions: tuple[Decision, ...] = ()
    """placed pods; assumed in the state already"""
    failures: tuple[Failure, ...] = ()
    """pods without a node"""
    edges: int = 0
    """placed dependency edges of the whole AppGroup, older pods included; counted for joint plans only"""
    edge_cost: float = 0.0
    """their summed network cost"""

    @property
    def complete(self) -> bool:
        """True when every pod got a node."""
        return not self.failures


def annotation(decision: Decision, costs: NetworkCosts) -> str:
    """The decision as compact JSON, versioned by its first field."""
    document: dict[str, Any] = {
        "v": 1,
        "node": decision.node,
        "strategy": decision.strategy,
        "cost": _short(decision.cost),
        "terms": {name: _short(value) for name, value in decision.terms.items()},
    }
    if decision.group is not None:
        document["appGroup"] = decision.group[1]
        document["plannedWith"] = decision.planned_with
        document["edges"] = decision.edges
        document["edgeCost"] = _short(decision.edge_cost)
    document["runnerUps"] = [
        {"node": item.node, "cost": _short(item.cost), "terms": {k: _short(v) for k, v in item.terms.items()}}
        for item in decision.runner_ups[:MAX_RUNNER_UPS]
    ]
    document["feasible"] = decision.feasible
    document["nodes"] = decision.nodes
    if decision.rejected:
        most = sorted(decision.rejected.items(), key=lambda item: (-item[1], item[0]))
        document["rejected"] = dict(most[:MAX_REASONS])
    if costs.available:
        document["network"] = {"topology": costs.source, "weights": list(costs.weight_sets)}
        if costs.data_time:
            document["network"]["dataTime"] = costs.data_time
    else:
        document["network"] = {"missing": "no NetworkTopology with costs; only equal zones count as close"}
    return msgspec.json.encode(document).decode()


def summary(decision: Decision) -> str:
    """One sentence for the Event."""
    text = f"Assigned to node {decision.node}"
    if decision.group is not None:
        if decision.planned_with > 1:
            text += f", planned together with {decision.planned_with - 1} other pods of AppGroup {decision.group[1]}"
        text += f"; network cost {decision.edge_cost:g} over {decision.edges} dependency edges"
    return f"{text}; {decision.feasible} of {decision.nodes} nodes were feasible"


def _short(value: float) -> float:
    return float(f"{value:.6g}")
