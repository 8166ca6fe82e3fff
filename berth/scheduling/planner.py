"""The planner: turns a queue entry's waiting pods into decisions and assumes them in the cache.

An AppGroup's waiting pods are planned together by the gang engine. Its plan cannot see rules between pods (pod
affinity, topology spread, claims): pods that have some are checked one by one against the cache with the others
assumed, and moved by filter and score where the joint choice breaks a rule.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from berth.kube.objects import Pod
from berth.network.costs import NetworkCosts
from berth.network.edge_costs import EdgeTotals, edge_totals
from berth.network.groups import Group
from berth.network.limits import NOTHING_PLANNED, Planned
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import ALONE, Alternative, Decision, Failure, Outcome, Scale
from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.framework.framework import FilterResult, Framework
from berth.scheduling.framework.plugin import Plugin
from berth.scheduling.gang.application import Candidate, beyond_template, build_application
from berth.scheduling.gang.batches import batches
from berth.scheduling.gang.budget import Budget
from berth.scheduling.gang.exact import fits
from berth.scheduling.gang.failures import all_fail, joint_failures, unplanned
from berth.scheduling.gang.infrastructure import InfrastructureView
from berth.scheduling.gang.outcome import Plan
from berth.scheduling.gang.plan import plan
from berth.scheduling.gang.problem import Weights
from berth.scheduling.gang.state import InfrastructureState
from berth.scheduling.gang.strategies import DEFAULT, REPLICAS
from berth.scheduling.planning import Planning
from berth.scheduling.plugins import PLUGINS
from berth.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from berth.scheduling.plugins.network_overhead import NetworkOverhead
from berth.scheduling.queue_entry import pod_order
from berth.scheduling.replica_plan.planner import JUDGED_IN_COUNTS, ReplicaPlanner
from berth.scheduling.replica_plan.single import SinglePods
from berth.scheduling.single import choose, cycle_of, workload_of
from berth.scheduling.turns import Turns, depends_on_others

NOBODY: Mapping[str, int] = {}
"""No pod, by uid."""


class Planner:
    """Plans one queue entry after another against one cache, for one profile."""

    def __init__(self, cache: Cache, profile: Profile, *, plugins: Iterable[type[Plugin]] | None = None) -> None:
        """Share the cache; several planners (one per profile) may work on one cache in turn.

        `plugins` are others than the registered ones.
        """
        self._cache = cache
        self._state = cache.state
        self._profile = profile
        self._framework = Framework(plugin.of(profile) for plugin in (PLUGINS if plugins is None else plugins))
        self.view = InfrastructureView(cache.state, profile)
        """The cluster as the gang engine sees it."""
        w = profile.weights
        self._weights = Weights(
            network=w.network, price=w.price, bandwidth=w.bandwidth, waste=w.waste, balance=w.balance
        )
        by_cost = profile.gang.alone is Scale.COST
        self._single = SinglePods(cache, self._framework, self.view, profile) if by_cost else None
        in_counts = profile.gang.strategy == REPLICAS
        self._in_counts = ReplicaPlanner(cache, self.view, self._judge, profile) if in_counts else None
        self._strategy = DEFAULT if in_counts else profile.gang.strategy

    def place_pod(self, pod: Pod, group: Group | None, costs: NetworkCosts) -> Outcome:
        """Place one pod by itself and assume the choice: by cost if it has an AppGroup, else by score."""
        return self._place_judged(pod, group, *self._judge(pod, group, costs))

    def _judge(
        self, pod: Pod, group: Group | None, costs: NetworkCosts, planned: Planned = NOTHING_PLANNED
    ) -> tuple[CycleState, FilterResult]:
        """Which nodes admit the pod with what is assumed by now, and as to calls with what is planned."""
        cycle = self._cycle(pod, group, costs, planned)
        return cycle, self._framework.filter(cycle)

    def _place_judged(self, pod: Pod, group: Group | None, cycle: CycleState, result: FilterResult) -> Outcome:
        """Take the best of the nodes that admit the pod and assume the choice."""
        if not result.feasible:
            return Outcome(failures=(_failure(pod, group, result),))
        if group is not None and self._single is not None:
            strategy, choice = REPLICAS, self._single.choose(cycle, result, group)
        else:
            strategy, choice = ALONE, choose(self._framework, cycle, result.mask)
        network = NetworkOverhead().cost(cycle)
        decision = Decision(
            pod=pod,
            node=self._state.node_name(choice.slot),
            strategy=strategy,
            value=choice.value,
            terms=choice.terms,
            runner_ups=choice.runner_ups,
            feasible=result.feasible,
            nodes=result.nodes,
            rejections=tuple(result.rejections),
            group=group.key if group is not None else None,
            edges=len(cycle.edges),
            edge_cost=float(network[choice.slot]) if network is not None else 0.0,
        )
        self._cache.assume(pod, decision.node)
        return Outcome(decisions=(decision,))

    def place_group(
        self,
        group: Group,
        pods: Sequence[Pod],
        costs: NetworkCosts,
        *,
        partial: bool,
        looked_at: Mapping[str, int] = NOBODY,
    ) -> Planning:
        """Plan the waiting pods of an AppGroup together and assume what was decided, in turns.

        Args:
            group: the AppGroup.
            pods: its waiting pods.
            costs: network costs of this application.
            partial: bind what fits; otherwise all or nothing.
            looked_at: number of the plan that looked at a pod, by uid, but not at all of them; the least comes first.
        """
        turn = looked_at if partial else NOBODY
        ordered = sorted(pods, key=lambda pod: (turn.get(pod.metadata.uid, 0), pod_order(pod, self._index(group, pod))))
        if len(ordered) == 1:
            return self.place_pod(ordered[0], group, costs)
        budget = self._budget()
        candidates, failures = yield from self._candidates(group, ordered, costs, budget)
        settled: list[Decision] = []
        try:
            if partial or not failures:
                failures += yield from self._place_batches(group, candidates, settled, costs, budget, partial=partial)
            if not failures or partial:
                return self._with_edges(group, settled, failures, costs, cut_short=budget.cut_short)
        except BaseException:  # GeneratorExit too: then nobody wants the plan any more
            self.forget(settled)
            raise
        self.forget(settled)
        failed = all_fail(group, (candidate.info.pod for candidate in candidates), failures)
        return Outcome(failures=failed, cut_short=budget.cut_short)

    def place_each(self, pods: Sequence[Pod], costs: NetworkCosts) -> Planning:
        """Place pods without an AppGroup one by one, in this order, as many as the time budget allows; in turns."""
        budget = self._budget()
        decisions: list[Decision] = []
        failures: list[Failure] = []
        try:
            for pod in pods:
                if (decisions or failures) and budget.exhausted:
                    failures.append(unplanned(pod, None))
                    continue
                yield from budget.pause()
                outcome = self.place_pod(pod, None, costs)
                decisions.extend(outcome.decisions)
                failures.extend(outcome.failures)
        except BaseException:
            self.forget(decisions)
            raise
        return Outcome(decisions=tuple(decisions), failures=tuple(failures), cut_short=budget.cut_short)

    def _budget(self) -> Budget:
        return Budget(self._cache.clock, self._profile.gang.planning_seconds)

    def _infrastructure(self, costs: NetworkCosts) -> InfrastructureState:
        return self.view.current(costs, self._cache.bandwidth())

    def _cycle(self, pod: Pod, group: Group | None, costs: NetworkCosts, planned: Planned) -> CycleState:
        """What the plugins are given about a pod that is placed by itself."""
        infrastructure = self._infrastructure(costs)
        return cycle_of(pod, group, self._cache, infrastructure, limits_known=costs.available, planned=planned)

    @staticmethod
    def _index(group: Group, pod: Pod) -> int:
        return group.index.get(workload_of(pod), len(group.index) + 1)

    def _candidates(
        self, group: Group, pods: Sequence[Pod], costs: NetworkCosts, budget: Budget, *, first: bool = True
    ) -> Generator[None, None, tuple[list[Candidate], list[Failure]]]:
        """Filter every pod, once per template; pods that fit nowhere become failures.

        The `first` look takes turns, and leaves out what a plan in counts judges itself.
        """
        framework = self._framework
        in_counts = first and self._in_counts is not None
        skip = framework.judged_jointly | (JUDGED_IN_COUNTS if in_counts else frozenset())
        costs_of = framework.objective_costs if in_counts else framework.joint_costs
        infrastructure = self._infrastructure(costs)
        known: dict[tuple[object, ...], Candidate] = {}
        candidates: list[Candidate] = []
        failures: list[Failure] = []
        for pod in pods:
            info = self._state.info(pod)
            rejected = self._cache.recently_rejected(pod)
            key = (id(info.template), rejected, *beyond_template(pod))
            like = known.get(key)
            if like is None and known and budget.exhausted:
                failures.append(unplanned(pod, group))
                continue
            if like is None:
                if first:
                    yield from budget.pause()
                cycle = CycleState(info, self._state, infrastructure=infrastructure, recently_rejected=rejected)
                result = framework.filter(cycle, skip=skip)
                if not result.feasible and info.template.terms_of("affinity"):
                    # The pods it wants to be near may be in this very plan: that is judged once they are assumed.
                    result = framework.filter(cycle, skip={InterPodAffinity.name, *skip})
                like = known[key] = Candidate(info, result, costs_of(cycle, result.mask))
            if like.result.feasible:
                candidates.append(replace(like, info=info))
            else:
                failures.append(_failure(pod, group, like.result))
        return candidates, failures

    def _place_batches(
        self,
        group: Group,
        candidates: Sequence[Candidate],
        settled: list[Decision],
        costs: NetworkCosts,
        budget: Budget,
        *,
        partial: bool,
    ) -> Generator[None, None, list[Failure]]:
        """Plan batch after batch and assume the decisions, which are added to `settled`; returns who gets no node.

        Pods with rules about other pods are checked once these are assumed, and moved if need be; so are those left
        too little room by the plan, made of floats, and all where Services keep calls near, of which it knows nothing.
        """
        failures: list[Failure] = []
        unmet: list[Failure] = []
        held: list[Decision] = []
        near, planned = self._cache.services.keeps_near(group), False
        if self._in_counts is not None:
            rest, held = yield from self._in_counts.place(group, candidates, settled, costs, budget, partial=partial)
            held, unmet = yield from self._settle_held(group, held, settled, costs, budget)
            candidates, failures = yield from self._candidates(group, rest, costs, budget, first=False)
            if failures and not partial:
                return failures
        for filtered in batches(candidates, lambda candidate: workload_of(candidate.info.pod)):
            batch = filtered
            if planned and budget.exhausted:
                failures.extend(unplanned(candidate.info.pod, group) for candidate in batch)
                continue
            planned = True
            yield from budget.pause()
            if budget.pauses:
                # Others may have been placed, and nodes have come and gone, since the candidates were filtered.
                pods = [candidate.info.pod for candidate in batch]
                batch, lost = yield from self._candidates(group, pods, costs, budget, first=False)
                failures.extend(lost)
                if lost and not partial:
                    return failures
                if not batch:
                    continue
            infrastructure = self._infrastructure(costs)
            application = build_application(
                group, batch, self._cache.members.of(group.key), self._state, enforce_limits=costs.available
            )
            answer = plan(
                infrastructure, application, self._weights, self._strategy, partial=partial, explain=True, budget=budget
            )
            failures.extend(joint_failures(group, answer.unplaced, batch))
            if answer.unplaced and not partial:
                return failures
            infrastructure.observe(application)
            for decision in _decisions(group, batch, answer, infrastructure.infrastructure.names):
                info, slot = self._state.info(decision.pod), self._state.node_index[decision.node]
                if near or depends_on_others(info) or not fits(self._state, infrastructure.exact, slot, info.template):
                    held.append(decision)
                else:
                    self._cache.assume(decision.pod, decision.node)
                    settled.append(decision)
            held, unmet = yield from self._settle_held(group, held, settled, costs, budget)
        return [*failures, *unmet]

    def forget(self, decisions: Iterable[Decision]) -> None:
        """Give back what decisions that nobody will bind have assumed."""
        for decision in decisions:
            self._cache.forget(decision.pod)

    def _settle_held(
        self, group: Group, held: list[Decision], settled: list[Decision], costs: NetworkCosts, budget: Budget
    ) -> Generator[None, None, tuple[list[Decision], list[Failure]]]:
        """Assume pods with rules about others where these hold; one whose rule needs a later pod gets another turn.

        Its turn comes when a pod that its rules select has been assumed since; when nobody's turn has come, all are
        looked at once more. Returns those whose rules are not met, and why.
        """
        turns = Turns(self._state, [self._state.info(decision.pod) for decision in held])
        everybody = True
        while held:
            later: list[Decision] = []
            failures: list[Failure] = []
            for decision in held:
                info = self._state.info(decision.pod)
                if budget.exhausted:
                    failures.append(unplanned(decision.pod, group))
                    later.append(decision)
                    continue
                if not everybody and not turns.due(info):
                    later.append(decision)
                    continue
                yield from budget.pause()
                cycle, result = self._judge(decision.pod, group, costs)
                turns.judged(info)
                slot = self._state.node_index.get(decision.node)
                if slot is not None and result.mask[slot]:
                    self._cache.assume(decision.pod, decision.node)
                    settled.append(decision)
                else:
                    single = self._place_judged(decision.pod, group, cycle, result)
                    settled.extend(replace(moved, planned_with=decision.planned_with) for moved in single.decisions)
                    if single.failures:
                        failures.extend(single.failures)
                        later.append(decision)
                        continue
                turns.assumed(info)
            if len(later) == len(held) and everybody:
                return later, failures
            everybody, held = len(later) == len(held), later
        return [], []

    def _with_edges(
        self,
        group: Group,
        decisions: Sequence[Decision],
        failures: Sequence[Failure],
        costs: NetworkCosts,
        *,
        cut_short: bool,
    ) -> Outcome:
        """Add the network cost of each pod's edges, now that all are placed; an edge counts for both its ends."""
        placed, index = self._cache.members.places(group.key), self._state.node_index
        places = {
            node: self.view.places[self.view.model.location[index[node]]]
            for workload in group.selectors
            for node in placed.nodes(workload)
            if node in index
        }
        total, by_pod = edge_totals(group, placed, places, costs)
        return Outcome(
            decisions=tuple(
                replace(decision, edges=each.edges, edge_cost=each.cost)
                for decision in decisions
                for each in [by_pod.get((workload_of(decision.pod), decision.node), EdgeTotals())]
            ),
            failures=tuple(failures),
            edges=total.edges,
            edge_cost=total.cost,
            cut_short=cut_short,
        )


