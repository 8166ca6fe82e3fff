"""A problem compiled for the search: arrays over the *columns*, those of the problem's nodes that the search looks at.

Shapes use K columns, M pod sets, W workloads, L locations, Z zones that fail together. Every node with a placed
replica of the problem's workloads must be a column: what is on one node costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from berth.network.routing import Routing
from berth.scheduling.replicas.problem import Bools, Floats, Ints, Problem, ProblemError
from berth.scheduling.replicas.relations import Relations
from berth.scheduling.replicas.rule import Spread, matters
from berth.scheduling.replicas.terms.domains import Domains

Number = TypeVar("Number", np.float64, np.bool_)

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
        self.places: Ints
        """int64[L], the problem's numbers of the locations"""
        self.places, location = np.unique(nodes.location[columns], return_inverse=True)
        places = self.places
        self.location: Ints = location.reshape(-1)
        """int64[K], numbered anew: only locations with a column have a number"""
        self.zone: Ints
        zones, zone = np.unique(nodes.zone, return_inverse=True)
        self.zones = len(zones)
        """number of zones Z"""
        self.zone = zone.reshape(-1)[columns]
        self.cost: Floats = np.asarray(nodes.location_cost[np.ix_(places, places)], dtype=np.float64)
        self.locations = len(self.cost)
        self._compile_zones(places if nodes.service_zone is None else nodes.service_zone[places])
        self.workload = [pod_set.workload for pod_set in problem.pod_sets]
        self.replicas = [pod_set.replicas for pod_set in problem.pod_sets]
        self.incidence: Floats = (self.location[:, None] == np.arange(self.locations)).astype(np.float64)
        """float64[K, L], 1 where a column is in a location: amounts by column times this are amounts by location"""
        self.free, self.request = _room(problem, columns)
        self.allowed: Bools = np.ones((len(problem.pod_sets), self.size), dtype=np.bool_)
        costs = {id(pod_set.cost): pod_set.cost for pod_set in problem.pod_sets if pod_set.cost is not None}
        by_column = {key: np.asarray(cost, dtype=np.float64)[columns] for key, cost in costs.items()}
        self.charge: list[Floats | None] = [by_column.get(id(pod_set.cost)) for pod_set in problem.pod_sets]
        """float64[K], what plugins charge for a pod of each pod set; shared where they share it in the problem"""
        for row, pod_set in enumerate(problem.pod_sets):
            if pod_set.mask is not None:
                self.allowed[row] = pod_set.mask[columns]
        self.placed: Floats = np.zeros((len(problem.workloads), self.size))
        """float64[W, K], replicas that have a node"""
        position = np.full(nodes.size, -1, dtype=np.int64)
        position[columns] = np.arange(self.size)
        self.leaving: Floats = np.zeros_like(self.placed)
        """float64[W, K], those that count for bandwidth and limits alone"""
        for row, workload in enumerate(problem.workloads):
            for counts, homes in ((self.placed, workload.placed), (self.leaving, workload.leaving)):
                for node, count in homes.items():
                    if position[node] < 0:
                        raise ProblemError(f"Workload {workload.name}: node {node} with a placed replica is no column")
                    counts[row, position[node]] = count
        highest = float(nodes.location_cost.max(initial=0.0))
        self.lost: float = (
            prices.network * (1 - prices.failover) * (highest if prices.lost_calls is None else prices.lost_calls)
        )
        """cost of a caller whose calls are dropped"""
        charges = max((float(charge.max(initial=0.0)) for charge in self.charge if charge is not None), default=0.0)
        spreads = [prices.of_spread(rule) for rule in problem.rules if isinstance(rule, Spread)]
        spread = max([prices.soft_spread, *spreads])
        terms = prices.survive_node + prices.survive_zone + prices.soft_affinity + spread + prices.load
        terms += charges + (0.0 if problem.sharing is None else problem.sharing.highest)
        self.penalty: float = LARGE * (prices.network * highest * max(1, len(problem.edges)) + terms + 1)
        """price of a broken rule while the search may still mend it"""
        self.gain: float = 1e-7 + 1e-13 * self.penalty
        """least gain of a move: less may be rounding"""
        numbered = [(number, rule) for number, rule in enumerate(problem.rules) if matters(rule, self.replicas)]
        self.rule_numbers = [number for number, _ in numbered]
        self.rules = [rule for _, rule in numbered]
        """those of the problem's rules that a plan can break, or pay for"""
        self._domains: dict[int, Domains] = {}
        self.relations = Relations(problem, self.rules)
        self._compile_edges(problem)

    def _compile_zones(self, zones: Ints) -> None:
        """Number the zones where Services keep calls; a location without one is a service zone of its own."""
        apart = np.where(zones >= 0, zones, zones.max(initial=-1) + 1 + np.arange(self.locations))
        first, number = np.unique(apart, return_index=True, return_inverse=True)[1:]
        # Numbered by their first location: mostly every location is a zone and has its own number.
        first, rank = np.sort(first), np.argsort(np.argsort(first))
        self.service_of: Ints = rank[number.reshape(-1)]
        """int64[L], service zone of each location"""
        self.service_zone: Ints = self.service_of[self.location]
        """int64[K], of each column"""
        self.service_zones = len(first)
        """number of service zones S"""
        self.zoned: Bools = zones[first] >= 0
        """bool[S], service zones that have a name"""
        self.zone_list: list[bool] = self.zoned.tolist()
        self.all_zoned = all(self.zone_list)
        self.service_incidence: Floats = (self.service_zone[:, None] == np.arange(len(first))).astype(np.float64)
        """float64[K, S], 1 where a column is in a service zone"""
        self._gather: Floats | None = None
        if len(first) < self.locations:
            self._gather = (self.service_of[:, None] == np.arange(len(first))).astype(np.float64)
            shared = np.flatnonzero(self._gather.sum(axis=0)[self.service_of] > 1)
            one, other = (self.service_of[shared, None] == self.service_of[shared]).nonzero()
            apart = one != other
            self._shared = shared[one[apart]], shared[other[apart]]
            """pairs of locations of one service zone, both orders"""

    def split(self, table: Floats) -> tuple[Floats, Floats, Floats]:
        """Views of amounts side by side, by column, location and service zone: [..., K], [..., L] and [..., S]."""
        located = self.size + self.locations
        return table[..., : self.size], table[..., self.size : located], table[..., located:]

    def located(self, amounts: Floats) -> Floats:
        """float64[L]: amounts by column, float64[K], added up by location."""
        total = np.bincount(self.location, weights=amounts, minlength=self.locations)
        return total.astype(np.float64, copy=False)

    def gathered(self, by_location: Floats) -> Floats:
        """float64[..., S]: amounts by location, float64[..., L], added up by service zone."""
        return by_location if self._gather is None else by_location @ self._gather

    def within(self, cost: Floats, amounts: Floats) -> Floats:
        """float64[..., L]: what it costs from each location to these amounts, float64[..., L], in its service zone."""
        total: Floats = amounts * cost.diagonal()
        if self._gather is not None:
            one, other = self._shared
            np.add.at(total.T, one, (cost[one, other] * amounts[..., other]).T)
        return total

    def by_location(self, by_service: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """[..., L]: of every location what its service zone has, [..., S]."""
        return by_service if self._gather is None else by_service[..., self.service_of]

    def _compile_edges(self, problem: Problem) -> None:
        known: dict[tuple[int, int], int] = {}
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
        self.called_by: list[list[int]] = [[] for _ in problem.workloads]
        """workloads that call each workload, likewise, in order"""
        self._plain: dict[bool, tuple[Floats, Floats | None]] = {}
        """costs without penalties, of calls that a Service keeps near and of others"""
        self.limited = False
        """whether some edge's limit rules out a pair of locations"""
        matrices: dict[tuple[bool, int], tuple[Floats, Floats | None]] = {}
        pairs: dict[float, int] = {}
        """pairs of locations beyond each limit: as many are the same ones"""
        for edge in problem.edges:
            if edge.max_cost not in pairs:
                pairs[edge.max_cost] = int(np.count_nonzero(self.cost > edge.max_cost))
            count = pairs[edge.max_cost]
            if (edge.callee, count) not in known:
                known[edge.callee, count] = number = len(self.targets)
                out = (self.cost > edge.max_cost).astype(np.float64) if count else None
                self.beyond.append(out)
                self.limited = self.limited or out is not None
                self.called[edge.callee].append(number)
                self.callers.append([])
                routing = problem.workloads[edge.callee].routing
                kept = routing is not Routing.ALL
                if (kept, count) not in matrices:
                    matrices[kept, count] = self._matrices(out, kept=kept)
                self.targets.append(Target(edge.callee, routing, *matrices[kept, count]))
            number = known[edge.callee, count]
            self.target_of.append(number)
            self.calls[edge.caller].append(number)
            self.callers[number].append(edge.caller)
            self.callees[edge.caller].append(edge.callee)
            self.called_by[edge.callee].append(edge.caller)
        for callers in self.called_by:
            callers.sort()

    def _matrices(self, beyond: Floats | None, *, kept: bool) -> tuple[Floats, Floats | None]:
        """Costs of calls that go everywhere, and of those that a Service keeps near, with penalties beyond a limit."""
        prices = self.problem.prices
        cost = prices.network * self.cost
        broken = 0.0 if beyond is None else self.penalty * beyond
        return (prices.failover * cost, (1 - prices.failover) * cost + broken) if kept else (cost + broken, None)

    def least_charge(self, row: int) -> float:
        """What plugins charge for the pods of a set on its cheapest column."""
        charge = self.charge[row]
        if charge is None or not self.allowed[row].any():
            return 0.0
        return self.replicas[row] * float(charge[self.allowed[row]].min())

    def served(self, here: Floats) -> Bools:
        """bool[..., S], service zones that keep calls to endpoints which are there in such numbers, float64[..., S].

        One endpoint without a zone makes kube-proxy ignore the zones of all others.
        """
        served: Bools = here > 0
        if not self.all_zoned:
            served &= self.zoned & ~(here[..., ~self.zoned] > 0).any(axis=-1, keepdims=True)
        return served

    def plain(self, number: int) -> Target:
        """A target without the penalty for calls beyond a limit."""
        target = self.targets[number]
        kept = target.near_cost is not None
        if kept not in self._plain:
            self._plain[kept] = self._matrices(None, kept=kept)
        spread_cost, near_cost = self._plain[kept]
        return replace(target, spread_cost=spread_cost, near_cost=near_cost)

    def limit(self, number: int) -> Target | None:
        """A target whose cost is the share of calls that go beyond the limit; None if no call can."""
        target, beyond = self.targets[number], self.beyond[number]
        if beyond is None or target.routing is Routing.LOCAL:
            return None
        if target.near_cost is None:
            return replace(target, spread_cost=beyond)
        return replace(target, spread_cost=np.zeros_like(beyond), near_cost=beyond)

    def domains(self, domain: Ints) -> Domains:
        """Domains of the columns, from those of the problem's nodes, int64[N]; rules with the same array share them."""
        if id(domain) not in self._domains:
            self._domains[id(domain)] = Domains(domain, self.columns)
        return self._domains[id(domain)]

    def components(self) -> list[list[int]]:
        """Pod sets with something to place that are related, directly or through others, largest first."""
        found = self.relations.components(row for row, count in enumerate(self.replicas) if count)
        return sorted(found, key=lambda rows: (-sum(self.replicas[row] for row in rows), rows))


def _room(problem: Problem, columns: Ints) -> tuple[Ints, Ints]:
    """int64[K, R'], what is free, and int64[M, R'], what a pod of each set requests.

    What is kept for pods that name the node makes a second resource of what others may take.
    """
    nodes, pod_sets = problem.nodes, problem.pod_sets
    free: Ints = nodes.free[columns]
    request: Ints = np.array([pod_set.request for pod_set in pod_sets], dtype=np.int64)
    request = request.reshape(len(pod_sets), free.shape[1])
    if nodes.reserve is None:
        return free, request
    kept = nodes.reserve.any(axis=0)
    others = np.array([not pod_set.names_nodes for pod_set in pod_sets], dtype=np.bool_)
    open_to_others = free[:, kept] - nodes.reserve[np.ix_(columns, kept)]
    return np.hstack([free, open_to_others]), np.hstack([request, request[:, kept] * others[:, None]])
