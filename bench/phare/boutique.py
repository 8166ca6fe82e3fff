"""Online Boutique as arrays, and simulated zones: the shape of a live cluster without prices."""

from __future__ import annotations

import numpy as np

from berth.scheduling.gang import Application, Infrastructure

# frontend, cart, catalog, currency, payment, shipping, email, checkout, recommendation, ad, redis
EDGES = (
    (0, 1), (0, 2), (0, 3), (0, 5), (0, 7), (0, 8), (0, 9), (1, 10),
    (7, 1), (7, 2), (7, 3), (7, 4), (7, 5), (7, 6), (8, 2),
)  # fmt: skip
MILLICORES = (100, 200, 100, 100, 100, 100, 100, 100, 100, 200, 70)
MEBIBYTES = (64, 64, 64, 64, 64, 64, 64, 64, 220, 180, 200)


def scaled_boutique(replicas: int) -> Application:
    """Return Online Boutique with `replicas` pods per workload and an edge for every pair of dependent pods."""
    requests = np.column_stack([MILLICORES, MEBIBYTES, np.ones(11)]).repeat(replicas, axis=0)
    edges = [
        (one * replicas + i, other * replicas + j)
        for one, other in EDGES
        for i in range(replicas)
        for j in range(replicas)
    ]
    return Application.of(requests, edges=edges)


def zoned_nodes(count: int, millicores: float, *, regions: int = 4, zones: int = 4) -> Infrastructure:
    """Return equal nodes spread over zones: cost 1 in a zone, about 10 in a region, about 100 between regions."""
    places = regions * zones
    region = np.arange(places) // zones
    cost = np.where(region[:, None] == region, 10.0, 100.0)
    cost += np.random.default_rng(0).integers(0, 5, cost.shape)
    np.fill_diagonal(cost, 1.0)
    return Infrastructure.of(
        [f"node-{index:05d}" for index in range(count)],
        ("cpu", "memory", "pods"),
        np.tile([millicores, 4 * millicores, 110.0], (count, 1)),
        location=np.arange(count) % places,
        location_cost=cost,
    )