def _failure(pod: Pod, group: Group | None, result: FilterResult) -> Failure:
    """What the filters say of a pod that fits nowhere."""
    return Failure(
        pod,
        group=group.key if group is not None else None,
        nodes=result.nodes,
        rejections=tuple(result.rejections),
        blocker=result.blocker or "",
    )


def _decisions(group: Group, candidates: Sequence[Candidate], answer: Plan, names: Sequence[str]) -> list[Decision]:
    """The engine's plan as decisions, not assumed yet."""
    placed = int(np.count_nonzero(answer.assignment >= 0))
    decisions: list[Decision] = []
    for number, candidate in enumerate(candidates):
        slot = int(answer.assignment[number])
        if slot < 0:
            continue
        terms = {name: float(values[number]) for name, values in answer.terms.items()}
        runner_ups = tuple(
            Alternative(names[item.node], item.cost, dict(item.terms)) for item in answer.runner_ups.get(number, ())
        )
        decisions.append(
            Decision(
                pod=candidate.info.pod,
                node=names[slot],
                strategy=answer.strategy,
                value=sum(terms.values()),
                terms=terms,
                runner_ups=runner_ups,
                feasible=candidate.result.feasible,
                nodes=candidate.result.nodes,
                rejections=tuple(candidate.result.rejections),
                group=group.key,
                planned_with=placed,
            )
        )
    return decisions
