"""Runs the plugins of a profile and puts together what they say."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.framework.plugin import MAX_SCORE, FilterPlugin, ScorePlugin
from berth.scheduling.framework.rejection import Rejection, sentence

if TYPE_CHECKING:
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Afterwards, Bools, Floats, Plugin


@dataclass(slots=True)
class FilterResult:
    """Where a pod may go, and why not elsewhere."""

    mask: Bools
    """bool[N]: node slots that every plugin admits"""
    nodes: int
    """number of live nodes that were looked at"""
    rejections: list[Rejection] = field(default_factory=list)
    """in the order of the plugins; a node counts for the first plugin that rejects it, and there for each reason"""
    blocker: str | None = None
    """why the pod is blocked, whatever the nodes"""

    @property
    def feasible(self) -> int:
        """Number of nodes that every plugin admits."""
        return int(np.count_nonzero(self.mask))

    def message(self) -> str:
        """The result in the words of kube-scheduler's FailedScheduling Event."""
        if self.blocker is not None:
            return f"0/{self.nodes} nodes are available: {self.blocker}."
        return sentence(self.rejections, feasible=self.feasible, nodes=self.nodes)


@dataclass(slots=True)
class ScoreResult:
    """Scores of one pod over all nodes."""

    total: Floats
    """float64[N]: weighted sum, 0 on nodes that are not feasible"""
    terms: dict[str, Floats] = field(default_factory=dict)
    """float64[N] per term, normalised and weighted; plugins without an opinion are left out"""
    greatest: float = 0.0
    """what a node would have with the full score of each of these"""


class Framework:
    """The plugins of one profile."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        """Take the plugins in the order in which they run."""
        self.plugins = tuple(plugins)
        self._filters = [plugin for plugin in self.plugins if isinstance(plugin, FilterPlugin)]
        self._scores = [plugin for plugin in self.plugins if isinstance(plugin, ScorePlugin)]
        self.judged_jointly = frozenset(plugin.name for plugin in self._filters if plugin.in_joint_plan)
        """Names of the rules that the gang engine judges itself."""
        self.in_objective = frozenset(
            plugin.name for plugin in self._scores if plugin.in_objective or plugin.cost_weight
        )
        """Names of the scores that have a price in the objective of replicas."""

    def filter(self, cycle: CycleState, *, skip: Collection[str] = ()) -> FilterResult:
        """Find the nodes that may take the pod; ``skip`` names plugins to leave out."""
        mask: Bools = cycle.cluster.alive.copy()
        result = FilterResult(mask=mask, nodes=cycle.cluster.node_count)
        active = [plugin for plugin in self._filters if plugin.name not in skip]
        for plugin in active:
            blocker = plugin.pre_filter(cycle)
            if blocker is not None:
                mask[:] = False
                result.blocker = blocker
                return result
        remaining = result.nodes
        for plugin in active:
            if not remaining:
                break
            effective: list[Bools] = []
            for reason, nodes in plugin.filter(cycle):
                fresh = nodes & mask
                count = int(np.count_nonzero(fresh))
                if count:
                    result.rejections.append(Rejection(plugin.name, reason, count))
                    effective.append(fresh)
            for fresh in effective:
                mask &= ~fresh
            if effective:
                remaining = int(np.count_nonzero(mask))
        return result

    def concerned(self, after: Afterwards) -> list[FilterPlugin]:
        """Rules by which what has changed of a node may rule it out for a pod that is assumed there."""
        return [plugin for plugin in self._filters if plugin.concerned(after)]

    @staticmethod
    def refusal(plugins: Iterable[FilterPlugin], cycle: CycleState, slot: int) -> tuple[str, str] | None:
        """Name of the first plugin that rejects the node in a slot, and why; None where all admit it.

        What keeps the pod from every node is no matter of this one.
        """
        cycle.only = slot
        for plugin in plugins:
            if plugin.pre_filter(cycle) is not None:
                continue
            for reason, nodes in plugin.filter(cycle):
                if nodes[slot]:
                    return plugin.name, reason
        return None

    def score(self, cycle: CycleState, feasible: Bools, *, skip: Collection[str] = ()) -> ScoreResult:
        """Score the feasible nodes for a pod that is placed alone; ``skip`` names plugins to leave out."""
        result = ScoreResult(total=np.zeros(cycle.cluster.size))
        for plugin in self._scores:
            asked = plugin.score_weight and plugin.name not in skip
            values = plugin.normalized(cycle, feasible) if asked else None
            if values is not None:
                term = result.terms[plugin.term or plugin.name] = plugin.score_weight * values
                result.total += term
                result.greatest += plugin.score_weight * MAX_SCORE
        return result

    def joint_costs(self, cycle: CycleState, feasible: Bools) -> dict[str, Floats]:
        """float64[N] by term: what a member of a joint plan costs on each node, whatever the other members do.

        A cost below 0, infinite or NaN counts as 0: one plugin's slip must not stop the planning of a group.
        """
        return _sane((plugin.term or plugin.name, plugin.joint_cost(cycle, feasible)) for plugin in self._scores)

    def objective_costs(self, cycle: CycleState, feasible: Bools) -> dict[str, Floats]:
        """The same for who places replicas by their objective, which knows preferences of nodes as well."""
        return _sane((plugin.term or plugin.name, plugin.objective_cost(cycle, feasible)) for plugin in self._scores)


def _sane(found: Iterable[tuple[str, Floats | None]]) -> dict[str, Floats]:
    return {term: np.where(np.isfinite(cost) & (cost > 0), cost, 0.0) for term, cost in found if cost is not None}
