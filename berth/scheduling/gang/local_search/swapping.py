"""Swaps: two components exchange their nodes while that lowers the cost.

They help where nodes are full and edges cross them, which relocation cannot mend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.gang.local_search.relocation import FAILURES, PASSES, relocate
from berth.scheduling.gang.search_state import INFEASIBLE

if TYPE_CHECKING:
    from collections.abc import Generator

    from berth.scheduling.gang.instance import Floats, Indices
    from berth.scheduling.gang.search_state import SearchState

_EPSILON = 1e-9


def swap(search: SearchState) -> Generator[None, None, float]:
    """Alternate swaps with relocation until neither helps; return the change of cost."""
    gained = 0.0
    for _ in range(PASSES):
        if search.instance.budget.over:
            break
        change = yield from _one_pass(search)
        if change == 0.0:
            break
        gained += change + (yield from relocate(search))
    return gained


def _one_pass(search: SearchState) -> Generator[None, None, float]:
    """Swap pairs of components on different nodes, most promising first; return the change of cost."""
    placed = np.flatnonzero(search.where[: search.instance.components] >= 0)
    homes = search.where[placed]
    alone = _costs_alone(search, placed)
    moved = alone[:, homes] - alone[np.arange(len(placed)), homes][:, None]
    between = _costs_between(search, placed)
    delta = moved + moved.T + between + between.T
    room = search.spare[:, homes] + search.requests[placed].T
    fits = (room[:, None, :] >= search.requests[placed].T[:, :, None]).all(axis=0)
    delta[~(fits & fits.T) | (homes[:, None] == homes)] = np.inf
    one, other = np.nonzero(np.triu(delta < -_EPSILON))
    gained, failures = 0.0, 0
    for at in np.argsort(delta[one, other], kind="stable").tolist():
        yield from search.instance.budget.pause()
        if search.instance.budget.over:
            break
        first, second = int(placed[one[at]]), int(placed[other[at]])
        if search.where[first] != homes[one[at]] or search.where[second] != homes[other[at]]:
            continue
        change = _swap_pair(search, first, second)
        gained += change
        failures = failures + 1 if change == 0.0 else 0
        if failures >= FAILURES:
            break
    return gained


def _costs_alone(search: SearchState, placed: Indices) -> Floats:
    """Return float64[len(placed), K], the cost of each component on each node, all others fixed; limits aside."""
    cost = search.static[placed]
    if search.traffic is not None:
        received = search.received[placed]
        cost += (received.sum(axis=1)[:, None] - 2 * received) * search.bandwidth_price
    if search.network is not None:
        cost += search.network[placed]
    return cost


def _costs_between(search: SearchState, placed: Indices) -> Floats:
    """Return float64[len(placed), len(placed)], what the edges between two components cost where they are."""
    homes, among = search.where[placed], np.ix_(placed, placed)
    cost = np.zeros((len(placed), len(placed)))
    if search.traffic is not None:
        cost += search.traffic[among] * (search.bandwidth_price[homes][:, None] + search.bandwidth_price[homes]) / 2
    if search.network is not None:
        cost += search.weight[among] * search.distance[homes[:, None], homes]
    return cost


def _swap_pair(search: SearchState, first: int, second: int) -> float:
    """Exchange the nodes of two components; undone (and 0.0) unless that is allowed and lowers the cost."""
    here, there = search.remove(first), search.remove(second)
    before = _place_both(search, ((first, here), (second, there)))
    search.remove(first)
    search.remove(second)
    after = _place_both(search, ((first, there), (second, here)))
    if after < before - _EPSILON:
        return after - before
    for component in (first, second):
        if search.where[component] >= 0:
            search.remove(component)
    search.place(first, here)
    search.place(second, there)
    return 0.0


def _place_both(search: SearchState, wanted: tuple[tuple[int, int], ...]) -> float:
    """Place components at columns and return what that adds; stops at the first that is not allowed there."""
    added = 0.0
    for component, column in wanted:
        added += float(search.costs(component)[column])
        if added >= INFEASIBLE / 2:
            return added
        search.place(component, column)
    return added
