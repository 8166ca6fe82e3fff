"""Lower bound of the total cost: the transportation linear program, and the bound on accepted applications.

The program spreads every accepted component in fractions over the nodes at their prices, within CPU and memory
budgets and without bandwidth. It is solved over classes of components (whole cores, binned memory) with HiGHS; its
dual prices then give a Lagrangian bound over the exact components, which no placement can undercut:

    sum over components of min over nodes (request * (price + dual)) - sum over nodes of capacity * dual
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.gang import Application, Infrastructure

_MEMORY_BINS = 8


def accepted_at_most(infrastructure: Infrastructure, applications: Sequence[Application]) -> int:
    """Return how many applications pooled cores allow, walking the arrival order and skipping what no longer fits."""
    pool = float(infrastructure.free[:, 0].sum())
    count = 0
    for application in applications:
        cores = float(application.requests[:, 0].sum())
        if cores <= pool:
            pool -= cores
            count += 1
    return count


def lowest_cost(infrastructure: Infrastructure, accepted: Sequence[Application]) -> float:
    """Return a lower bound of the cost of placing all of `accepted` from empty nodes."""
    if not accepted:
        return 0.0
    requests = np.concatenate([application.requests for application in accepted])
    price, capacity = infrastructure.price, infrastructure.free
    classes, amounts = _classes(requests)
    # Dear nodes that the optimum leaves empty only cost time; their dual price is 0, so the bound stays valid.
    order = np.argsort(price @ requests.mean(axis=0), kind="stable")
    reach = np.cumsum(capacity[order, 0])
    kept = order[: int(np.searchsorted(reach, 1.5 * requests[:, 0].sum())) + 20]
    duals = np.zeros_like(price)
    duals[kept] = _duals(classes, amounts, price[kept], capacity[kept])
    total = -float((capacity * duals).sum())
    full_price = price + duals
    for start in range(0, len(requests), 500):
        total += float((requests[start : start + 500] @ full_price.T).min(axis=1).sum())
    return total


def _classes(requests: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean request and the number of components of each class."""
    low, high = requests[:, 1].min(), requests[:, 1].max()
    bins = np.minimum(((requests[:, 1] - low) / max(high - low, 1e-12) * _MEMORY_BINS).astype(int), _MEMORY_BINS - 1)
    _, index = np.unique(np.column_stack([requests[:, 0], bins]), axis=0, return_inverse=True)
    counts = np.bincount(index.reshape(-1))
    means = np.column_stack(
        [np.bincount(index.reshape(-1), weights=requests[:, r]) / counts for r in range(requests.shape[1])]
    )
    return means, counts.astype(np.float64)


def _duals(classes: np.ndarray, amounts: np.ndarray, price: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Return the dual price of every budget, shape of `price`, from the program over classes."""
    kinds, nodes, resources = len(classes), len(price), price.shape[1]
    columns = np.arange(kinds * nodes)
    kind, node = np.divmod(columns, nodes)
    budget = csr_matrix(
        (
            classes[kind].T.reshape(-1),
            (np.concatenate([node + r * nodes for r in range(resources)]), np.tile(columns, resources)),
        ),
        shape=(resources * nodes, kinds * nodes),
    )
    demand = csr_matrix((np.ones(kinds * nodes), (kind, columns)), shape=(kinds, kinds * nodes))
    solved = linprog(
        (classes @ price.T).reshape(-1),
        A_ub=budget,
        b_ub=capacity.T.reshape(-1),
        A_eq=demand,
        b_eq=amounts,
        method="highs",
    )
    if not solved.success:
        raise RuntimeError(f"lower bound not solved: {solved.message}")
    duals: np.ndarray = np.maximum(-solved.ineqlin.marginals, 0.0).reshape(resources, nodes).T
    return duals
