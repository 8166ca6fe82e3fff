"""Nodes for k pods: against all choices, and what counts first."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.latency import coverage
from berth.scheduling.latency.coverage import Floats, Worth, best_nodes, exchanged, extended, worth

COSTS = (
    st.integers(2, 6)
    .flatmap(
        lambda nodes: st.lists(st.lists(st.integers(1, 99), min_size=nodes, max_size=nodes), min_size=1, max_size=8)
    )
    .map(lambda rows: np.array(rows, dtype=np.float64))
)


@pytest.mark.parametrize(
    ("rows", "count", "limit", "chosen"),
    [
        pytest.param([[10, 50], [90, 50]], 1, 100, (0,), id="equal means: the first"),
        pytest.param([[10, 50], [90, 50]], 1, 60, (1,), id="users within the limit come before the mean"),
        pytest.param([[10, 50], [80, 50]], 1, 100, (0,), id="then the mean"),
        pytest.param([[10, 90, 50], [90, 10, 50]], 2, 100, (0, 1), id="each its own"),
        pytest.param([[10, 50]], 3, 100, (0, 1), id="no more nodes than there are"),
    ],
)
def test_choices(rows: list[list[float]], count: int, limit: float, chosen: tuple[int, ...]) -> None:
    assert best_nodes(np.array(rows, dtype=np.float64), range(len(rows[0])), count, limit) == chosen


@pytest.mark.parametrize(
    ("nodes", "count", "chosen"),
    [
        pytest.param((), 1, (0,), id="the best alone"),
        pytest.param((2,), 2, (2, 1), id="the best beside those that are there"),
        pytest.param((2,), 1, (2,), id="as many as there are"),
        pytest.param((2,), 9, (2, 1, 0), id="no more than candidates"),
    ],
)
def test_a_choice_is_extended_by_what_is_best_beside_it(
    nodes: tuple[int, ...], count: int, chosen: tuple[int, ...]
) -> None:
    rows = np.array([[20.0, 90.0, 10.0, 5.0], [20.0, 10.0, 90.0, 5.0]])
    assert extended(rows, nodes, [0, 1, 2], count, 100) == chosen


def test_only_candidates_are_chosen() -> None:
    assert best_nodes(np.array([[1.0, 5.0, 9.0]]), [1, 2], 1, 100) == (1,)


def test_worth_counts_each_user_at_the_nearest_node() -> None:
    assert worth(np.array([[10.0, 90.0], [70.0, 80.0]]), [0, 1], 60) == Worth(1, 40.0)


@given(COSTS, st.integers(1, 5), st.integers(1, 100))
def test_no_choice_is_better(costs: Floats, count: int, limit: int) -> None:
    nodes = range(costs.shape[1])
    found = best_nodes(costs, nodes, count, limit)
    everything = combinations(nodes, min(count, len(nodes)))
    assert worth(costs, found, limit) == min(worth(costs, choice, limit) for choice in everything)


@given(COSTS, st.integers(1, 5), st.integers(1, 100))
def test_no_exchange_of_one_node_makes_the_heuristic_better(costs: Floats, count: int, limit: int) -> None:
    nodes = range(costs.shape[1])
    count = min(count, len(nodes) - 1)
    found = exchanged(costs, nodes, count, limit)
    assert len(set(found)) == count
    reached = worth(costs, found, limit)
    for out in found:
        for other in set(nodes) - set(found):
            tried = worth(costs, [*(each for each in found if each != out), other], limit)
            assert tried.beyond > reached.beyond or tried.mean >= reached.mean * (1 - 1e-9)


def test_the_heuristic_is_within_a_hundredth_of_the_best_and_many_choices_are_left_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = np.random.default_rng(1)
    ratios = []
    for _ in range(40):
        nodes, users = chance.random((10, 2)), chance.random((30, 2))
        costs = np.linalg.norm(users[:, None] - nodes[None], axis=2)
        exact = worth(costs, best_nodes(costs, range(10), 4, 9), 9)
        with monkeypatch.context() as patched:
            patched.setattr(coverage, "MOST_CHOICES", 0)
            ratios.append(worth(costs, best_nodes(costs, range(10), 4, 9), 9).mean / exact.mean)
    assert min(ratios) >= 1 - 1e-9
    assert sum(ratios) / len(ratios) < 1.01
