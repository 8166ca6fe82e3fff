"""Assuming the pods of a joint plan that the filters judge one by one, and moving those that a rule keeps away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from berth.kube.objects import Pod
from berth.network.costs import NetworkCosts
from berth.network.groups import Group
from berth.network.limits import NOTHING_PLANNED, Planned
from berth.scheduling.cache.cache import Cache
from berth.scheduling.decision import Decision, Failure, Outcome
from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import beyond_template
from berth.scheduling.gang.exact import fits
from berth.scheduling.gang.failures import unplanned
from berth.scheduling.gang.state import InfrastructureState
from berth.scheduling.planning import JointPlan
from berth.scheduling.plugins.node_bandwidth import requested_bandwidth
from berth.scheduling.single import workload_of
from berth.scheduling.turns import Turns, depends_on_others


class Judge(Protocol):
    """Runs the filters for one pod."""

    def __call__(
        self, pod: Pod, group: Group | None, costs: NetworkCosts, planned: Planned
    ) -> tuple[CycleState, FilterResult]:
        """Return what they say with all that is assumed by now, and as to calls with what is planned."""


class CarryingOut:
    """Carries out plans that know nothing of rules between pods."""

    def __init__(
        self,
        cache: Cache,
        infrastructure: Callable[[NetworkCosts], InfrastructureState],
        judge: Judge,
        place: Callable[[Pod, Group | None, CycleState, FilterResult], Outcome],
    ) -> None:
        """Share the cache with the planner that asks.

        Args:
            cache: where pods are assumed.
            infrastructure: the cluster as of now.
            judge: how a pod is filtered.
            place: takes the best of the nodes that admit a pod, and assumes the choice.
        """
        self._cache = cache
        self._infrastructure = infrastructure
        self._judge = judge
        self._place = place

    def assume(
        self, joint: JointPlan, decisions: Iterable[Decision], *, near: bool, since: int
    ) -> Generator[None, None, list[Decision]]:
        """Assume pods that nothing more is to be asked about; returns the others.

        Args:
            joint: what they are for.
            decisions: the plan.
            near: whether Services keep calls near, of which the plan knows nothing.
            since: pauses of the budget before its nodes were filtered: if others have had a turn after that, pods are
                judged anew, alike ones once, and each of them where calls take bandwidth; without time they are not.
        """
        state, budget, group = self._cache.state, joint.budget, joint.group
        calls = any(edge.bandwidth for edge in group.edges)
        known: dict[Hashable, npt.NDArray[np.bool_]] = {}
        held: list[Decision] = []
        exact, pauses = self._infrastructure(joint.costs).exact, budget.pauses
        for decision in decisions:
            info, old = state.info(decision.pod), budget.pauses != since
            alone = not (near or depends_on_others(info) or requested_bandwidth(info.template) or (calls and old))
            if alone and old:
                alike = (info.template.key, self._cache.recently_rejected(decision.pod), *beyond_template(decision.pod))
                if alike not in known:
                    yield from budget.pause()
                if pauses != budget.pauses:
                    exact, pauses = self._infrastructure(joint.costs).exact, budget.pauses
                    known.clear()
                if alike not in known and budget.exhausted:
                    alone = False
                elif alike not in known:
                    known[alike] = self._judge(decision.pod, group, joint.costs, NOTHING_PLANNED)[1].mask
            slot = state.node_index.get(decision.node)
            alone = alone and slot is not None and fits(state, exact, slot, info.template)
            if slot is not None and alone and (not old or known[alike][slot]):
                self._cache.assume(decision.pod, decision.node)
                joint.settled.append(decision)
            else:
                held.append(decision)
        return held

    def settle(
        self, joint: JointPlan, held: list[Decision], *, together: bool = False
    ) -> Generator[None, None, tuple[list[Decision], list[Failure]]]:
        """Assume pods with rules about others where these hold; one whose rule needs a later pod gets another turn.

        Its turn comes when a pod that its rules select has been assumed since; when nobody's turn has come, all are
        looked at once more. With `together`, calls are judged as if the others were assumed already: all or nothing.
        One is judged in any case where none is assumed yet, so that every attempt gets somewhere. Returns those whose
        rules are not met, and why.
        """
        state, budget = self._cache.state, joint.budget
        turns = Turns(state, [state.info(decision.pod) for decision in held])
        everybody, judged = True, bool(joint.settled)
        planned: dict[str, Counter[str]] = {}
        for decision in held if together else ():
            planned.setdefault(workload_of(decision.pod), Counter())[decision.node] += 1
        while held:
            later: list[Decision] = []
            failures: list[Failure] = []
            for decision in held:
                info, failed = state.info(decision.pod), tuple[Failure, ...]()
                if judged and budget.exhausted:
                    failed = (unplanned(decision.pod, joint.group),)
                elif everybody or turns.due(info):
                    yield from budget.pause()
                    judged = True
                    turns.judged(info)
                    failed = self._settle_one(joint, decision, planned)
                    if not failed:
                        turns.assumed(info)
                        continue
                later.append(decision)
                failures += failed
            if len(later) == len(held) and everybody:
                return later, failures
            everybody, held = len(later) == len(held), later
        return [], []

    def _settle_one(
        self, joint: JointPlan, decision: Decision, planned: dict[str, Counter[str]]
    ) -> tuple[Failure, ...]:
        """Assume a pod where it is planned, else where the filters admit it; returns why it has no node."""
        others = planned.get(workload_of(decision.pod), Counter())
        others[decision.node] -= 1
        cycle, result = self._judge(decision.pod, joint.group, joint.costs, planned)
        slot = self._cache.state.node_index.get(decision.node)
        if slot is not None and result.mask[slot]:
            self._cache.assume(decision.pod, decision.node)
            joint.settled.append(decision)
            return ()
        single = self._place(decision.pod, joint.group, cycle, result)
        joint.settled.extend(replace(moved, planned_with=decision.planned_with) for moved in single.decisions)
        if single.failures:
            others[decision.node] += 1
        return single.failures
