"""Strategy `replicas` from candidates to assumed pods."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from berth.network.limits import NOTHING_PLANNED
from berth.scheduling.decision import Decision
from berth.scheduling.gang.budget import Budget
from berth.scheduling.gang.exact import ExactAmounts, fits
from berth.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from berth.scheduling.plugins.network_overhead import NetworkOverhead
from berth.scheduling.plugins.pod_topology_spread import PodTopologySpread
from berth.scheduling.replica_plan.decisions import read
from berth.scheduling.replica_plan.question import pose
from berth.scheduling.replicas.plan import plan
from berth.scheduling.single import workload_of
from berth.scheduling.turns import Turns, depends_on_others

if TYPE_CHECKING:
    from berth.kube.objects import Pod
    from berth.network.costs import NetworkCosts
    from berth.network.groups import Group
    from berth.network.limits import Planned
    from berth.scheduling.cache.cache import Cache
    from berth.scheduling.configuration import Profile
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.framework import FilterResult
    from berth.scheduling.gang.application import Candidate
    from berth.scheduling.gang.infrastructure import InfrastructureView

JUDGED_IN_COUNTS = frozenset((InterPodAffinity.name, PodTopologySpread.name))
"""Filters whose rules a plan in counts judges itself, beside those of every joint plan."""
Judge = Callable[["Pod", "Group | None", "NetworkCosts", "Planned"], "tuple[CycleState, FilterResult]"]
"""What the filters say of a pod with all that is assumed by now, and as to calls with what is planned."""
Unplaced = tuple[list["Pod"], list[Decision]]
"""Pods that the plan has no node for, and planned ones whose node a filter rejects."""


class ReplicaPlanner:
    """Plans the waiting pods of AppGroups in counts."""

    def __init__(self, cache: Cache, view: InfrastructureView, judge: Judge, profile: Profile) -> None:
        """Share the cache with the planner that asks; `judge` is how it filters a pod."""
        self._cache = cache
        self._view = view
        self._judge = judge
        self._profile = profile

    def place(
        self,
        group: Group,
        candidates: Sequence[Candidate],
        settled: list[Decision],
        costs: NetworkCosts,
        budget: Budget,
        *,
        partial: bool,
    ) -> Generator[None, None, Unplaced]:
        """Plan candidates together and assume the decisions, which are added to `settled`.

        Args:
            group: their AppGroup.
            candidates: waiting pods, filtered without `JUDGED_IN_COUNTS`.
            settled: decisions that are assumed.
            costs: network costs of this application.
            budget: time, in turns.
            partial: plan what fits; otherwise all or nothing.
        """
        infrastructure = self._view.current(costs, self._cache.bandwidth())
        question = pose(
            group,
            candidates,
            self._cache,
            infrastructure,
            self._view.places,
            self._profile.weights,
            enforce_limits=costs.available,
            spread=self._profile.spread,
            defaults=self._profile.pod_topology_spread.constraints,
        )
        if question is None:
            return [candidate.info.pod for candidate in candidates], []
        answer = yield from plan(question.problem, partial=partial, budget=budget)
        reading = read(question, answer, group, infrastructure.infrastructure.names)
        first = len(settled)
        held = yield from self._assume(
            reading.decisions,
            settled,
            infrastructure.exact,
            budget,
            lambda pod, planned: self._judge(pod, group, costs, planned)[1],
            judge_all=question.judged,
        )
        if held and any(edge.max_cost < math.inf for edge in group.edges):
            held += self._give_up(settled, first, group, costs)
        return [candidate.info.pod for candidate in reading.rest], held

    def _give_up(self, settled: list[Decision], first: int, group: Group, costs: NetworkCosts) -> list[Decision]:
        """Give up decisions from `first` on whose calls go beyond a limit now that others of the plan have no node."""
        state, given_up = self._cache.state, list[Decision]()
        looked_at = -1
        while looked_at != len(given_up):
            looked_at = len(given_up)
            for decision in settled[first:]:
                self._cache.forget(decision.pod)
                cycle, _ = self._judge(decision.pod, group, costs, NOTHING_PLANNED)
                cycle.limits = [edge for edge in cycle.limits if edge.callers is None]
                slot = state.node_index.get(decision.node)
                if slot is not None and any(rejected.nodes[slot] for rejected in NetworkOverhead().filter(cycle)):
                    settled.remove(decision)
                    given_up.append(decision)
                else:
                    self._cache.assume(decision.pod, decision.node)
        return given_up

    def _assume(
        self,
        decisions: list[Decision],
        settled: list[Decision],
        exact: ExactAmounts,
        budget: Budget,
        judge: Callable[[Pod, Planned], FilterResult],
        *,
        judge_all: bool,
    ) -> Generator[None, None, list[Decision]]:
        """Assume pods one by one where their rules hold; one whose rule needs a later pod waits for its turn.

        Which endpoints a call reaches is judged as it will be when all of them are there.
        Returns those whose planned node a filter rejects to the end.
        """
        state = self._cache.state
        coming: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for decision in decisions:
            coming[workload_of(decision.pod)][decision.node] += 1
        turns = Turns(state, [state.info(decision.pod) for decision in decisions])
        first = True
        while decisions:
            later: list[Decision] = []
            for decision in decisions:
                info, slot = state.info(decision.pod), state.node_index.get(decision.node)
                if slot is None or budget.exhausted or not (first or turns.due(info)):
                    later.append(decision)
                    continue
                room = fits(state, exact, slot, info.template)
                # What others were given in a turn between may be anything.
                judged = judge_all or budget.pauses or not room or depends_on_others(info)
                alike = coming[workload_of(decision.pod)]
                alike[decision.node] -= 1
                if judged and not judge(decision.pod, coming).mask[slot]:
                    alike[decision.node] += 1
                    turns.judged(info)
                    later.append(decision)
                    continue
                self._cache.assume(decision.pod, decision.node)
                settled.append(decision)
                turns.assumed(info)
                yield from budget.pause()
            if len(later) == len(decisions):
                return later
            decisions, first = later, False
        return []
