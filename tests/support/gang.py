"""Builders of small problems for the gang engine's tests: one line each."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.phare.boutique import EDGES, MILLICORES
from berth.scheduling.gang import Application, Infrastructure, NodeMasks

ZONE_COST = np.array([[1.0, 5.0, 20.0, 20.0], [5.0, 1.0, 20.0, 20.0], [20.0, 20.0, 1.0, 10.0], [20.0, 20.0, 10.0, 1.0]])
"""Network costs of the eight-node example: two regions with two zones each."""


def nodes(*cores: float, memory: float = 1000.0, **fields: Any) -> Infrastructure:
    """Return nodes a, b, c, ... with these cores; prices and network costs are 0 unless given."""
    fields.setdefault("location_cost", [[0.0]])
    names = [chr(ord("a") + index) for index in range(len(cores))]
    return Infrastructure.of(names, ("cpu", "memory"), [[amount, memory] for amount in cores], **fields)


def zoned(per_zone: int, cores: float) -> Infrastructure:
    """Return equal nodes in the four zones of `ZONE_COST`, zone by zone."""
    count = 4 * per_zone
    return Infrastructure.of(
        [f"n-{index + 1}" for index in range(count)],
        ("cpu", "memory"),
        [[cores, 1000.0]] * count,
        location=np.arange(count) // per_zone,
        location_cost=ZONE_COST,
    )


def app(*cores: float, edges: Any = (), **fields: Any) -> Application:
    """Return components of these cores and 1 unit of memory each."""
    return Application.of([[amount, 1.0] for amount in cores], edges=list(edges) or None, **fields)


def boutique(replicas: int = 1, **fields: Any) -> Application:
    """Return Online Boutique (11 workloads, 15 edges), an edge for every pair of dependent pods."""
    edges = [
        (one * replicas + i, other * replicas + j)
        for one, other in EDGES
        for i in range(replicas)
        for j in range(replicas)
    ]
    requests = np.column_stack([MILLICORES, np.ones(11)]).repeat(replicas, axis=0)
    return Application.of(requests, edges=edges, **fields)


def only(count: int, *allowed: tuple[int, ...] | None) -> NodeMasks:
    """Return masks over `count` nodes; per component the allowed node indices, None for all."""
    rows = np.zeros((len(allowed), count), dtype=bool)
    for row, indices in zip(rows, allowed, strict=True):
        row[list(range(count)) if indices is None else list(indices)] = True
    return NodeMasks.per_component(rows)
