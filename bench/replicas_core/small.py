"""Problems small enough for brute force, with every routing and every rule, from a seed."""

from __future__ import annotations

import numpy as np

from berth.network.routing import Routing
from berth.scheduling.replicas.problem import Edge, Nodes, PodSet, Problem, Rule, Workload
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread


def small_problem(seed: int) -> Problem:
    """3 to 5 workloads of 1 to 3 replicas, 4 to 6 nodes in 2 or 3 zones."""
    rng = np.random.default_rng(seed)
    size, zones, count = int(rng.integers(4, 7)), int(rng.integers(2, 4)), int(rng.integers(3, 6))
    location = np.sort(np.arange(size) % zones)
    cost = np.array(rng.choice([2.0, 5.0, 20.0, 80.0, 300.0], (zones, zones)))
    cost = np.maximum(cost, cost.T) if rng.random() < 0.8 else cost
    np.fill_diagonal(cost, rng.choice([0.5, 1.0]))
    zoned = np.ones(zones, dtype=np.bool_)
    zone = location.copy()
    if rng.random() < 0.15:
        zoned[0] = False
        zone[location == 0] = 100 + np.flatnonzero(location == 0)
    free = np.column_stack([rng.integers(3, 10, size), rng.integers(4, 14, size), np.full(size, 110)])
    routings = list(Routing)
    same = routings[rng.choice(len(routings))] if rng.random() < 0.5 else None
    placed_share = 0.25 if rng.random() < 0.4 else 0.0
    workloads = tuple(
        Workload(
            name=f"w{w}",
            routing=same or routings[rng.choice(len(routings), p=[0.4, 0.3, 0.2, 0.1])],
            placed={int(k): 1 for k in np.flatnonzero(rng.random(size) < placed_share)},
        )
        for w in range(count)
    )
    pod_sets = []
    for w in range(count):
        mask = rng.random(size) < 0.8 if rng.random() < 0.2 else None
        charge = rng.integers(0, 4, size).astype(np.float64) if rng.random() < 0.2 else None
        request = np.array([rng.integers(1, 4), rng.integers(1, 4), 1])
        pod_sets.append(PodSet(workload=w, replicas=int(rng.integers(1, 4)), request=request, mask=mask, cost=charge))
    if rng.random() < 0.15 and pod_sets[0].replicas > 1:
        first = pod_sets[0]
        pod_sets[0] = PodSet(workload=0, replicas=1, request=first.request, mask=first.mask, cost=first.cost)
        pod_sets.append(PodSet(workload=0, replicas=first.replicas - 1, request=first.request + 1))
    strict = rng.random() < 0.4
    with_bandwidth = rng.random() < 0.2
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
    nodes = Nodes(
        free=free,
        location=location,
        location_cost=cost,
        zone=zone,
        zoned=zoned,
        reserve=np.column_stack(
            [rng.integers(0, 2, size), np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)]
        )
        if rng.random() < 0.1
        else None,
        bandwidth=rng.integers(5, 60, size).astype(np.float64) if with_bandwidth else None,
    )
    rules = _rules(rng, location, len(pod_sets), size)
    return Problem(nodes=nodes, workloads=workloads, pod_sets=tuple(pod_sets), edges=edges, rules=rules)


def _rules(rng: np.random.Generator, location: np.ndarray, sets: int, size: int) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for _ in range(int(rng.integers(0, 5))):
        row, other = int(rng.integers(sets)), int(rng.integers(sets))
        host = rng.random() < 0.5
        domain = np.arange(size) if host else location.copy()
        if rng.random() < 0.1:
            domain[rng.integers(size)] = -1
        weight = int(rng.choice([1, 50, 100]))
        placed = (rng.random(size) < 0.3).astype(np.int64) if rng.random() < 0.2 else None
        kind = rng.integers(8)
        if kind == 0:
            rules.append(AntiAffinity(domain=domain, subjects=[row], selects=[row], weight=weight))
        elif kind == 1:
            rules.append(AntiAffinity(domain=domain, subjects=[row], selects=[other], placed=placed, weight=weight))
        elif kind == 2:
            rules.append(AntiAffinity(domain=domain, subjects=[row], selects=[row]))
        elif kind == 3:
            rules.append(AntiAffinity(domain=domain, subjects=[row], selects=[other], placed_subjects=placed))
        elif kind == 4:
            rules.append(Affinity(domain=domain, subjects=[row], selects=[other], placed=placed, weight=weight))
        elif kind == 5:
            rules.append(Affinity(domain=domain, subjects=[row], selects=sorted({row, other}), placed=placed))
        else:
            eligible = rng.random(size) < 0.8 if rng.random() < 0.2 else None
            rules.append(
                Spread(
                    domain=domain,
                    subjects=[row],
                    selects=sorted({row, other}) if rng.random() < 0.2 else [row],
                    max_skew=int(rng.integers(1, 3)),
                    hard=kind == 6,
                    min_domains=int(rng.integers(1, 4)),
                    eligible=eligible,
                    placed=placed,
                )
            )
    return tuple(rules)
