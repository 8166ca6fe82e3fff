"""Strategy `replicas` from candidates to assumed pods."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from berth.network.limits import NOTHING_PLANNED
from berth.network.routing import Routing
from berth.scheduling.cache.volumes import claim_keys
from berth.scheduling.decision import Decision
from berth.scheduling.framework.reasons import BANDWIDTH
from berth.scheduling.gang.application import as_of_now
from berth.scheduling.gang.budget import BEFORE_LONG
from berth.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from berth.scheduling.plugins.interference_least_slowdown import InterferenceLeastSlowdown
from berth.scheduling.plugins.network_overhead import NetworkOverhead
from berth.scheduling.plugins.node_volume_limits import NodeVolumeLimits
from berth.scheduling.plugins.pod_topology_spread import PodTopologySpread
from berth.scheduling.plugins.volume_binding import VolumeBinding
from berth.scheduling.plugins.volume_restrictions import VolumeRestrictions
from berth.scheduling.replica_plan.assume import Assuming
from berth.scheduling.replica_plan.choosiness import Choosing
from berth.scheduling.replica_plan.decisions import read
from berth.scheduling.replica_plan.question import Question, pose
from berth.scheduling.replica_plan.same_nodes import NodesChangedError, SameNodes
from berth.scheduling.replica_plan.volume_cuts import MOST_CUTS, cut_of
from berth.scheduling.replicas.plan import plan
from berth.scheduling.single import workload_of

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
    from berth.scheduling.gang.state import InfrastructureState
    from berth.scheduling.planning import JointPlan

JUDGED_IN_COUNTS = frozenset((InterPodAffinity.name, PodTopologySpread.name))
"""Filters whose rules a plan in counts judges itself, beside those of every joint plan."""
JUDGED_AT_ONCE = frozenset((BANDWIDTH,))
"""Filters of what a plan's calls take, which is judged for all of its pods together."""
VOLUME_FILTERS = (VolumeBinding(), NodeVolumeLimits(), VolumeRestrictions())
"""Filters of what pods with claims compete for."""


