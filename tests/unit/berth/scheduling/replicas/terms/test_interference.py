"""The term of interference in the books: exact, the same whatever came before, and silent where nobody has a class.

What harm is on a node is tested beside the choices of sockets, what plans make of it in `test_plan_interference.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.small import small_problem
from berth.scheduling.replicas.problem import Problem
from berth.scheduling.replicas.sharing import Sharing
from tests.support.counts import books_of, check_changes, problem, walk
from tests.support.sharing import PRICE, harm_of, shared


def drawn(seed: int) -> Problem:
    """A small problem whose pod sets have classes, most of them, on nodes where others are."""
    rng, found = np.random.default_rng(seed), small_problem(seed)
    letters = rng.choice(list("ABCD "), len(found.pod_sets)).tolist()
    there = {node: "".join(rng.choice(list("ABCD"), rng.integers(0, 3))) for node in range(found.nodes.size)}
    return shared(found, letters, there=there)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_changes_are_differences_of_the_objective_and_leave_nothing_behind(seed: int) -> None:
    books, fresh = books_of(drawn(seed)), books_of(drawn(seed))
    rng = np.random.default_rng(seed)
    walk(books, rng, 12)
    check_changes(books)
    for row, column in np.argwhere(books.planned).tolist():
        fresh.insert(row, column, int(books.planned[row, column]))
    assert fresh.interference.value() == pytest.approx(books.interference.value(), abs=1e-9)
    shares = books.interference.shares(books.planned)
    assert shares.sum() == pytest.approx(books.interference.value(), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_an_exchange_is_told_before_it_is_made(seed: int) -> None:
    books = books_of(drawn(seed))
    walk(books, np.random.default_rng(seed), 12)
    places = np.argwhere(books.planned).tolist()
    for row, column in places:
        for other, target in places:
            if column != target and row != other:
                before, change = books.interference.value(), books.interference.exchanged(row, column, other, target)
                moves = [(row, column, -1), (other, target, -1), (row, target, 1), (other, column, 1)]
                if {row, other} <= set(books.interference.rows):
                    books.change(moves)
                    assert books.interference.value() - before == pytest.approx(change, abs=1e-9)
                    books.change([(each, at, -count) for each, at, count in moves])


@pytest.mark.parametrize(
    ("letters", "there"),
    [
        pytest.param("DD", "", id="two on an empty node"),
        pytest.param("AB", "", id="good company"),
        pytest.param("DC", "DA", id="beside others"),
        pytest.param("ABD", "D", id="three beside one"),
    ],
)
def test_a_node_costs_what_the_best_pairing_of_all_its_pods_costs_more(letters: str, there: str) -> None:
    books = books_of(shared(problem(*[1] * len(letters)), letters, there={0: there}))
    for row in range(len(letters)):
        books.insert(row, 0)
    more = harm_of(there + letters, room=2, sockets=2) - harm_of(there, room=2, sockets=2)
    assert books.interference.value() == pytest.approx(more, abs=1e-5)


def test_what_a_node_costs_is_asked_once_for_each_company() -> None:
    asked: list[tuple[int, tuple[int, ...]]] = []

    def together(kind: int, pods: tuple[int, ...]) -> float:
        asked.append((kind, pods))
        return PRICE * len(pods)

    found = problem(3, 3)
    sharing = Sharing(
        kind=np.arange(8) // 4, number={0: 0, 1: 1}, alone=np.ones((2, 2)), together=together, highest=PRICE
    )
    books = books_of(Problem(nodes=found.nodes, workloads=found.workloads, pod_sets=found.pod_sets, sharing=sharing))
    assert books.interference.add(0) == pytest.approx(np.ones(8))
    assert not asked  # a pod by itself is charged what it was charged before
    walk(books, np.random.default_rng(1), 60)
    assert asked
    assert len(asked) == len(set(asked))


def test_without_classes_nothing_is_charged() -> None:
    books = books_of(problem(2, 2))
    books.insert(0, 0, 2)
    assert not books.interference.active
    assert books.interference.add(0) == 0.0
    assert books.interference.value() == 0.0
