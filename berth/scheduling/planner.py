"""The planner: turns a queue entry's waiting pods into decisions and assumes them in the cache.

An AppGroup's waiting pods are planned together: in counts of replicas, or by the gang engine where the profile says so
or counts cannot express what holds. The gang engine's plan cannot see rules between pods (pod affinity, topology
spread, claims): pods that have some are checked one by one against the cache with the others assumed, and moved by
filter and score where the joint choice breaks a rule.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace

from berth.kube.objects import Pod
from berth.network.costs import NetworkCosts
from berth.network.edge_costs import EdgeTotals, edge_totals
from berth.network.groups import Group
from berth.network.limits import NOTHING_PLANNED, Planned
from berth.network.routing import Routing
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.node_changes import NodeChange
from berth.scheduling.candidates import CandidateFilter
from berth.scheduling.carrying_out import CarryingOut
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import ALONE, Decision, Failure, Outcome, Scale
from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.framework.framework import FilterResult, Framework
from berth.scheduling.framework.plugin import Afterwards, Plugin
from berth.scheduling.gang.application import Candidate, as_of_now, build_application
from berth.scheduling.gang.batches import batches
from berth.scheduling.gang.budget import BEFORE_LONG, Budget
from berth.scheduling.gang.decisions import decisions_of
from berth.scheduling.gang.failures import all_fail, joint_failures, rejected, unplanned
from berth.scheduling.gang.infrastructure import InfrastructureView
from berth.scheduling.gang.plan import plan_in_turns
from berth.scheduling.gang.problem import Weights
from berth.scheduling.gang.state import InfrastructureState
from berth.scheduling.gang.strategies import DEFAULT, REPLICAS
from berth.scheduling.in_counts import InCounts
from berth.scheduling.planning import JointPlan, Planning
from berth.scheduling.plugins import PLUGINS
from berth.scheduling.plugins.network_overhead import NetworkOverhead
from berth.scheduling.queue_entry import pod_order
from berth.scheduling.replica_plan.one_of_each import gang_engine_does
from berth.scheduling.replica_plan.planner import ReplicaPlanner
from berth.scheduling.replica_plan.single import SinglePods
from berth.scheduling.single import choose, cycle_of, workload_of

_TO_PLAN = 2.0
"""Of the time of an attempt that may place some, in budgets, what is kept for pods to be planned once filtered."""
_CLASSES = 16
"""Of priority that are planned one after another at the most: each looks at the whole group anew."""
NOBODY: Mapping[str, int] = {}
"""No pod, by uid."""


class Planner:
    """Plans one queue entry after another against one cache, for one profile."""

    def __init__(
        self,
        cache: Cache,
        profile: Profile,
        *,
        plugins: Iterable[type[Plugin]] | None = None,
        budget_clock: Callable[[], float] | None = None,
    ) -> None:
        """Share the cache; several planners (one per profile) may work on one cache in turn.

        `plugins` are others than the registered ones, `budget_clock` measures time budgets instead of the cache's.
        """
        self._cache = cache
        self._budget_clock = budget_clock or cache.clock
        self._state = cache.state
        self._profile = profile
        self._framework = Framework(plugin.of(profile) for plugin in (PLUGINS if plugins is None else plugins))
        self.view = InfrastructureView(cache.state, profile)
        """The cluster as the gang engine sees it."""
        w = profile.weights
        self._filtered = CandidateFilter(cache, self._framework, self._infrastructure)
        self._carrying_out = CarryingOut(cache, self._infrastructure, self._judge, self._place_judged)
        self._weights = Weights(
            network=w.network, price=w.price, bandwidth=w.bandwidth, waste=w.waste, balance=w.balance
        )
        by_cost = profile.gang.alone is Scale.COST
        self._single = SinglePods(cache, self._framework, self.view, profile) if by_cost else None
        in_counts = profile.gang.strategy == REPLICAS
        self._in_counts = ReplicaPlanner(cache, self.view, self._judge, profile) if in_counts else None
        self._counting: InCounts | None = None
        if self._in_counts is not None:
            self._counting = InCounts(cache, self._filtered, self._in_counts, self._carrying_out)
        self._strategy = DEFAULT if in_counts else profile.gang.strategy

    def place_pod(self, pod: Pod, group: Group | None, costs: NetworkCosts) -> Outcome:
        """Place one pod by itself and assume the choice: by cost if it has an AppGroup, else by score."""
        return self._place_judged(pod, group, *self._judge(pod, group, costs))

    def _judge(
        self,
        pod: Pod,
        group: Group | None,
        costs: NetworkCosts,
        planned: Planned = NOTHING_PLANNED,
        *,
        skip: Collection[str] = (),
    ) -> tuple[CycleState, FilterResult]:
        """Which nodes admit the pod with what is assumed by now, and as to calls with what is planned."""
        cycle = self._cycle(pod, group, costs, planned)
        return cycle, self._framework.filter(cycle, skip=skip)

    def refusal(self, pod: Pod, group: Group | None, costs: NetworkCosts, change: NodeChange) -> tuple[str, str] | None:
        """Plugin and reason why an assumed pod's node would not take it with what has changed of it; None: it would."""
        plugins = self._framework.concerned(Afterwards(self._state.info(pod), self._state, change))
        if not plugins:
            return None
        slot = self._state.node_index[self._cache.node_of(pod)]
        with self._cache.set_aside(pod):
            return self._framework.refusal(plugins, self._cycle(pod, group, costs, NOTHING_PLANNED), slot)

    def _place_judged(self, pod: Pod, group: Group | None, cycle: CycleState, result: FilterResult) -> Outcome:
        """Take the best of the nodes that admit the pod and assume the choice."""
        if not result.feasible:
            return Outcome(failures=(rejected(pod, group, result),))
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
        joint = JointPlan(group, costs, self._budget(), partial)
        in_counts, since = self._in_counts is not None, joint.budget.pauses
        with joint.budget.holding_back(_TO_PLAN) if partial else nullcontext():
            candidates, failures = yield from self._filtered.candidates(joint, ordered, in_counts=in_counts)
        try:
            if partial or not failures:
                failures += yield from self._place_by_priority(joint, candidates, since)
            if not failures or partial:
                uids = [decision.pod.metadata.uid for decision in joint.settled]
                self._state.socket_choice.seat_together(uids, self._profile.interference)
                decisions = tuple((yield from self._with_edges(joint)))
                return Outcome(decisions, tuple(failures), cut_short=joint.budget.cut_short)
        except BaseException:  # GeneratorExit too: then nobody wants the plan any more
            self.forget(joint.settled)
            raise
        self.forget(joint.settled)
        failed = all_fail(group, (candidate.info.pod for candidate in candidates), failures)
        return Outcome(failures=failed, cut_short=joint.budget.cut_short)

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
        return Budget(self._budget_clock, self._profile.gang.planning_seconds)

    def _infrastructure(self, costs: NetworkCosts) -> InfrastructureState:
        return self.view.current(costs, self._cache.bandwidth())

    def _cycle(self, pod: Pod, group: Group | None, costs: NetworkCosts, planned: Planned) -> CycleState:
        """What the plugins are given about a pod that is placed by itself."""
        infrastructure = self._infrastructure(costs)
        return cycle_of(pod, group, self._cache, infrastructure, limits_known=costs.available, planned=planned)

    @staticmethod
    def _index(group: Group, pod: Pod) -> int:
        return group.index.get(workload_of(pod), len(group.index) + 1)

    def _place_by_priority(
        self, joint: JointPlan, candidates: Sequence[Candidate], since: int
    ) -> Generator[None, None, list[Failure]]:
        """Place all together; where one has the room of a pod of higher priority, class after class from the top."""
        failures = yield from self._place_candidates(joint, candidates, since)
        lowest = min((decision.pod.spec.priority for decision in joint.settled), default=0)
        outranked = any(failure.pod.spec.priority > lowest for failure in failures)
        if not (joint.partial and joint.settled and outranked) or joint.budget.exhausted:
            return failures
        self.forget(joint.settled)
        joint.settled.clear()
        joint.budget.restart()
        failures, in_counts = [], self._in_counts is not None
        for pods in _by_priority([candidate.info.pod for candidate in candidates]):
            if joint.settled and joint.budget.exhausted:
                failures += (unplanned(pod, joint.group) for pod in pods)
                continue
            since = joint.budget.pauses
            able, lost = yield from self._filtered.candidates(joint, pods, in_counts=in_counts)
            failures += [*lost, *(yield from self._place_candidates(joint, able, since))]
        return failures

    def _place_candidates(
        self, joint: JointPlan, candidates: Sequence[Candidate], since: int
    ) -> Generator[None, None, list[Failure]]:
        """Plan in counts where the profile says so, the rest batch after batch; returns who gets no node.

        Pods with rules about other pods are checked once these are assumed, and moved if need be; so are those left
        too little room by the plan, made of floats, those that request bandwidth, which calls of the plan take as
        well, and all where Services keep calls near, of which it knows nothing. `since` are the pauses of the budget
        before the candidates were filtered, which has pauses itself.
        """
        group, budget = joint.group, joint.budget
        failures: list[Failure] = []
        unmet: list[Failure] = []
        held: list[Decision] = []
        near, first = self._cache.services.keeps_near(group), True
        if self._counting is not None and not self._one_of_each(joint, candidates):
            rest, held, unmet, failures = yield from self._counting.place(joint, candidates, since)
            if failures and not joint.partial:
                return failures
            since = budget.pauses
            with budget.holding_back() if joint.partial else nullcontext():
                candidates, lost = yield from self._filtered.candidates(joint, rest)
            failures += lost
            if lost and not joint.partial:
                return failures
        for filtered in batches(candidates, lambda candidate: workload_of(candidate.info.pod)):
            if not first and budget.exhausted:
                failures.extend(unplanned(candidate.info.pod, group) for candidate in filtered)
                continue
            yield from budget.pause(BEFORE_LONG)
            batch, fresh = as_of_now(filtered, self._state), since
            if not first and budget.pauses != since:
                # Others may have been placed, and nodes have come and gone, since the candidates were filtered.
                fresh = budget.pauses
                batch, lost = yield from self._filtered.candidates(joint, [each.info.pod for each in batch])
                failures.extend(lost)
                if lost and not joint.partial:
                    return failures
                if not batch:
                    continue
            first = False
            decisions, lost = yield from self._plan(joint, batch)
            failures.extend(lost)
            if lost and not joint.partial:
                return failures
            held += yield from self._carrying_out.assume(joint, decisions, near=near, since=fresh)
            held, unmet = yield from self._carrying_out.settle(joint, held, together=near and not joint.partial)
        return [*failures, *unmet]

    def _plan(
        self, joint: JointPlan, batch: Sequence[Candidate]
    ) -> Generator[None, None, tuple[list[Decision], list[Failure]]]:
        """Have the gang engine plan a batch, and return also who gets no node; it knows nothing of Services.

        So calls that a Service may keep near are limited (maxNetworkCost) like all others. If that leaves no plan, they
        are left to the filters, which know whom they reach: all or nothing, or limits would be broken.
        """
        group = joint.group
        routing = {name: self._cache.services.routing(group.key, name).routing for name in group.selectors}
        lax = {name for name, how in routing.items() if how is Routing.LOCAL or not joint.costs.available}
        near = {name for name, how in routing.items() if how is not Routing.ALL} - lax
        limited = any(edge.dependency in near and edge.max_cost < math.inf for edge in group.edges)
        for free in (lax, lax | near):
            # Nodes may have come and gone, and pods with them, while the first plan was made.
            batch, infrastructure = as_of_now(batch, self._state), self._infrastructure(joint.costs)
            members = self._cache.members.of(group.key)
            application = build_application(group, batch, members, self._state, unlimited=free)
            answer = yield from plan_in_turns(
                infrastructure.snapshot(),
                application,
                self._weights,
                self._strategy,
                partial=joint.partial,
                explain=True,
                budget=joint.budget,
            )
            if not answer.unplaced or joint.partial or not limited:
                break
        unplaced = joint_failures(group, answer.unplaced, batch)
        if unplaced and not joint.partial:
            return [], unplaced
        infrastructure.observe(application)
        return decisions_of(group, batch, answer, infrastructure.infrastructure.names), unplaced

    def _one_of_each(self, joint: JointPlan, candidates: Sequence[Candidate]) -> bool:
        infrastructure, price = self._infrastructure(joint.costs), self._weights.price
        return gang_engine_does(joint.group, candidates, self._cache, infrastructure, price=price)

    def forget(self, decisions: Iterable[Decision]) -> None:
        """Give back what decisions that nobody will bind have assumed."""
        for decision in decisions:
            self._cache.forget(decision.pod)

    def _with_edges(self, joint: JointPlan) -> Generator[None, None, list[Decision]]:
        """Add the network cost of each pod's edges, now that all are placed; an edge counts for both its ends."""
        yield from joint.budget.pause(BEFORE_LONG)
        group, index = joint.group, self._state.node_index
        placed = self._cache.members.places(group.key)
        location = self._infrastructure(joint.costs).infrastructure.location
        places = {
            node: self.view.places[location[index[node]]]
            for workload in group.selectors
            for node in placed.nodes(workload)
            if node in index
        }
        _, by_pod = edge_totals(group, placed, places, joint.costs)
        found: list[Decision] = []
        for decision in joint.settled:
            yield from joint.budget.pause()
            each = by_pod.get((workload_of(decision.pod), decision.node), EdgeTotals())
            found.append(replace(decision, edges=each.edges, edge_cost=each.cost))
        return found


def _by_priority(pods: Sequence[Pod]) -> list[list[Pod]]:
    """Pods class after class from the top; of many priorities those next to each other are one class."""
    classes: defaultdict[int, list[Pod]] = defaultdict(list)
    for pod in pods:
        classes[pod.spec.priority].append(pod)
    found: list[list[Pod]] = []
    for priority in sorted(classes, reverse=True):
        if len(classes) > _CLASSES and found and len(found[-1]) < len(pods) / _CLASSES:
            found[-1].extend(classes[priority])
        else:
            found.append(classes[priority])
    return found
