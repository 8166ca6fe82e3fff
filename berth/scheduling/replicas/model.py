"""A problem compiled for the search: arrays over the *columns*, those of the problem's nodes that the search looks at.

Shapes use K columns, M pod sets, W workloads, L locations, Z zones that fail together. Every node with a placed
replica of the problem's workloads must be a column: what is on one node costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from berth.scheduling.replicas.problem import Bools, Floats, Ints, Problem, ProblemError, Routing

LARGE = 1e3
"""A broken rule costs this many times the highest cost of all edges and prices: search gives anything to mend it."""


@dataclass(frozen=True, slots=True)
class Target:
    """A callee as callers with one limit see it."""

    callee: int
    routing: Routing
    spread_cost: Floats
    """float64[L, L], weighted cost of calls that go to all endpoints"""
    near_cost: Floats | None
    """float64[L, L], weighted cost of calls as the Service routes them; None when they go to all endpoints anyway"""


class Model:
    """What the search reads of a problem."""

    def __init__(self, problem: Problem, columns: Ints) -> None:
        """Compile for the given nodes, int64[K]."""
        self.problem, self.columns = problem, columns
        nodes, prices = problem.nodes, problem.prices
        self.size = len(columns)
        self.location: Ints = nodes.location[columns]
        self.zone: Ints
        zones, zone = np.unique(nodes.zone, return_inverse=True)
        self.zones = len(zones)
        """number of zones Z"""
        self.zone = zone.reshape(-1)[columns]
        self.cost: Floats = np.asarray(nodes.location_cost, dtype=np.float64)
        self.locations = len(self.cost)
        self.zoned: Bools = np.ones(self.locations, dtype=np.bool_) if nodes.zoned is None else nodes.zoned
        self.zone_list: list[bool] = self.zoned.tolist()
        """locations with a zone"""
        self.workload = [pod_set.workload for pod_set in problem.pod_sets]
        self.replicas = [pod_set.replicas for pod_set in problem.pod_sets]
        self.incidence: Floats = (self.location[:, None] == np.arange(self.locations)).astype(np.float64)
        """float64[K, L], 1 where a column is in a location: amounts by column times this are amounts by location"""
        self.request: Ints = np.array([pod_set.request for pod_set in problem.pod_sets], dtype=np.int64)
        self.request = self.request.reshape(len(problem.pod_sets), nodes.free.shape[1])
        self.reserve = None if nodes.reserve is None else nodes.reserve[columns]
        self.reserved = [not pod_set.names_nodes for pod_set in problem.pod_sets]
        self.allowed: Bools = np.ones((len(problem.pod_sets), self.size), dtype=np.bool_)
        self.charge: list[Floats | None] = [
            None if pod_set.cost is None else np.asarray(pod_set.cost, dtype=np.float64)[columns]
            for pod_set in problem.pod_sets
        ]
        """float64[K], what plugins charge for a pod of each pod set"""
        for row, pod_set in enumerate(problem.pod_sets):
            if pod_set.mask is not None:
                self.allowed[row] = pod_set.mask[columns]
        self.placed: Floats = np.zeros((len(problem.workloads), self.size))
        """float64[W, K], replicas that have a node"""
        position = np.full(nodes.size, -1, dtype=np.int64)
        position[columns] = np.arange(self.size)
        for row, workload in enumerate(problem.workloads):
            for node, count in workload.placed.items():
                if position[node] < 0:
                    raise ProblemError(f"Workload {workload.name}: node {node} with a placed replica is no column")
                self.placed[row, position[node]] = count
        highest = float(self.cost.max(initial=0.0))
        self.lost: float = (
            prices.network * (1 - prices.failover) * (highest if prices.lost_calls is None else prices.lost_calls)
        )
        """cost of a caller whose calls are dropped"""
        charges = max((float(charge.max(initial=0.0)) for charge in self.charge if charge is not None), default=0.0)
        terms = prices.survive_node + prices.survive_zone + prices.soft_affinity + prices.soft_spread + prices.load
        self.penalty: float = LARGE * (prices.network * highest * max(1, len(problem.edges)) + terms + charges + 1)
        """price of a broken rule while the search may still mend it"""
        self.gain: float = 1e-7 + 1e-13 * self.penalty
        """least gain of a move: less may be rounding"""
        self._compile_edges(problem)

    def _compile_edges(self, problem: Problem) -> None:
        prices = problem.prices
        known: dict[tuple[int, bytes], int] = {}
        self.targets: list[Target] = []
        self.target_of: list[int] = []
        """target of each edge"""
        self.calls: list[list[int]] = [[] for _ in problem.workloads]
        """targets that each workload calls"""
        self.beyond: list[Floats | None] = []
        """float64[L, L] per target, 1 for a pair of locations beyond its limit; None where there is no such pair"""
        self.called: list[list[int]] = [[] for _ in problem.workloads]
        """targets that each workload is"""
        self.callers: list[list[int]] = []
        """workloads that call each target, one of a multiple edge as often as it is declared"""
        self.callees: list[list[int]] = [[] for _ in problem.workloads]
        """workloads that each workload calls, a multiple edge as often as it is declared"""
        self.limited = False
        """whether some edge's limit rules out a pair of locations"""
        for edge in problem.edges:
            beyond = self.cost > edge.max_cost
            key = (edge.callee, beyond.tobytes())
            if key not in known:
                routing = problem.workloads[edge.callee].routing
                cost, broken = prices.network * self.cost, self.penalty * beyond
                self.beyond.append(beyond.astype(np.float64) if beyond.any() else None)
                self.limited = self.limited or bool(beyond.any())
                known[key] = len(self.targets)
                self.called[edge.callee].append(known[key])
                self.callers.append([])
                near = None if routing is Routing.ALL else (1 - prices.failover) * cost + broken
                spread = cost + broken if near is None else prices.failover * cost
                self.targets.append(Target(edge.callee, routing, spread, near))
            self.target_of.append(known[key])
            self.calls[edge.caller].append(known[key])
            self.callers[known[key]].append(edge.caller)
            self.callees[edge.caller].append(edge.callee)
        self.related: list[set[int]] = [set() for _ in problem.pod_sets]
        """pod sets whose costs depend on where pods of each set are"""
        self._relate(problem)

    def served(self, here: Floats) -> Bools:
        """bool[..., L], locations that keep calls to endpoints which are there in such numbers, float64[..., L].

        One endpoint without a zone makes kube-proxy ignore the zones of all others.
        """
        served: Bools = (here > 0) & self.zoned
        if not self.zoned.all():
            served &= ~(here[..., ~self.zoned] > 0).any(axis=-1, keepdims=True)
        return served

    def plain(self, number: int) -> Target:
        """A target without the penalty for calls beyond a limit."""
        target, prices = self.targets[number], self.problem.prices
        cost = prices.network * self.cost
        if target.near_cost is None:
            return replace(target, spread_cost=cost)
        return replace(target, spread_cost=prices.failover * cost, near_cost=(1 - prices.failover) * cost)

    def limit(self, number: int) -> Target | None:
        """A target whose cost is the share of calls that go beyond the limit; None if no call can."""
        target, beyond = self.targets[number], self.beyond[number]
        if beyond is None or target.routing is Routing.LOCAL:
            return None
        if target.near_cost is None:
            return replace(target, spread_cost=beyond)
        return replace(target, spread_cost=np.zeros_like(beyond), near_cost=beyond)

    def components(self) -> list[list[int]]:
        """Pod sets with something to place that are related, directly or through others, largest first."""
        left = {row: None for row, count in enumerate(self.replicas) if count}
        found: list[list[int]] = []
        while left:
            first = next(iter(left))
            reached, queue = {first}, [first]
            while queue:
                near = self.related[queue.pop()] - reached
                reached |= near
                queue.extend(near)
            found.append(sorted(row for row in reached if row in left))
            for row in found[-1]:
                del left[row]
        return sorted(found, key=lambda rows: (-sum(self.replicas[row] for row in rows), rows))

    def _relate(self, problem: Problem) -> None:
        sets: list[list[int]] = [[] for _ in problem.workloads]
        for row, workload in enumerate(self.workload):
            sets[workload].append(row)
        for own in sets:
            for row in own:
                self.related[row].update(own)
        for edge in problem.edges:
            for row in sets[edge.caller]:
                self.related[row].update(sets[edge.callee])
            for row in sets[edge.callee]:
                self.related[row].update(sets[edge.caller])
        for rule in problem.rules:
            concerned = {*rule.subjects, *rule.selects}
            for row in concerned:
                self.related[row] |= concerned
