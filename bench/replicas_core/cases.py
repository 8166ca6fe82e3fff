"""Applications for the joint planner: Online Boutique as in `examples/`, and meshes of any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from berth.network.routing import Routing
from berth.scheduling.replicas.problem import Edge, Nodes, PodSet, Problem, Rule, Workload
from berth.scheduling.replicas.result import Plan
from berth.scheduling.replicas.rule import AntiAffinity, Spread

BOUTIQUE = {
    "frontend": (100, 64),
    "cart": (200, 64),
    "catalog": (100, 64),
    "currency": (100, 64),
    "payment": (100, 64),
    "shipping": (100, 64),
    "email": (100, 64),
    "checkout": (100, 64),
    "recommendation": (100, 220),
    "ad": (200, 180),
    "redis": (70, 200),
}
"""CPU in milli-cores and memory in MiB of a pod"""
CALLS = {
    "frontend": {
        "cart": 20,
        "catalog": 20,
        "currency": 20,
        "shipping": 20,
        "checkout": 20,
        "recommendation": 20,
        "ad": 100,
    },
    "cart": {"redis": 5},
    "checkout": {"cart": 20, "catalog": 20, "currency": 20, "payment": 20, "shipping": 20, "email": 100},
    "recommendation": {"catalog": 20},
}
"""maxNetworkCost by caller and callee"""


def cluster(nodes: int, zones: int, cpu: int = 4000) -> Nodes:
    """Equal nodes of 16 GiB; two zones are a region: 1 in a zone, 5 in a region, 80 between regions."""
    location = np.arange(nodes) % zones
    region = np.arange(zones) // 2
    cost = np.where(region[:, None] == region, 5.0, 80.0)
    np.fill_diagonal(cost, 1.0)
    free = np.tile(np.array([cpu, 16384, 110], dtype=np.int64), (nodes, 1))
    return Nodes(free=free, location=location, location_cost=cost, zone=location)


def uneven(problem: Problem, seed: int = 0) -> Problem:
    """The same with nodes that are filled in part."""
    rng = np.random.default_rng(seed)
    free = problem.nodes.free.copy()
    free[:, 0] = rng.integers(200, 4000, len(free))
    free[:, 1] = rng.integers(500, 16384, len(free))
    return replace(problem, nodes=replace(problem.nodes, free=free))


def boutique(
    replicas: int = 3,
    *,
    nodes: Nodes | None = None,
    routing: Routing = Routing.ALL,
    rule: str = "none",
    limits: bool = True,
    copies: int = 1,
) -> Problem:
    """Online Boutique, so many times.

    Rules: none, required and preferred anti-affinity by host, hard and soft spread over zones, default (that of
    kube-scheduler).
    """
    nodes = nodes or cluster(24, 4)
    names = list(BOUTIQUE)
    workloads: list[Workload] = []
    sets, edges = [], []
    for copy in range(copies):
        first = len(workloads)
        for name, (cpu, memory) in BOUTIQUE.items():
            workloads.append(Workload(name=f"{name}-{copy}", routing=routing))
            request = np.array([cpu, memory, 1], dtype=np.int64)
            sets.append(PodSet(workload=len(workloads) - 1, replicas=replicas, request=request))
        for caller, callees in CALLS.items():
            for callee, limit in callees.items():
                ends = first + names.index(caller), first + names.index(callee)
                edges.append(Edge(caller=ends[0], callee=ends[1], max_cost=float(limit) if limits else np.inf))
    return Problem(nodes=nodes, workloads=workloads, pod_sets=sets, edges=edges, rules=_rules(rule, nodes, len(sets)))


def mesh(workloads: int, replicas: int, *, nodes: Nodes, routing: Routing = Routing.ALL, rule: str = "none") -> Problem:
    """One application of any size: each workload is called by one or two of those before it."""
    rng = np.random.default_rng(workloads)
    sets, edges = [], []
    for number in range(workloads):
        request = np.array([rng.choice([50, 100, 200, 400]), rng.integers(64, 512), 1], dtype=np.int64)
        sets.append(PodSet(workload=number, replicas=replicas, request=request))
        if number:
            callers = np.unique(rng.integers(max(0, number - 12), number, rng.integers(1, 3)))
            edges += [Edge(caller=int(caller), callee=number) for caller in callers]
    ends = [Workload(name=f"w{number}", routing=routing) for number in range(workloads)]
    return Problem(nodes=nodes, workloads=ends, pod_sets=sets, edges=edges, rules=_rules(rule, nodes, workloads))


def _rules(rule: str, nodes: Nodes, sets: int) -> Sequence[Rule]:
    host, zone = np.arange(nodes.size), nodes.location
    if rule in ("required", "preferred"):
        weight = 100 if rule == "preferred" else None
        return [AntiAffinity(domain=host, subjects=[row], selects=[row], weight=weight) for row in range(sets)]
    if rule in ("hard", "soft"):
        return [
            Spread(domain=zone, subjects=[row], selects=[row], max_skew=1, hard=rule == "hard") for row in range(sets)
        ]
    if rule == "default":
        return [
            Spread(domain=domain, subjects=[row], selects=[row], max_skew=skew, hard=False)
            for row in range(sets)
            for domain, skew in ((host, 3), (zone, 5))
        ]
    return []


@dataclass(frozen=True)
class Figures:
    """What operators look at, by plain loops over pods."""

    cost: float
    """mean over the edges of what calls cost as they are routed"""
    everywhere: float
    """the same if they went to all endpoints"""
    survive_node: float
    """share of workloads that survive the worst node"""
    survive_zone: float
    """share of workloads that survive the worst zone"""
    worst_load: float
    """most called endpoint's share of calls against the mean"""


def figures(problem: Problem, plan: Plan) -> Figures:
    """Judge a plan of a problem without placed replicas."""
    place, cost = problem.nodes.location.tolist(), problem.nodes.location_cost.tolist()
    homes: list[list[int]] = [[] for _ in problem.workloads]
    for pod_set, counts in zip(problem.pod_sets, plan.counts, strict=True):
        homes[pod_set.workload] += [node for node, count in sorted(counts.items()) for _ in range(count)]

    def mean(caller: int, ends: Sequence[int]) -> float:
        return sum(0.0 if end == caller else cost[place[caller]][place[end]] for end in ends) / len(ends)

    routed = everywhere = 0.0
    calls = [[0.0] * len(nodes) for nodes in homes]
    for edge in problem.edges:
        callers, ends = homes[edge.caller], homes[edge.callee]
        for caller in callers:
            reached = list(range(len(ends)))
            if problem.workloads[edge.callee].routing is not Routing.ALL:
                near = [number for number in reached if place[ends[number]] == place[caller]]
                on_node = [number for number in near if ends[number] == caller]
                by_node = problem.workloads[edge.callee].routing is not Routing.SAME_ZONE
                reached = (on_node if by_node else []) or near or reached
            routed += mean(caller, [ends[number] for number in reached]) / len(callers)
            everywhere += mean(caller, ends) / len(callers)
            for number in reached:
                calls[edge.callee][number] += 1 / len(callers) / len(reached)
    replicated = [nodes for nodes in homes if len(nodes) > 1]
    loads = [max(each) * len(each) / sum(each) for each in calls if any(each)]
    return Figures(
        cost=routed / len(problem.edges),
        everywhere=everywhere / len(problem.edges),
        survive_node=sum(len(set(nodes)) > 1 for nodes in replicated) / max(1, len(replicated)),
        survive_zone=sum(len({place[node] for node in nodes}) > 1 for nodes in replicated) / max(1, len(replicated)),
        worst_load=max(loads, default=1.0),
    )
