"""Generated applications whose workloads must be near one another in a chain: of unequal nodes few will do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bench.replicas_core.cases import cluster
from berth.scheduling.replicas.problem import Edge, Ints, Nodes, PodSet, Problem, Workload
from berth.scheduling.replicas.rule import Affinity

SPECIAL = 25
"""Nodes of a large cluster that take the last workload of its chain."""


def application(nodes: Nodes, sets: Sequence[PodSet], anchors: Sequence[int], domain: Ints, *, calls: bool) -> Problem:
    """Workload i must be in the domain, int64[N], of one of anchors[i], and calls it if anybody calls at all."""
    return Problem(
        nodes=nodes,
        workloads=[Workload(name=str(row)) for row in range(len(sets))],
        pod_sets=sets,
        edges=[Edge(caller=row, callee=anchor) for row, anchor in enumerate(anchors)] if calls else [],
        rules=[Affinity(domain=domain, subjects=[row], selects=[anchor]) for row, anchor in enumerate(anchors)],
    )


def special(seed: int) -> tuple[Problem, bool]:
    """A chain by host whose last workload takes 25 of 2500 nodes, and whether these have slots for its first one.

    Whoever is first shares a node with one of each of the others, so a node with k slots takes at most k less the
    others of the first ones: where they are more than that, no placement exists.
    """
    rng = np.random.default_rng(seed)
    length, replicas = int(rng.integers(2, 8)), int(rng.choice([1, 2, 3, 5, 8, 12]))
    unequal, masked, calls = (rng.random() < 0.5 for _ in range(3))
    cpu = int(rng.choice([100, 400, 900]))
    nodes = cluster(2500, int(rng.choice([3, 16])))
    free = nodes.free.copy()
    if unequal:
        free[:, 0], free[:, 1] = rng.integers(200, 4000, 2500), rng.integers(500, 16384, 2500)
    at = rng.permutation(2500)[:SPECIAL]
    device = 8 * np.isin(np.arange(2500), at)
    sets = []
    for row in range(length):
        last = row == length - 1
        request = [cpu, 64, 1] if masked else [cpu, 64, 1, int(last)]
        sets.append(PodSet(workload=row, replicas=replicas, request=np.array(request)))
    if masked:
        sets[-1] = replace(sets[-1], mask=device > 0)
    else:
        free = np.column_stack([free, device])
    slots = (free[at, :2] // [cpu, 64]).min(axis=1)
    asked = application(replace(nodes, free=free), sets, range(1, length), np.arange(2500), calls=calls)
    return asked, int(np.maximum(slots - length + 1, 0).sum()) >= replicas


def planted(seed: int) -> Problem:
    """A chain or a tree by host or zone with a placement: its nodes have room for that and little more."""
    rng = np.random.default_rng(seed)
    length, size = int(rng.integers(2, 7)), int(rng.choice([12, 40, 150, 600]))
    nodes = cluster(size, int(rng.choice([2, 4])))
    anchors = [row + 1 if rng.random() < 0.8 else int(rng.integers(row + 1, length)) for row in range(length - 1)]
    request = np.column_stack([rng.integers(1, 4, length) * 100, np.full(length, 64), np.ones(length, dtype=np.int64)])
    at = rng.permutation(size)[: int(rng.integers(1, 5))]
    counts = np.zeros((length, size), dtype=np.int64)
    counts[-1, at] = rng.integers(1, 3, len(at))
    for row in reversed(range(length - 1)):
        counts[row, at] = (counts[anchors[row], at] > 0) * rng.integers(0, 3, len(at))
        counts[row, at[0]] = rng.integers(1, 3)
    free = nodes.free.copy()
    free[:, 0] = rng.integers(0, rng.choice([3, 5]), size) * 100
    free[at] = (counts.T @ request)[at] + [int(rng.choice([0, 100, 1000])), 0, 0]
    mask = np.isin(np.arange(size), [*at, *rng.permutation(size)[: int(rng.integers(0, 6))]])
    sets = [PodSet(workload=row, replicas=int(counts[row].sum()), request=request[row]) for row in range(length)]
    if rng.random() < 0.6:
        sets[-1] = replace(sets[-1], mask=mask)
    domain = nodes.zone if rng.random() < 0.2 else np.arange(size)
    return application(replace(nodes, free=free), sets, anchors, domain, calls=bool(rng.random() < 0.5))


def small(seed: int) -> Problem:
    """Two to four workloads on five nodes in two zones, with room for little more than all of them."""
    rng = np.random.default_rng(seed)
    length = int(rng.integers(2, 5))
    free = np.column_stack([rng.integers(0, 6, 5), np.full(5, 110)])
    location = np.arange(5) % 2
    nodes = Nodes(free=free, location=location, location_cost=np.array([[1.0, 20], [20, 1]]), zone=location)
    sets = [
        PodSet(
            workload=row,
            replicas=int(rng.integers(1, 4)),
            request=np.array([rng.integers(1, 3), 1]),
            mask=rng.random(5) < 0.6 if rng.random() < 0.3 else None,
        )
        for row in range(length)
    ]
    anchors = [row + 1 if rng.random() < 0.8 else int(rng.integers(row + 1, length)) for row in range(length - 1)]
    domain = location if rng.random() < 0.4 else np.arange(5)
    return application(nodes, sets, anchors, domain, calls=bool(rng.random() < 0.5))
