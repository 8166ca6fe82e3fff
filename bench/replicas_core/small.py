"""Problems small enough for brute force, with every routing, every rule and every level of spread, from a seed."""

from __future__ import annotations

import numpy as np

from bench.replicas_core.small_rules import small_rules
from berth.network.routing import Routing
from berth.scheduling.replicas.problem import Edge, Nodes, PodSet, Prices, Problem, Workload

REQUIRED = 5000.0
"""Price of a failure that must be survived: above all calls of any of these problems"""


def small_problem(seed: int) -> Problem:
    """3 to 5 workloads of 1 to 3 replicas, 4 to 6 nodes in 2 or 3 zones."""
    rng = np.random.default_rng(seed)
    size, zones, count = int(rng.integers(4, 7)), int(rng.integers(2, 4)), int(rng.integers(3, 6))
    with_bandwidth = rng.random() < 0.2
    nodes = _nodes(rng, size, zones, with_bandwidth=with_bandwidth)
    pod_sets = _pod_sets(rng, count, size)
    strict = rng.random() < 0.4
    edges = tuple(
        Edge(
            caller=a,
            callee=b,
            max_cost=float(rng.choice([5.0, 20.0, 80.0])) if strict and rng.random() < 0.6 else np.inf,
            bandwidth=float(rng.integers(0, 10)) if with_bandwidth else 0.0,
        )
        for a in range(count)
        for b in range(count)
        if a != b and rng.random() < (0.5 if a < b else 0.1)
    )
    return Problem(
        nodes=nodes,
        workloads=_workloads(rng, count, size),
        pod_sets=pod_sets,
        edges=edges,
        rules=small_rules(rng, np.unique(nodes.zone, return_inverse=True)[1], len(pod_sets)),
        prices=_prices(rng),
    )


def _nodes(rng: np.random.Generator, size: int, zones: int, *, with_bandwidth: bool) -> Nodes:
    location = np.sort(np.arange(size) % zones)
    cost = np.array(rng.choice([2.0, 5.0, 20.0, 80.0, 300.0], (zones, zones)))
    cost = np.maximum(cost, cost.T) if rng.random() < 0.8 else cost
    np.fill_diagonal(cost, rng.choice([0.5, 1.0]))
    name = np.arange(zones)
    if zones > 2 and rng.random() < 0.3:
        name[1] = name[2]  # in two regions
    zone = name[location]
    if rng.random() < 0.15:
        name[0] = -1
        zone[location == 0] = 100 + np.flatnonzero(location == 0)
    free = np.column_stack([rng.integers(3, 10, size), rng.integers(4, 14, size), np.full(size, 110)])
    reserve = np.column_stack([rng.integers(0, 2, size), np.zeros((size, 2), dtype=np.int64)])
    return Nodes(
        free=free,
        location=location,
        location_cost=cost,
        zone=zone,
        service_zone=name,
        reserve=reserve if rng.random() < 0.1 else None,
        bandwidth=rng.integers(5, 60, size).astype(np.float64) if with_bandwidth else None,
    )


def _workloads(rng: np.random.Generator, count: int, size: int) -> tuple[Workload, ...]:
    routings = list(Routing)
    same = routings[rng.choice(len(routings))] if rng.random() < 0.5 else None
    placed_share = 0.25 if rng.random() < 0.4 else 0.0
    return tuple(
        Workload(
            name=f"w{w}",
            routing=same or routings[rng.choice(len(routings), p=[0.4, 0.3, 0.2, 0.1])],
            placed={int(k): int(rng.integers(1, 3)) for k in np.flatnonzero(rng.random(size) < placed_share)},
        )
        for w in range(count)
    )


def _pod_sets(rng: np.random.Generator, count: int, size: int) -> tuple[PodSet, ...]:
    pod_sets = [
        PodSet(
            workload=w,
            replicas=int(rng.integers(1, 4)),
            request=np.array([rng.integers(1, 4), rng.integers(1, 4), 1]),
            mask=rng.random(size) < 0.8 if rng.random() < 0.2 else None,
            cost=rng.integers(0, 4, size).astype(np.float64) if rng.random() < 0.2 else None,
            names_nodes=bool(rng.random() < 0.2),
        )
        for w in range(count)
    ]
    first = pod_sets[0]
    if rng.random() < 0.15 and first.replicas > 1:
        # A rollout: pods of one workload with two templates.
        pod_sets[0] = PodSet(workload=0, replicas=1, request=first.request, mask=first.mask, cost=first.cost)
        pod_sets.append(PodSet(workload=0, replicas=first.replicas - 1, request=first.request + 1))
    return tuple(pod_sets)


def _prices(rng: np.random.Generator) -> Prices:
    """Prices as profiles have them: nothing, a node or a zone is to be survived, or each at its price."""
    kind = rng.random()
    if kind < 0.7:
        return Prices()
    if kind < 0.8:
        return Prices(survive_node=0.0, survive_zone=0.0)
    return Prices(survive_node=REQUIRED, survive_zone=REQUIRED if kind < 0.9 else 1.0, lost_calls=300.0)
