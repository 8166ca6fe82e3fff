"""What a small problem's choices cost, in tables: of each workload alone, and of each pair of workloads.

A choice is how many replicas of a workload are on each node. All terms of the objective but two depend on the choices
of one workload or of two; those two (load of a workload with several callers, spread that counts several workloads) and
required affinity towards several are left to the leaves of the search. Arrays run over O choices and N nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.replicas.cluster import SAME_ZONE_COST, Cluster, Pod
from bench.replicas.evaluator import ALL, LOCAL, LOCALITY, SAME_NODE, Group, routing
from bench.replicas.objective import Weights, node_cost
from bench.replicas.rules import constraints_of, host_ports, ports_clash, requests, terms_of
from bench.replicas.selection import admits, matches, term_selects, tolerates, with_label_keys

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
INFEASIBLE = np.inf
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(slots=True, eq=False)
class Workload:
    """A workload with its choices."""

    name: str
    pod: Pod
    """one of its replicas; all are alike"""
    waiting: list[Pod]
    """replicas to place"""
    counts: Counts
    """int[O, N], all replicas, those that have a node already too"""
    new: Counts
    """int[O, N], the replicas to place"""
    alone: Floats
    """float64[O], what the choice costs whatever others do; infinite where a hard rule forbids it"""

    @property
    def replicas(self) -> int:
        """All of them."""
        return int(self.counts[0].sum())


@dataclass(slots=True, eq=False)
class Problem:
    """An AppGroup's waiting pods, the nodes and what is on them."""

    cluster: Cluster
    group: Group
    weights: Weights
    names: list[str]
    """nodes"""
    cost: Floats
    """float64[N, N] from node to node, 0 on the diagonal"""
    zone: Counts
    """int[N], -1 without one"""
    others: list[Pod]
    """placed pods outside the group"""
    members: list[Pod]
    """a pod of each workload"""

    def domains(self, key: str) -> Counts:
        """int[N], domain of each node by a topology key, -1 without the label."""
        values = [self.cluster.nodes[name].labels.get(key) for name in self.names]
        known = sorted({value for value in values if value is not None})
        return np.array([-1 if value is None else known.index(value) for value in values])

    def by_domain(self, key: str, counts: Counts) -> Counts:
        """int[O, D] of int[O, N]: replicas in each domain of a key."""
        domains = self.domains(key)
        table = np.zeros((len(self.names), max(domains.max(initial=-1) + 1, 1)), dtype=np.int64)
        table[np.flatnonzero(domains >= 0), domains[domains >= 0]] = 1
        return counts @ table

    def at(self, pods: Sequence[Pod]) -> Counts:
        """int[N], pods on each node."""
        found = np.zeros(len(self.names), dtype=np.int64)
        for pod in pods:
            found[self.names.index(pod.node)] += 1
        return found


def choices(nodes: Sequence[int], count: int, size: int, most: Sequence[int]) -> Iterator[list[int]]:
    """Every way to put `count` alike pods on `nodes` of `size` nodes, with at most so many on each."""
    if not nodes:
        if not count:
            yield [0] * size
        return
    first, *rest = nodes
    for here in range(min(count, most[first]) + 1):
        for choice in choices(rest, count - here, size, most):
            choice[first] = here
            yield choice


def workload(problem: Problem, name: str, waiting: list[Pod], placed: list[Pod]) -> Workload:
    """A workload with every choice that its own hard rules and the pods outside the group leave it."""
    pod = (waiting or placed)[0]
    need = requests(pod)
    most: list[int] = []
    nodes = [problem.cluster.nodes[found] for found in problem.names]
    for node in nodes:
        room = [int((node.allocatable.get(item, 0.0) + 1e-9) / value) for item, value in need.items() if value > 0]
        most.append(min(room, default=len(waiting)) if admits(node, pod) and tolerates(node, pod) else 0)
    every = range(len(most))
    new = np.array(list(choices(list(every), len(waiting), len(most), most)), dtype=np.int64).reshape(-1, len(most))
    made = Workload(name, pod, waiting, new + problem.at(placed), new, np.zeros(len(new)))
    made.alone += made.counts @ np.array([node_cost(node, pod, problem.weights) for node in nodes])
    made.alone += _forbidden(problem, made) + _spread(problem, made) + _wishes(problem, made)
    if made.counts.size and made.replicas >= 2:
        weights = problem.weights
        made.alone += weights.node_failure * ((made.counts > 0).sum(axis=1) == 1)
        zones = np.where(problem.zone >= 0, problem.zone, len(most) + np.arange(len(most)))
        used = np.array([len({int(zones[node]) for node in np.flatnonzero(row)}) for row in made.counts])
        made.alone += weights.zone_failure * (used == 1)
    return made


