"""The planner: turns a unit of waiting pods into decisions and assumes them in the cluster state.

An AppGroup's waiting pods are planned together by the gang engine. Its plan cannot see rules between pods
(pod affinity, topology spread, claims): pods that have some are checked one by one against the state with the
others assumed, and moved by filter and score where the joint choice breaks a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from berth.api.labels import membership
from berth.kube.objects import Pod
from berth.network.costs import NetworkCosts
from berth.network.edges import BandwidthAllocations, pod_edges
from berth.network.groups import Group, GroupKey
from berth.network.members import GroupMembers, Member
from berth.scheduling.cache.pod_templates import PodInfo
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.cache.volumes import claim_keys, disk_uses
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Alternative, Decision, Failure, Outcome
from berth.scheduling.gang.application import Candidate, build_application, edge_costs, names_nodes
from berth.scheduling.gang.failures import joint_failures
from berth.scheduling.gang.infrastructure import InfrastructureView
from berth.scheduling.gang.outcome import Plan
from berth.scheduling.gang.plan import plan
from berth.scheduling.gang.problem import Weights
from berth.scheduling.gang.state import InfrastructureState
from berth.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from berth.scheduling.plugins.neighbours import Neighbour
from berth.scheduling.plugins.pipeline import FilterPipeline, FilterResult
from berth.scheduling.plugins.scores.pipeline import ScorePipeline
from berth.scheduling.queue import pod_order
from berth.scheduling.single import SinglePlanner, reject
from berth.scheduling.volumes import assume_volumes, forget_volumes

ALONE = "alone"


def _nobody(_pod: Pod) -> Collection[str]:
    return ()


class Planner:
    """Plans one unit after another against one ClusterState."""

    def __init__(
        self,
        state: ClusterState,
        members: GroupMembers,
        groups: Mapping[GroupKey, Group],
        profile: Profile,
        *,
        bandwidth_allocations: BandwidthAllocations,
        avoided: Callable[[Pod], Collection[str]] = _nobody,
        filters: FilterPipeline | None = None,
        scores: ScorePipeline | None = None,
    ) -> None:
        """Share the state; several planners (one per profile) may work on one state in turn.

        Args:
            state: nodes and the pods on them.
            members: pods of AppGroups.
            groups: compiled AppGroups.
            profile: weights, strategy, prices.
            bandwidth_allocations: bandwidth of placed edges.
            avoided: nodes that a pod should not be tried on again for now.
            filters: other filters than the default ones.
            scores: other scores than the default ones.
        """
        self._state = state
        self._members = members
        self._groups = groups
        self._profile = profile
        self._bandwidth_allocations = bandwidth_allocations
        self._avoided = avoided
        self._filters = filters or FilterPipeline()
        self._scores = scores or ScorePipeline()
        self._single = SinglePlanner(state, profile, feasible=self._feasible, scores=self._scores)
        self.view = InfrastructureView(state, profile)
        """The cluster as the gang engine sees it."""
        weights = profile.weights
        self._weights = Weights(
            network=weights.network,
            price=weights.price,
            bandwidth=weights.bandwidth,
            waste=weights.waste,
            balance=weights.balance,
        )

    def place_group(self, group: Group, pods: Sequence[Pod], costs: NetworkCosts, *, partial: bool) -> Outcome:
        """Plan the waiting pods of an AppGroup together and assume what was decided.

        Args:
            group: the AppGroup.
            pods: its waiting pods.
            costs: network costs of this application.
            partial: bind what fits; otherwise all or nothing.
        """
        ordered = sorted(pods, key=lambda pod: pod_order(pod, self._index(group, pod)))
        if len(ordered) == 1:
            return self.place_pod(ordered[0], group, costs)
        candidates, results, failures = self._candidates(group, ordered)
        if failures and not partial:
            return Outcome(failures=self._all_fail(group, candidates, failures))
        if not candidates:
            return Outcome(failures=tuple(failures))
        infrastructure = self._infrastructure(costs)
        application = build_application(
            group, candidates, self._members.of(group.key), self._state, enforce_limits=costs.available
        )
        answer = plan(
            infrastructure, application, self._weights, self._profile.gang.strategy, partial=partial, explain=True
        )
        failures.extend(joint_failures(group, answer.unplaced, candidates, results))
        if answer.unplaced and not partial:
            return Outcome(failures=self._all_fail(group, candidates, failures))
        infrastructure.observe(application)
        decisions = self._take(group, candidates, results, answer, infrastructure)
        return self._settle(group, decisions, failures, costs, partial=partial)

    def place_pod(self, pod: Pod, group: Group | None, costs: NetworkCosts) -> Outcome:
        """Filter and score one pod against the state and assume the choice."""
        info = self._state.info(pod)
        infrastructure = self._infrastructure(costs)
        choice = self._single.choose(
            info,
            self._neighbours(pod, group),
            infrastructure,
            named=names_nodes(info),
            enforce_limits=costs.available,
        )
        key = group.key if group is not None else None
        if choice.slot < 0:
            permanent = choice.result.blocker is not None
            return Outcome(
                failures=(Failure(pod, choice.result.message(), choice.result.rejected, key, permanent=permanent),)
            )
        decision = Decision(
            pod=pod,
            node=self._state.node_name(choice.slot),
            strategy=ALONE,
            cost=choice.score,
            terms=choice.terms,
            runner_ups=choice.runner_ups,
            feasible=choice.result.feasible,
            nodes=choice.result.nodes,
            rejected=choice.result.rejected,
            group=key,
            edges=choice.edges,
            edge_cost=choice.edge_cost,
        )
        self.assume(decision)
        return Outcome(decisions=(decision,))

    def assume(self, decision: Decision) -> None:
        """Take the room that a decision needs."""
        self._state.assume(decision.pod, decision.node)
        assume_volumes(decision.pod, decision.node, self._state)
        self._members.move(decision.pod.metadata.uid, node=decision.node)
        self._bandwidth_allocations.mark(decision.group)

    def forget(self, decision: Decision) -> None:
        """Give the room of a decision back: it was not bound. A pod that is bound after all stays where it is."""
        if self._state.forget(decision.pod.metadata.uid):
            self._members.move(decision.pod.metadata.uid, node="")
            self._bandwidth_allocations.mark(decision.group)
        forget_volumes(decision.pod, self._state)

    def _feasible(self, info: PodInfo, *, skip: Collection[str] = ()) -> FilterResult:
        """Run the filters, and keep the pod away from nodes that lately rejected one like it."""
        result = self._filters.evaluate(info, self._state, skip=skip)
        slots = [slot for name in self._avoided(info.pod) if (slot := self._state.node_index.get(name)) is not None]
        if slots:
            nodes = np.zeros(self._state.size, dtype=np.bool_)
            nodes[slots] = True
            reject(result, "node(s) lately rejected a pod of the same owner", nodes)
        return result

    def _infrastructure(self, costs: NetworkCosts) -> InfrastructureState:
        self._bandwidth_allocations.refresh(self._groups)
        return self.view.current(costs, self._bandwidth_allocations)

    @staticmethod
    def _index(group: Group, pod: Pod) -> int:
        return group.index.get(workload_of(pod), len(group.index) + 1)

    def _candidates(
        self, group: Group, pods: Sequence[Pod]
    ) -> tuple[list[Candidate], list[FilterResult], list[Failure]]:
        """Filter every pod, once per template; pods that fit nowhere become failures."""
        known: dict[tuple[object, ...], FilterResult] = {}
        candidates: list[Candidate] = []
        results: list[FilterResult] = []
        failures: list[Failure] = []
        for pod in pods:
            info = self._state.info(pod)
            key = (id(info.template), frozenset(self._avoided(pod)), *_beyond_template(pod))
            result = known.get(key)
            if result is None:
                result = self._feasible(info)
                if not result.feasible and info.template.terms_of("affinity"):
                    # The pods it wants to be near may be in this very plan: that is judged once they are assumed.
                    result = self._feasible(info, skip=(InterPodAffinity.name,))
                known[key] = result
            if result.feasible:
                candidates.append(Candidate(info, result.mask))
                results.append(result)
            else:
                permanent = result.blocker is not None
                failures.append(Failure(pod, result.message(), result.rejected, group.key, permanent=permanent))
        return candidates, results, failures

    @staticmethod
    def _all_fail(group: Group, candidates: Sequence[Candidate], failures: Sequence[Failure]) -> tuple[Failure, ...]:
        """Add the pods that would fit but wait for the others."""
        named = {failure.pod.metadata.uid for failure in failures}
        first = failures[0]
        waiting = (
            Failure(
                candidate.info.pod,
                f"AppGroup {group.key[1]} is placed all or nothing and waits for pod "
                f"{first.pod.metadata.name}: {first.message}",
                group=group.key,
            )
            for candidate in candidates
            if candidate.info.pod.metadata.uid not in named
        )
        return (*failures, *waiting)

    def _take(
        self,
        group: Group,
        candidates: Sequence[Candidate],
        results: Sequence[FilterResult],
        answer: Plan,
        infrastructure: InfrastructureState,
    ) -> list[Decision]:
        """The engine's plan as decisions, not assumed yet."""
        placed = int(np.count_nonzero(answer.assignment >= 0))
        names = infrastructure.infrastructure.names
        decisions: list[Decision] = []
        for number, (candidate, result) in enumerate(zip(candidates, results, strict=True)):
            slot = int(answer.assignment[number])
            if slot < 0:
                continue
            terms = {name: float(values[number]) for name, values in answer.terms.items()}
            decisions.append(
                Decision(
                    pod=candidate.info.pod,
                    node=names[slot],
                    strategy=answer.strategy,
                    cost=sum(terms.values()),
                    terms=terms,
                    runner_ups=tuple(
                        Alternative(names[item.node], item.cost, dict(item.terms))
                        for item in answer.runner_ups.get(number, ())
                    ),
                    feasible=result.feasible,
                    nodes=result.nodes,
                    rejected=result.rejected,
                    group=group.key,
                    planned_with=placed,
                )
            )
        return decisions

    def _settle(
        self, group: Group, decisions: list[Decision], failures: list[Failure], costs: NetworkCosts, *, partial: bool
    ) -> Outcome:
        """Assume the decisions; pods with rules about other pods are checked, and moved if need be."""
        settled: list[Decision] = []
        held: list[Decision] = []
        try:
            for decision in decisions:
                if _depends_on_others(self._state.info(decision.pod)):
                    held.append(decision)
                else:
                    self.assume(decision)
                    settled.append(decision)
            failures = [*failures, *self._settle_held(group, held, settled, costs)]
        except Exception:
            for decision in settled:
                self.forget(decision)
            raise
        if failures and not partial:
            for decision in settled:
                self.forget(decision)
            return Outcome(
                failures=self._all_fail(
                    group, [Candidate(self._state.info(d.pod), np.zeros(0, dtype=np.bool_)) for d in settled], failures
                )
            )
        return self._with_edges(group, settled, failures)

    def _settle_held(
        self, group: Group, held: Sequence[Decision], settled: list[Decision], costs: NetworkCosts
    ) -> list[Failure]:
        """Assume pods with rules about others where these hold; one whose rule needs a later pod gets another turn."""
        while held:
            later: list[Decision] = []
            failures: list[Failure] = []
            for decision in held:
                if self._still_good(decision, group, costs):
                    self.assume(decision)
                    settled.append(decision)
                    continue
                single = self.place_pod(decision.pod, group, costs)
                settled.extend(replace(moved, planned_with=decision.planned_with) for moved in single.decisions)
                if single.failures:
                    failures.extend(single.failures)
                    later.append(decision)
            if len(later) == len(held):
                return failures
            held = later
        return []

    def _still_good(self, decision: Decision, group: Group, costs: NetworkCosts) -> bool:
        """Whether a planned node still admits the pod with what has been assumed, and moved, so far."""
        info = self._state.info(decision.pod)
        result, _ = self._single.admit(
            info,
            self._neighbours(decision.pod, group),
            self._infrastructure(costs),
            named=names_nodes(info),
            enforce_limits=costs.available,
        )
        return bool(result.mask[self._state.node_index[decision.node]])

    def _with_edges(self, group: Group, decisions: Sequence[Decision], failures: Sequence[Failure]) -> Outcome:
        """Add the network cost of each pod's edges, now that all are placed."""
        model = self.view.model
        members = self._members.of(group.key)
        places = {
            member.node: int(model.location[slot])
            for member in members
            if (slot := self._state.node_index.get(member.node)) is not None
        }
        totals = edge_costs(group, members, places, model.location_cost)
        return Outcome(
            decisions=tuple(
                replace(decision, edges=count, edge_cost=cost)
                for decision in decisions
                for count, cost in [totals.get(decision.pod.metadata.uid, (0, 0.0))]
            ),
            failures=tuple(failures),
            edges=sum(count for count, _ in totals.values()) // 2,
            edge_cost=sum(cost for _, cost in totals.values()) / 2,
        )

    def _neighbours(self, pod: Pod, group: Group | None) -> list[Neighbour]:
        """The placed pods that this one has edges with."""
        if group is None:
            return []
        uid = pod.metadata.uid
        own = Member(uid, pod.key, workload_of(pod), "")
        others = [member for member in self._members.of(group.key) if member.uid != uid]
        found: list[Neighbour] = []
        for edge in pod_edges(group, [*others, own]):
            if uid not in (edge.dependent.uid, edge.dependency.uid):
                continue
            calls_us = edge.dependency.uid == uid
            slot = self._state.node_index.get((edge.dependent if calls_us else edge.dependency).node)
            if slot is not None:
                found.append(Neighbour(slot, edge.max_cost, edge.bandwidth, calls_us))
        return found


def workload_of(pod: Pod) -> str:
    """The workload selector in a pod's labels, empty when it has none."""
    place = membership(pod.metadata.labels)
    return place.workload if place is not None else ""


def _beyond_template(pod: Pod) -> tuple[object, ...]:
    """What filters read of a pod that its template's profile leaves out."""
    spec = pod.spec
    if not spec.volumes and not spec.resource_claims and spec.scheduling_group is None:
        return ()
    return (claim_keys(pod), disk_uses(pod), bool(spec.resource_claims), spec.scheduling_group is not None)


def _depends_on_others(info: PodInfo) -> bool:
    """Whether the pod's rules look at other pods, so that a joint plan may break them."""
    profile = info.template
    return bool(
        profile.terms
        or profile.hard_spread
        or profile.host_ports
        or claim_keys(info.pod)
        or (info.pod.spec.volumes and disk_uses(info.pod))
    )
