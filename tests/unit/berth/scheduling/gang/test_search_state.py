"""The search state agrees with plain recomputation of marginal costs, and with the placement state."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings

from berth.scheduling.gang import Application, Infrastructure
from berth.scheduling.gang.placement_state import PlacementState
from berth.scheduling.gang.search_state import INFEASIBLE, SearchState
from tests.support.gang import app, nodes
from tests.support.gang_problems import problems
from tests.support.gang_search import cost, feasible, filled, opened

SOME = settings(max_examples=50, deadline=None, derandomize=True)


@SOME
@given(problem=problems())
def test_costs_are_marginal_costs(problem: tuple[Infrastructure, Application]) -> None:
    search = opened(*problem)
    for component in range(search.instance.components):
        before = search.nodes()
        costs = search.costs(component)
        for column in np.flatnonzero(costs < INFEASIBLE / 2).tolist():
            after = before.copy()
            after[component] = search.columns[column]
            assert feasible(search, after)
            assert costs[column] == pytest.approx(cost(search, after) - cost(search, before), abs=1e-6)
        if (costs < INFEASIBLE / 2).any():
            search.place(component, int(costs.argmin()))


@SOME
@given(problem=problems())
def test_it_agrees_with_the_placement_state(problem: tuple[Infrastructure, Application]) -> None:
    search = opened(*problem)
    placement = PlacementState(search.instance)
    for component in range(search.instance.components):
        costs, possible = search.costs(component), placement.feasible(component)
        # The search is stricter only where a named node's bandwidth threshold may be exceeded.
        assert (possible | (costs >= INFEASIBLE / 2)).all()
        both = possible & (costs < INFEASIBLE / 2)
        assert costs[both] == pytest.approx(placement.marginal(component)[both], abs=1e-6)
        if both.any():
            column = int(np.flatnonzero(both)[0])
            search.place(component, column)
            placement.place(component, column)


@SOME
@given(problem=problems())
def test_removing_undoes_placing(problem: tuple[Infrastructure, Application]) -> None:
    search = opened(*problem)
    start = search.spare.copy()
    for component in filled(search):
        search.remove(component)
    assert search.spare == pytest.approx(start)
    if search.traffic is not None:
        assert search.total_received[: search.instance.components].sum() >= -1e-9
        assert np.abs(search.received[:, :].sum(axis=1) - search.total_received).max() < 1e-9


def test_joint_costs_price_the_whole_application_on_each_node() -> None:
    infrastructure = nodes(10, 6, 4, price=[[3.0, 0.0], [2.0, 0.0], [1.0, 0.0]], bandwidth_price=1.0)
    joint = opened(infrastructure, app(2, 3, edges=[(0, 1)], bandwidth=2.0)).joint_costs()
    assert joint[:2].tolist() == [15.0, 10.0]
    assert joint[2] >= INFEASIBLE / 2


def broken_limits(search: SearchState, block: set[int], column: int) -> bool:
    """Whether a limit towards a placed component outside would be broken with the block on a column."""
    limit = search.instance.limit
    assert limit is not None
    for inside in block:
        for outside, home in enumerate(search.where.tolist()):
            if home < 0 or outside in block:
                continue
            there, back = search.distance[column, home], search.distance[home, column]
            if there > limit[inside, outside] or back > limit[outside, inside]:
                return True
    return False


@SOME
@given(problem=problems())
def test_blocks_break_the_limits_that_plain_loops_find(problem: tuple[Infrastructure, Application]) -> None:
    search = opened(*problem)
    filled(search)
    if search.limits is None:
        return
    everybody = set(range(search.instance.components))
    blocks = [everybody, *({each} for each in everybody), *(everybody - {each} for each in everybody)]
    given_blocks = np.zeros((len(blocks), search.where.size))
    for number, block in enumerate(blocks):
        given_blocks[number, list(block)] = 1.0
    expected = [[broken_limits(search, block, each) for each in range(len(search.columns))] for block in blocks]
    assert search.beyond_limits(given_blocks).tolist() == expected


def test_limits_between_thousands_of_pods_take_no_table_of_pairs_by_nodes() -> None:
    nodes_, callers, called = 300, 200, 600
    cost = np.full((2, 2), 1.0)
    cost[0, 1] = cost[1, 0] = 9.0
    infrastructure = nodes(*[10] * nodes_, location=[n % 2 for n in range(nodes_)], location_cost=cost)
    edges = [(a, callers + b) for a in range(callers) for b in range(called)]
    search = opened(infrastructure, app(*[1] * (callers + called), edges=edges, max_cost=5.0))
    for component in range(callers, callers + called):
        search.place(component, 2 * (component % (nodes_ // 2)))
    block = np.zeros((1, search.where.size))
    block[0, :callers] = 1.0
    tracemalloc.start()
    broken = search.beyond_limits(block)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert broken[0].tolist() == [n % 2 == 1 for n in range(nodes_)]
    assert peak < 50 * len(edges), "bytes; a byte for each pair and node would be 300 of them"
