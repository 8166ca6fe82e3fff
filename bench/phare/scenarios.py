"""Infrastructures and workloads of the published experiments, drawn from the published ranges with fixed seeds.

Source of the ranges: Filaferro and Nicosia, "Scheduling Microservice-Based Applications Across Distributed Edge
Clusters" (2021). The source says "30 % connectivity" and not how the graph is drawn; `graph` names the two readings.
Units: cores, GB, Gb/s, money per unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from berth.scheduling.gang import Application, Infrastructure, NodeMasks

Graph = Literal["tree", "independent"]
"""`tree`: a random spanning tree plus random extra edges up to 30 % of all pairs; `independent`: each pair with
probability 0.3."""

RESOURCES = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class Workload:
    """Ranges of a generated workload; the defaults are the published ones."""

    count: int = 500
    """Number of applications."""
    components: int = 10
    """Components of each application."""
    cores: tuple[int, int] = (4, 20)
    """Whole cores per component, both ends included."""
    memory: tuple[float, float] = (1.0, 2.0)
    """GB per component."""
    bandwidth: tuple[float, float] = (0.0006, 0.02)
    """Gb/s per edge."""
    connectivity: float = 0.3
    """Share of component pairs with an edge."""
    multiplier: float = 1.0
    """Factor on every bandwidth demand (the published x1 and x100)."""
    graph: Graph = "tree"
    """How the dependency graph is drawn."""


def edge_clusters(
    count: int,
    seed: int,
    *,
    threshold: float = 1.0,
    cores: tuple[int, int] = (300, 500),
    memory: tuple[float, float] = (128.0, 512.0),
    bandwidth: tuple[float, float] = (5.0, 40.0),
) -> Infrastructure:
    """Return `count` clusters in full mesh with the published budgets and unit prices."""
    rng = np.random.default_rng([seed, count, 1])
    capacity = np.column_stack([rng.integers(cores[0], cores[1] + 1, count), rng.uniform(*memory, count)])
    price = np.column_stack([rng.uniform(0.15, 0.4, count), rng.uniform(0.01, 0.06, count)])
    return Infrastructure.of(
        [f"cluster-{index:05d}" for index in range(count)],
        RESOURCES,
        capacity,
        price=price,
        bandwidth_capacity=rng.uniform(*bandwidth, count),
        bandwidth_price=rng.uniform(0.01, 0.4, count),
        threshold=threshold,
        location_cost=[[0.0]],
    )


def equal_nodes(count: int, *, cores: float = 700.0, memory: float = 512.0, bandwidth: float = 20.0) -> Infrastructure:
    """Return the equal nodes that fill one after another."""
    return Infrastructure.of(
        [f"node-{index:03d}" for index in range(count)],
        RESOURCES,
        np.tile([cores, memory], (count, 1)),
        price=np.tile([0.25, 0.03], (count, 1)),
        bandwidth_capacity=bandwidth,
        bandwidth_price=0.2,
        location_cost=[[0.0]],
    )


def _edges(rng: np.random.Generator, size: int, workload: Workload) -> list[tuple[int, int]]:
    pairs = [(one, other) for one in range(size) for other in range(one + 1, size)]
    if workload.graph == "independent":
        return [
            pair for pair, drawn in zip(pairs, rng.random(len(pairs)), strict=True) if drawn < workload.connectivity
        ]
    order = rng.permutation(size)
    chosen: set[tuple[int, int]] = set()
    for at in range(1, size):
        one, other = int(order[at]), int(order[rng.integers(at)])
        chosen.add((min(one, other), max(one, other)))
    rest = [pair for pair in pairs if pair not in chosen]
    wanted = max(0, round(workload.connectivity * len(pairs)) - len(chosen))
    extra: list[int] = rng.choice(len(rest), size=min(wanted, len(rest)), replace=False).tolist() if rest else []
    return sorted({*chosen, *(rest[at] for at in extra)})


def applications(seed: int, workload: Workload | None = None) -> list[Application]:
    """Return the applications of one sample in arrival order."""
    shape = workload or Workload()
    rng = np.random.default_rng([seed, 2])
    found = []
    for _ in range(shape.count):
        size = shape.components
        requests = np.column_stack(
            [rng.integers(shape.cores[0], shape.cores[1] + 1, size), rng.uniform(*shape.memory, size)]
        )
        edges = _edges(rng, size, shape)
        demand = rng.uniform(*shape.bandwidth, len(edges)) * shape.multiplier
        found.append(Application.of(requests, edges=np.array(edges).reshape(-1, 2), bandwidth=demand))
    return found


def opportunistic_nodes(small: int, *, threshold: float = 1.0) -> Infrastructure:
    """Return `small` nodes of 8 cores and two of 100 cores at one price; the threshold is on the small ones."""
    count = small + 2
    cores = np.array([8.0] * small + [100.0] * 2)
    return Infrastructure.of(
        [f"small-{index:03d}" for index in range(small)] + ["large-0", "large-1"],
        RESOURCES,
        np.column_stack([cores, cores]),
        price=np.tile([0.25, 0.03], (count, 1)),
        bandwidth_capacity=20.0,
        bandwidth_price=0.2,
        threshold=np.array([threshold] * small + [1.0] * 2),
        location_cost=[[0.0]],
    )


def chains(
    infrastructure: Infrastructure, *, count: int = 80, block: int = 20, bandwidth: float = 0.01
) -> list[Application]:
    """Return chains A-B-C of 1, 1 and 4 cores; A of the i-th is bound by selector to small node i modulo `block`."""
    found = []
    for index in range(count):
        only = np.zeros(infrastructure.size, dtype=np.bool_)
        only[index % block] = True
        nobody, everybody = np.zeros_like(only), np.ones_like(only)
        group = np.array([0, 1, 1], dtype=np.int32)
        found.append(
            Application.of(
                [[1.0, 1.0], [1.0, 1.0], [4.0, 1.0]],
                names=("A", "B", "C"),
                edges=[(0, 1), (1, 2)],
                bandwidth=bandwidth,
                allowed=NodeMasks(np.stack([only, everybody]), group),
                named=NodeMasks(np.stack([only, nobody]), group),
                has_selector=[True, False, False],
            )
        )
    return found
