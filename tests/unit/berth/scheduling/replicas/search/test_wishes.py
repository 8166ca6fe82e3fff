"""What is remembered is what the books say, whatever moves in between."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.cases import boutique
from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.problem import Problem
from berth.scheduling.replicas.search import wishes as module
from berth.scheduling.replicas.search.wishes import Wishes
from tests.support.counts import books_of, problem, walk


def check(wishes: Wishes, books: Books) -> None:
    scale = 1e-9 * books.model.penalty
    for row, column in np.argwhere(books.planned).tolist():
        change, able = wishes.of(row, column)
        fresh, takers = books.wishes(row, column)
        assert change == pytest.approx(fresh, rel=1e-9, abs=scale), (row, column)
        assert np.array_equal(able, takers), (row, column)


def wander(books: Books, rng: np.random.Generator) -> None:
    wishes = Wishes(books)
    for _ in range(6):
        check(wishes, books)
        pods = np.argwhere(books.planned)
        if not len(pods):
            return
        row, column = pods[rng.integers(len(pods))].tolist()
        books.move(row, column, int(rng.integers(books.model.size)))
        wishes.forget([row])
    check(wishes, books)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_small_problems_with_every_rule(seed: int) -> None:
    books = books_of(small_problem(seed))
    rng = np.random.default_rng(seed)
    walk(books, rng, 8)
    wander(books, rng)


@pytest.mark.parametrize("routing", list(Routing), ids=lambda routing: routing.value)
@pytest.mark.parametrize("rule", ["none", "required", "hard", "soft"])
def test_an_application(routing: Routing, rule: str) -> None:
    books = books_of(boutique(3, routing=routing, rule=rule, limits=False))
    rng = np.random.default_rng(1)
    walk(books, rng, 33)
    wander(books, rng)


def callers_of_one() -> Problem:
    """Two callers that have nothing to do with each other but the load of what they call."""
    return problem(2, 2, 2, edges=[(0, 2), (1, 2)], routing=[Routing.ALL, Routing.ALL, Routing.SAME_ZONE])


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        pytest.param(problem(2, 2), True, id="nothing to do with each other"),
        pytest.param(problem(2, 2, edges=[(0, 1)]), False, id="an edge"),
        pytest.param(replace(callers_of_one(), edges=()), True, id="no edges"),
        pytest.param(callers_of_one(), False, id="the load of one callee"),
    ],
)
def test_a_move_of_the_second_set_is_forgotten_where_it_matters(asked: Problem, known: bool) -> None:
    books = books_of(asked)
    books.insert(0, 0)
    books.insert(1, 0)
    wishes = Wishes(books)
    before, _ = wishes.of(0, 0)
    books.move(1, 0, 4)
    wishes.forget([1])
    assert (wishes.of(0, 0)[0] is before) is known


def test_no_more_is_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 20)
    books = books_of(problem(4))
    for node in range(4):
        books.insert(0, node)
    wishes = Wishes(books)
    first = [wishes.of(0, node)[0] for node in range(4)]
    again = [wishes.of(0, node)[0] for node in (3, 2, 1)]
    assert [old is new for old, new in zip((first[3], first[2], first[1]), again, strict=True)] == [True, True, False]