class Judge(Protocol):
    """Runs the filters for one pod."""

    def __call__(
        self,
        pod: Pod,
        group: Group | None,
        costs: NetworkCosts,
        planned: Planned = NOTHING_PLANNED,
        *,
        skip: Collection[str] = (),
    ) -> tuple[CycleState, FilterResult]:
        """Return what they say with all that is assumed by now, and as to calls with what is planned; some left out."""


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

    def place(self, joint: JointPlan, candidates: Sequence[Candidate]) -> Generator[None, None, Unplaced]:
        """Plan candidates together and assume the decisions.

        The pods that a rolling update brings later are planned as well, if all find room and nothing depends on them:
        they may have the room of those that they replace, which is not free yet.

        Args:
            joint: what they are for.
            candidates: waiting pods, all filtered by the cluster as it is, without `JUDGED_IN_COUNTS`.
        """
        while (unplaced := (yield from self._place(joint, candidates))) is None:
            joint.ahead = False
            joint.budget.restart()
        return unplaced

    def _place(self, joint: JointPlan, candidates: Sequence[Candidate]) -> Generator[None, None, Unplaced | None]:
        """Plan and assume once; None, and nothing assumed, where the pods that come later are in the way."""
        group, costs, budget = joint.group, joint.costs, joint.budget

        def current() -> InfrastructureState:
            return self._view.current(costs, self._cache.bandwidth())

        question = yield from self._pose(joint, candidates, current)
        if question is None:
            return [candidate.info.pod for candidate in candidates], []
        # Nodes may come and go while it is answered.
        names = current().infrastructure.names
        with budget.holding_back() if joint.partial else nullcontext():
            answer = yield from plan(question.problem, partial=joint.partial, budget=budget)
        ahead = any(pods.to_come for pods in question.pod_sets)
        if ahead and not answer.complete:
            return None
        yield from budget.pause(BEFORE_LONG)
        choosing = Choosing((candidate.info.pod for candidate in candidates), self._cache.state)
        reading = yield from read(question, answer, group, names, budget, choosing.of)
        first = len(joint.settled)
        limited = any(edge.max_cost < math.inf for edge in group.edges)
        assuming = Assuming(
            self._cache,
            reading.decisions,
            partial(self._admitting, group, costs),
            current,
            budget,
            # The risk of a link is that of one pod and its own calls.
            judge_all=question.judged or (question.carried and self._profile.check_risk_node_bandwidth is not None),
            key=group.key,
            calls=[edge for edge in group.edges if edge.bandwidth] if question.carried else [],
            limited=limited,
        )
        held = yield from assuming.run(joint.settled)
        if held and ahead:
            for decision in joint.settled[first:]:
                self._cache.forget(decision.pod)
            del joint.settled[first:]
            return None
        if held and not joint.partial:
            yield from self._learn(joint, question, held, names, first)
        if held and limited:
            held += yield from self._give_up(joint, first)
        return [candidate.info.pod for candidate in reading.rest], held

    def _learn(
        self, joint: JointPlan, question: Question, held: Sequence[Decision], names: Sequence[str], first: int
    ) -> Generator[None, None, None]:
        """Note where pods with claims found no volume left, for another plan.

        Args:
            joint: what they are for.
            question: what was asked.
            held: decisions that cannot be carried out.
            names: node names by slot, as they were then.
            first: what is settled from here on is of this plan.
        """
        state = self._cache.state
        number = {each.info.pod.metadata.uid: n for n, pods in enumerate(question.pod_sets) for each in pods.candidates}
        looked_at: set[tuple[int, str]] = set()
        users = Counter(
            key for pods in question.pod_sets for each in pods.candidates for key in claim_keys(each.info.pod)
        )
        for decision in held:
            claims, row = claim_keys(decision.pod), number[decision.pod.metadata.uid]
            if not claims or (row, decision.node) in looked_at:
                continue
            looked_at.add((row, decision.node))
            yield from joint.budget.pause()
            if joint.budget.over or len(joint.cuts) == MOST_CUTS:
                return
            cycle, _ = self._judge(decision.pod, joint.group, joint.costs)
            lost = np.zeros(state.size, dtype=np.bool_)
            for plugin in VOLUME_FILTERS:
                for rejected in plugin.filter(cycle):
                    lost |= rejected.nodes
            asked = [decision.node]
            # Where others are that share a claim says nothing of nodes where nobody is.
            if all(users[key] == 1 for key in claims):
                asked = [names[slot] for slot in np.flatnonzero(question.pod_sets[row].mask).tolist()]
            nodes = [name for name in asked if (slot := state.node_index.get(name)) is not None and lost[slot]]
            cut = cut_of(decision.pod, nodes, joint.settled[first:], state)
            if cut is not None and cut not in joint.cuts:
                joint.cuts.append(cut)

    def _pose(
        self, joint: JointPlan, candidates: Sequence[Candidate], current: Callable[[], InfrastructureState]
    ) -> Generator[None, None, Question | None]:
        """Put the question in turns, and where nodes change meanwhile anew at a stretch; None without time for it.

        Nodes may change at every turn, so that in turns it is never put.
        """
        for at_a_stretch in (False, True):
            if at_a_stretch and joint.budget.exhausted:
                break
            with suppress(NodesChangedError):
                now = as_of_now(candidates, self._cache.state)
                current()  # finds the places of the nodes as they are
                return (
                    yield from pose(
                        joint.group,
                        now,
                        self._cache,
                        current,
                        self._view.places,
                        self._profile.weights,
                        enforce_limits=joint.costs.available,
                        spread=self._profile.spread,
                        defaults=self._profile.pod_topology_spread.constraints,
                        interference=InterferenceLeastSlowdown.of(self._profile).cost_weight,
                        turns=SameNodes(self._cache.state, joint.budget, at_a_stretch=at_a_stretch),
                        cuts=joint.cuts,
                        ahead=joint.ahead,
                    )
                )
        return None

    def _admitting(
        self, group: Group, costs: NetworkCosts, pod: Pod, planned: Planned, *, budgets: bool
    ) -> npt.NDArray[np.bool_]:
        """Return bool[N], the nodes that admit a pod, as :class:`Filters` asks for them."""
        return self._judge(pod, group, costs, planned, skip=() if budgets else JUDGED_AT_ONCE)[1].mask

    def _give_up(self, joint: JointPlan, first: int) -> Generator[None, None, list[Decision]]:
        """Give up decisions from `first` on whose calls go beyond a limit now that others of the plan have no node.

        That can be where a Service keeps calls near, of which fewer endpoints are reached then; those that there is no
        time to judge are given up with all that were judged before.
        """
        group, state, settled, given_up = joint.group, self._cache.state, joint.settled, list[Decision]()
        near = {
            edge.dependent
            for edge in group.edges
            if edge.max_cost < math.inf
            and self._cache.services.routing(group.key, edge.dependency).routing is not Routing.ALL
        }
        callers = [decision for decision in settled[first:] if workload_of(decision.pod) in near]
        looked_at = -1
        while looked_at != len(given_up):
            looked_at = len(given_up)
            for decision in tuple(callers):
                yield from joint.budget.pause()
                if joint.budget.exhausted:
                    for caller in callers:
                        self._cache.forget(caller.pod)
                        settled.remove(caller)
                    return [*given_up, *callers]
                self._cache.forget(decision.pod)
                cycle, _ = self._judge(decision.pod, group, joint.costs, NOTHING_PLANNED)
                cycle.limits = [edge for edge in cycle.limits if edge.callers is None]
                slot = state.node_index.get(decision.node)
                if slot is not None and any(rejected.nodes[slot] for rejected in NetworkOverhead().filter(cycle)):
                    settled.remove(decision)
                    callers.remove(decision)
                    given_up.append(decision)
                else:
                    self._cache.assume(decision.pod, decision.node)
        return given_up