def _infinite(where: Any) -> Floats:
    return np.where(where, INFEASIBLE, 0.0)


def _forbidden(problem: Problem, made: Workload) -> Floats:
    """Host ports and required anti-affinity among the replicas and towards pods outside the group, both ways."""
    pod, counts, new = made.pod, made.counts, made.new
    bad = np.zeros(len(counts), dtype=bool)
    if host_ports(pod):
        bad |= (counts > 1).any(axis=1)
    for term in terms_of(pod, "podAntiAffinity", REQUIRED):
        if term_selects(problem.cluster, term, pod, pod):
            bad |= (problem.by_domain(term["topologyKey"], counts) > 1).any(axis=1)
    for other in problem.others:
        there = problem.at([other])
        if any(ports_clash(one, two) for one in host_ports(pod) for two in host_ports(other)):
            bad |= new @ there > 0
        for owner, target in ((pod, other), (other, pod)):
            for term in terms_of(owner, "podAntiAffinity", REQUIRED):
                if term_selects(problem.cluster, term, owner, target):
                    key = term["topologyKey"]
                    bad |= problem.by_domain(key, new) @ problem.by_domain(key, there[None, :])[0] > 0
    return _infinite(bad)


def counts_others(constraint: Any, pod: Pod, members: Sequence[Pod]) -> bool:
    """Whether a spread constraint of a pod counts pods of other workloads of its group."""
    selector = with_label_keys(constraint.get("labelSelector"), constraint, pod.labels)
    return any(other.workload != pod.workload and matches(selector, other.labels) for other in members)


def _spread(problem: Problem, made: Workload) -> Floats:
    """Hard and soft spread as far as it counts the workload's replicas and pods outside the group."""
    pod, total = made.pod, np.zeros(len(made.counts))
    for when in ("DoNotSchedule", "ScheduleAnyway"):
        constraints = constraints_of(pod, when, problem.weights.default_spread)
        keys = [item["topologyKey"] for item in constraints]
        for item in constraints:
            if counts_others(item, pod, problem.members):
                continue
            by_domain = _spread_counts(problem, made, item, keys)
            least = by_domain.min(axis=1) if by_domain.shape[1] else np.zeros(len(by_domain), dtype=np.int64)
            if when == "ScheduleAnyway":
                total += problem.weights.skew * np.maximum(by_domain - least[:, None] - item["maxSkew"], 0).sum(axis=1)
                continue
            if by_domain.shape[1] < (item.get("minDomains") or 1):
                least = np.zeros_like(least)
            bare = np.any([problem.domains(key) < 0 for key in keys], axis=0)
            total += _infinite((made.counts[:, bare] > 0).any(axis=1))
            here = _at_replicas(problem, item, keys, made, by_domain)
            total += _infinite(here - least > item["maxSkew"])
    return total


def _counted(problem: Problem, item: Any, keys: Sequence[str], pod: Pod) -> npt.NDArray[np.bool_]:
    """bool[N], nodes that a constraint counts."""
    counted = np.all([problem.domains(key) >= 0 for key in keys], axis=0)
    for number, name in enumerate(problem.names):
        node = problem.cluster.nodes[name]
        counted[number] &= item.get("nodeAffinityPolicy", "Honor") != "Honor" or admits(node, pod)
        counted[number] &= item.get("nodeTaintsPolicy", "Ignore") != "Honor" or tolerates(node, pod)
    found: npt.NDArray[np.bool_] = counted
    return found


def _spread_counts(problem: Problem, made: Workload, item: Any, keys: Sequence[str]) -> Counts:
    """int[O, D], pods that a constraint counts by domain."""
    pod = made.pod
    counted, domains = _counted(problem, item, keys, pod), problem.domains(item["topologyKey"])
    selector = with_label_keys(item.get("labelSelector"), item, pod.labels)
    meant = [other for other in problem.others if other.namespace == pod.namespace and matches(selector, other.labels)]
    seen = np.broadcast_to(problem.at(meant), made.counts.shape)
    if matches(selector, pod.labels):
        seen = seen + made.counts
    known = sorted(set(domains[counted].tolist()))
    return (
        np.stack([seen[:, counted & (domains == one)].sum(axis=1) for one in known], axis=1) if known else seen[:, :0]
    )


