"""One pod of an AppGroup by itself: what the objective of joint plans makes of every node.

The filters have judged all hard rules by then. Only what has to do with the pod is looked at: workloads that it calls
or that call it, and who else loads those that it calls.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from berth.network.groups import Group, GroupEdge
from berth.network.routing import Routing
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Scale
from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.framework.framework import FilterResult, Framework
from berth.scheduling.framework.plugin import MAX_SCORE
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.infrastructure import InfrastructureView
from berth.scheduling.gang.problem import Infrastructure
from berth.scheduling.gang.state import InfrastructureState
from berth.scheduling.replica_plan.absent import calls_through_absent
from berth.scheduling.replica_plan.places import Kinds, placed_replicas
from berth.scheduling.replica_plan.pod_sets import Alike, Floats, own_costs
from berth.scheduling.replica_plan.prices import kept_endpoints, lasting_spread_price, objective_prices
from berth.scheduling.replica_plan.rollout import replaced_pods
from berth.scheduling.replica_plan.rules import RuleReader
from berth.scheduling.replicas.one_more import one_more
from berth.scheduling.replicas.problem import Edge, PodSet, Problem, Workload
from berth.scheduling.single import Choice, best_of, workload_of

NO_AMOUNTS = np.zeros(0, dtype=np.int64)

SCORES = "scores"
"""Term of the plugins that have nothing but points to say."""


class SinglePods:
    """Chooses nodes for pods of AppGroups that are placed one at a time, for one profile."""

    def __init__(self, cache: Cache, framework: Framework, view: InfrastructureView, profile: Profile) -> None:
        """Share the cache and the plugins with the planner that asks.

        Args:
            cache: the cluster, placed members and Services.
            framework: plugins and their weights.
            view: what the network locations of the cluster stand for.
            profile: weights and prices.
        """
        self._cache = cache
        self._framework = framework
        self._view = view
        self._weights, self._spread = profile.weights, profile.spread
        self._defaults = profile.pod_topology_spread.constraints
        self._kinds: Kinds | None = None

    def choose(self, cycle: CycleState, result: FilterResult, group: Group) -> Choice:
        """Pick the node that changes the objective least, of those that the filters admit; nothing is assumed.

        Raises:
            ValueError: no node is feasible, or nobody says what the network costs.
        """
        infrastructure = cycle.infrastructure
        if infrastructure is None:
            raise ValueError("choosing by cost needs the network costs of the cluster")
        pods = self._alike(cycle, result, infrastructure)
        changes, replicas = self._changes(pods, group, infrastructure.infrastructure)
        terms = {**changes, **pods.costs}
        points = self._framework.score(cycle, result.mask, skip=self._framework.in_objective)
        # An edge counts once, whatever the replicas, and so do the points of a workload's pods.
        scale = self._weights.scores / (MAX_SCORE * (replicas + 1))
        terms[SCORES] = scale * (points.greatest - points.total)
        total = sum(terms.values(), np.zeros(cycle.cluster.size))
        return best_of(cycle, result.mask, total, terms, scale=Scale.COST)

    def _alike(self, cycle: CycleState, result: FilterResult, infrastructure: InfrastructureState) -> Alike:
        """The pod as a set of one."""
        plugins = self._framework.objective_costs(cycle, result.mask)
        costs = own_costs(plugins, cycle.request, infrastructure, price=self._weights.price)
        template, workload = cycle.pod.template, workload_of(cycle.pod.pod)
        return Alike(
            workload, template, result, cycle.request, result.mask, costs, [Candidate(cycle.pod, result, plugins)]
        )

    def _changes(self, pods: Alike, group: Group, infrastructure: Infrastructure) -> tuple[Mapping[str, Floats], int]:
        """float64[N] by term, what one more pod changes; and the replicas that its workload has."""
        state = self._cache.state
        if self._kinds is None or self._kinds.infrastructure is not infrastructure:
            self._kinds = Kinds.of(state, infrastructure, self._view.places)
        kinds = self._kinds
        edges, routing = self._edges(pods.workload, group)
        ends = (end for edge in edges for end in (edge.dependent, edge.dependency))
        number = {name: row for row, name in enumerate(dict.fromkeys([pods.workload, *ends]))}
        gone = replaced_pods(group, [pods.candidates[0].info.pod], self._cache)
        placed = placed_replicas(group, state, number, without=gone)
        replicas = sum(placed.get(pods.workload, {}).values())
        lasting = lasting_spread_price(group, self._weights.network, infrastructure.location_cost)
        rules = RuleReader([pods], placed, state, self._defaults, gone, lasting).read_soft()
        homes = sorted({slot for counts in placed.values() for slot in counts})
        nodes, position = kinds.nodes, {slot: slot for slot in homes}
        if not rules:  # which tell nodes apart by whatever label they name
            nodes = kinds.one_of_each(np.array(homes, dtype=np.int64))
            position = {slot: at for at, slot in enumerate(homes, start=len(kinds.first))}
        problem = Problem(
            nodes=nodes,
            workloads=[
                Workload(
                    name=name,
                    routing=routing.get(name, Routing.ALL),
                    placed={position[slot]: count for slot, count in placed.get(name, {}).items()},
                )
                for name in number
            ],
            pod_sets=[PodSet(workload=0, replicas=1, request=NO_AMOUNTS)],
            edges=[Edge(caller=number[edge.dependent], callee=number[edge.dependency]) for edge in edges],
            rules=rules,
            prices=objective_prices(
                group,
                self._weights.network,
                infrastructure.location_cost,
                self._spread,
                [pods],
                rules,
                kept_endpoints(routing, [pods], placed),
            ),
        )
        changes = one_more(problem)
        if rules:
            return changes, replicas
        return {term: _everywhere(change, kinds, homes) for term, change in changes.items()}, replicas

    def _edges(self, workload: str, group: Group) -> tuple[list[GroupEdge], Mapping[str, Routing]]:
        """Calls of the workload and to it, other calls to those whose load it adds to, and how calls are routed."""
        own = [*group.edges_of.get(workload, ())]
        placed = self._cache.members.places(group.key)
        if not any(placed.staying(end) for edge in own for end in (edge.dependent, edge.dependency) if end != workload):
            present = [name for name in placed.workloads() if placed.staying(name)]
            own += calls_through_absent(group, [workload], present)
        routing = {
            name: self._cache.services.routing(group.key, name).routing for name in {edge.dependency for edge in own}
        }
        shared = {edge.dependency for edge in own if routing[edge.dependency] is not Routing.ALL} - {workload}
        others = (edge for edge in group.edges if edge.dependency in shared and edge.dependent != workload)
        return [*own, *others], routing


def _everywhere(change: Floats, kinds: Kinds, homes: list[int]) -> Floats:
    """float64[N] of values for a node of each kind, and then for each home."""
    first = len(kinds.first)
    everywhere: Floats = change[:first][kinds.kind]
    everywhere[homes] = change[first:]
    return everywhere