def _at_replicas(problem: Problem, item: Any, keys: Sequence[str], made: Workload, by_domain: Counts) -> Counts:
    """int[O], the most pods that a constraint counts in any domain where a replica of the workload is."""
    counted, domains = _counted(problem, item, keys, made.pod), problem.domains(item["topologyKey"])
    known = sorted(set(domains[counted].tolist()))
    most = np.zeros(len(made.counts), dtype=np.int64)
    for number, one in enumerate(known):
        there = (made.counts[:, domains == one] > 0).any(axis=1)
        most = np.maximum(most, np.where(there, by_domain[:, number], 0))
    return most


def meant_workloads(problem: Problem, term: Any, owner: Pod) -> list[str]:
    """Workloads of the group that a term means."""
    return [pod.workload for pod in problem.members if term_selects(problem.cluster, term, owner, pod)]


def _wishes(problem: Problem, made: Workload) -> Floats:
    """Preferred terms between replicas of the workload, and between these and pods outside the group, both ways."""
    total = np.zeros(len(made.counts))
    for item in terms_of(made.pod, "podAntiAffinity", PREFERRED):
        term, price = item["podAffinityTerm"], problem.weights.soft_affinity * item["weight"] / 100
        here = problem.by_domain(term["topologyKey"], made.counts)
        if term_selects(problem.cluster, term, made.pod, made.pod):
            total += price * (here * (here - 1)).sum(axis=1)
        total += price * (here @ _outside(problem, term, made.pod, problem.others))
    for other in problem.others:
        for item in terms_of(other, "podAntiAffinity", PREFERRED):
            term, price = item["podAffinityTerm"], problem.weights.soft_affinity * item["weight"] / 100
            if term_selects(problem.cluster, term, other, made.pod):
                near = problem.by_domain(term["topologyKey"], problem.at([other])[None, :])[0]
                total += price * (problem.by_domain(term["topologyKey"], made.counts) @ near)
    return total + _company(problem, made)


def _outside(problem: Problem, term: Any, owner: Pod, others: Sequence[Pod]) -> Counts:
    """int[D], pods among `others` that a term means, by domain."""
    meant = problem.at([other for other in others if term_selects(problem.cluster, term, owner, other)])
    found: Counts = problem.by_domain(term["topologyKey"], meant[None, :])[0]
    return found


def _company(problem: Problem, made: Workload) -> Floats:
    """Preferred affinity that depends on one workload: its own to itself or to pods outside, and theirs to it."""
    total = np.zeros(len(made.counts))
    for item in terms_of(made.pod, "podAffinity", PREFERRED):
        term, price = item["podAffinityTerm"], problem.weights.soft_affinity * item["weight"] / 100
        meant = meant_workloads(problem, term, made.pod)
        if meant in ([], [made.name]):
            here = problem.by_domain(term["topologyKey"], made.counts)
            alone = (here == 1) if meant else (here > 0)
            lonely = np.where(alone & (_outside(problem, term, made.pod, problem.others) == 0), here, 0).sum(axis=1)
            total += price * (lonely + made.counts.sum(axis=1) - here.sum(axis=1))
    for other in problem.others:
        for item in terms_of(other, "podAffinity", PREFERRED):
            term, price = item["podAffinityTerm"], problem.weights.soft_affinity * item["weight"] / 100
            if meant_workloads(problem, term, other) == [made.name]:
                key = term["topologyKey"]
                home = problem.by_domain(key, problem.at([other])[None, :])[0]
                rest = _outside(problem, term, other, [pod for pod in problem.others if pod is not other])
                total += price * ~(((problem.by_domain(key, made.counts) + rest) * home) > 0).any(axis=1)
    return total


def shared_company(problem: Problem, made: Sequence[Workload], rows: Sequence[Counts]) -> float:
    """Preferred affinity that means several workloads of the group, of a whole placement: int[N] of each workload."""
    total = 0.0
    for owner in (*problem.members, *problem.others):
        for item in terms_of(owner, "podAffinity", PREFERRED):
            term = item["podAffinityTerm"]
            names = meant_workloads(problem, term, owner)
            if len(names) < 2:
                continue
            price = problem.weights.soft_affinity * item["weight"] / 100
            own = next((row for one, row in zip(made, rows, strict=True) if one.pod is owner), problem.at([]))
            if owner in problem.others:
                own = problem.at([owner])
            meant = sum((row for one, row in zip(made, rows, strict=True) if one.name in names), start=problem.at([]))
            here, there = (problem.by_domain(term["topologyKey"], row[None, :])[0] for row in (own, meant))
            there = there + _outside(problem, term, owner, [pod for pod in problem.others if pod is not owner])
            itself = owner.workload in names and owner not in problem.others
            total += price * float(here[there == int(itself)].sum() + own.sum() - here.sum())
    return total


def pair(problem: Problem, one: Workload, other: Workload) -> Floats:
    """float64[O, P], what choices of two workloads cost together, beyond what each costs alone."""
    total = np.zeros((len(one.counts), len(other.counts)))
    if any(ports_clash(mine, theirs) for mine in host_ports(one.pod) for theirs in host_ports(other.pod)):
        total += _infinite(one.counts @ other.counts.T > 0)
    for owner, target, flip in ((one, other, False), (other, one, True)):
        extra = _towards(problem, owner, target)
        total += extra.T if flip else extra
    return total


def _towards(problem: Problem, owner: Workload, target: Workload) -> Floats:
    """float64[O, P], the owner's terms that mean the target's pods, and its edges to the target."""
    total = np.zeros((len(owner.counts), len(target.counts)))
    cluster, price = problem.cluster, problem.weights.soft_affinity / 100

    def by_domain(term: Any) -> tuple[Counts, Counts]:
        key = term["topologyKey"]
        return problem.by_domain(key, owner.counts), problem.by_domain(key, target.counts)

    for term in terms_of(owner.pod, "podAntiAffinity", REQUIRED):
        if term_selects(cluster, term, owner.pod, target.pod):
            mine, theirs = by_domain(term)
            total += _infinite(mine @ theirs.T > 0)
    for item in terms_of(owner.pod, "podAntiAffinity", PREFERRED):
        if term_selects(cluster, item["podAffinityTerm"], owner.pod, target.pod):
            mine, theirs = by_domain(item["podAffinityTerm"])
            total += price * item["weight"] * (mine @ theirs.T)
    for item in terms_of(owner.pod, "podAffinity", PREFERRED):
        term = item["podAffinityTerm"]
        if meant_workloads(problem, term, owner.pod) == [target.name]:
            mine, theirs = by_domain(term)
            empty = (theirs + _outside(problem, term, owner.pod, problem.others)) == 0
            bare = owner.counts.sum(axis=1) - mine.sum(axis=1)
            total += price * item["weight"] * (mine @ empty.T.astype(np.int64) + bare[:, None])
    for edge in problem.cluster.groups[problem.group]:
        if (edge.caller, edge.callee) == (owner.name, target.name):
            total += _edge(problem, owner, target, edge.limit)
    return total


def _edge(problem: Problem, caller: Workload, callee: Workload, limit: float | None) -> Floats:
    """float64[O, P], an edge's term of the objective; infinite where an endpoint that is reached is too far."""
    mode = mode_of(problem, callee)
    shares = call_shares(problem, callee, mode)
    every = call_shares(problem, callee, ALL)
    costs = np.einsum("pnm,nm->pn", shares, problem.cost)
    costs[shares.sum(axis=2) == 0] = problem.cluster.worst_cost()
    blend = problem.weights.failover if mode != ALL else 0.0
    costs = (1 - blend) * costs + blend * np.einsum("pnm,nm->pn", every, problem.cost)
    total: Floats = caller.counts @ costs.T / caller.counts.sum(axis=1)[:, None]
    if limit is not None and (problem.cluster.zone_costs or problem.cluster.region_costs):
        far = ((shares > 0) & (problem.cost > max(limit, SAME_ZONE_COST))).any(axis=2)
        total = total + _infinite((caller.counts > 0).astype(int) @ far.T.astype(int) > 0)
    return total


def mode_of(problem: Problem, callee: Workload) -> str:
    """How calls to a workload are routed."""
    return routing(problem.cluster, callee.name, [callee.pod])


def call_shares(problem: Problem, callee: Workload, mode: str) -> Floats:
    """float64[P, N, N], share of the calls from each node that goes to each node, by choice of the callee."""
    endpoints = callee.counts.astype(float)
    size = len(problem.names)
    near = np.equal.outer(problem.zone, problem.zone) & (problem.zone >= 0)[:, None]
    zonal = endpoints[:, problem.zone < 0].sum(axis=1) == 0
    weight = np.broadcast_to(endpoints[:, None, :], (len(endpoints), size, size)).copy()
    in_zone = weight * near
    if mode in LOCALITY:
        use = (in_zone.sum(axis=2) > 0) & zonal[:, None]
        weight = np.where(use[:, :, None], in_zone, weight)
    if mode in (SAME_NODE, LOCAL):
        own = np.eye(size)[None] * endpoints[:, None, :]
        use = (own.sum(axis=2) > 0) if mode == SAME_NODE else np.ones(weight.shape[:2], dtype=bool)
        weight = np.where(use[:, :, None], own, weight)
    sums = weight.sum(axis=2, keepdims=True)
    shares: Floats = np.divide(weight, sums, out=np.zeros_like(weight), where=sums > 0)
    return shares
