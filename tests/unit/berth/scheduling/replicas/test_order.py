"""Orders in which pods with required affinity can be bound."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.judge import Judge
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.order import has_order
from berth.scheduling.replicas.problem import Nodes, PodSet, Problem, Workload
from berth.scheduling.replicas.rule import Affinity
from tests.support.counts import books_of, state_of
from tests.support.work import Work

HOST, PAIR = np.arange(4), np.array([0, 0, 1, 1])


def near(subject: int, *selects: int, domain: np.ndarray = HOST, placed: list[int] | None = None) -> Affinity:
    counts = None if placed is None else np.array(placed)
    return Affinity(domain=domain, subjects=[subject], selects=selects, placed=counts)


def problem_of(rules: list[Affinity]) -> Problem:
    zero = np.zeros(4, dtype=np.int64)
    nodes = Nodes(free=np.full((4, 1), 99), location=zero, location_cost=np.ones((1, 1)), zone=zero)
    sets = [PodSet(workload=0, replicas=5, request=np.array([1])) for _ in range(4)]
    return Problem(nodes=nodes, workloads=[Workload(name="w")], pod_sets=sets, rules=rules)


@pytest.mark.parametrize(
    ("rules", "planned", "possible"),
    [
        pytest.param([], [(0, 0), (1, 3)], True, id="no rules"),
        pytest.param([near(0, 0)], [(0, 1), (0, 1)], True, id="together, one is first"),
        pytest.param([near(0, 0)], [(0, 1), (0, 2)], False, id="two domains, two first"),
        pytest.param([near(0, 0, domain=PAIR)], [(0, 0), (0, 1)], True, id="two nodes of one domain"),
        pytest.param([near(0, 1)], [(0, 1), (1, 1)], True, id="after another"),
        pytest.param([near(0, 1)], [(0, 1), (1, 2)], False, id="away from another"),
        pytest.param([near(0, 1), near(1, 0)], [(0, 1), (1, 1)], False, id="each waits for the other"),
        pytest.param([near(0, 1), near(1, 2)], [(0, 1), (1, 1), (2, 1)], True, id="chain"),
        pytest.param([near(0, 0, placed=[1, 0, 0, 0])], [(0, 1)], False, id="somebody was first elsewhere"),
        pytest.param([near(0, 0, placed=[0, 1, 0, 0])], [(0, 1)], True, id="somebody was first here"),
        pytest.param(
            [near(2, 2, 3), near(0, 0, 2)],
            [(0, 3), (2, 0), (2, 0), (2, 2), (3, 2)],
            True,
            id="first of its kind before those that it selects",
        ),
    ],
)
def test_has_order(rules: list[Affinity], planned: list[tuple[int, int]], possible: bool) -> None:
    books = books_of(problem_of(rules))
    for row, column in planned:
        books.insert(row, column)
    assert has_order(books) is possible


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6))
def test_an_order_is_found_exactly_if_there_is_one(seed: int) -> None:
    """The judge tries all orders."""
    rng = np.random.default_rng(seed)
    rules = []
    for _ in range(rng.integers(1, 4)):
        one, *others = rng.permutation(4)[: rng.integers(1, 4)].tolist()
        subjects = [one, *others] if rng.random() < 0.3 else [one]
        selects = [one, *others] if len(subjects) > 1 or rng.random() < 0.5 else others
        placed = rng.integers(0, 2, 4) if rng.random() < 0.2 else None
        rules.append(Affinity(domain=rng.integers(-1, 3, 4), subjects=subjects, selects=selects, placed=placed))
    asked = problem_of(rules)
    books = books_of(asked)
    for row in range(4):
        for column in rng.integers(0, 4, rng.integers(0, 3)).tolist():
            books.insert(row, column)
    broken = Judge(asked).broken(state_of(books))
    assert has_order(books) is ("required affinity" not in broken)


def one_domain(rules: list[Affinity], sets: int) -> Books:
    """A pod of each set, all of them on the first of four nodes of one domain."""
    zero = np.zeros(4, dtype=np.int64)
    nodes = Nodes(free=np.full((4, 1), 9999), location=zero, location_cost=np.ones((1, 1)), zone=zero)
    some = [PodSet(workload=0, replicas=1, request=np.array([1])) for _ in range(sets)]
    books = books_of(Problem(nodes=nodes, workloads=[Workload(name="w")], pod_sets=some, rules=rules))
    books.change([(row, 0, 1) for row in range(sets)])
    return books


def wide() -> Books:
    rules = [near(row, row - 1, domain=np.arange(2000)) for row in range(1, 4)]
    zero = np.zeros(2000, dtype=np.int64)
    nodes = Nodes(free=np.full((2000, 1), 9), location=zero, location_cost=np.ones((1, 1)), zone=zero)
    sets = [PodSet(workload=0, replicas=2000, request=np.array([1])) for _ in range(4)]
    books = books_of(Problem(nodes=nodes, workloads=[Workload(name="w")], pod_sets=sets, rules=rules))
    books.change([(row, column, 1) for row in range(4) for column in range(2000)])
    return books


def backwards() -> Books:
    zero = np.zeros(4, dtype=np.int64)
    return one_domain([near(row, row + 1, domain=zero) for row in range(999)], 1000)


def knot() -> Books:
    """Two wait for each other; 36 others have 100 terms each, which are met."""
    zero = np.zeros(4, dtype=np.int64)
    terms = [near(row, 2, domain=zero) for row in range(4, 40) for _ in range(100)]
    return one_domain([near(0, 1, domain=zero), near(1, 0, domain=zero), *terms], 40)


@pytest.mark.parametrize(
    ("books", "possible"),
    [
        pytest.param(wide, True, id="a chain on thousands of nodes"),
        pytest.param(backwards, True, id="a chain of a thousand whose end comes last"),
        pytest.param(knot, False, id="no order of some with many terms"),
    ],
)
def test_an_order_is_found_soon_or_given_up(books: Callable[[], Books], possible: bool) -> None:
    asked, work = books(), Work()
    with work.counting():
        assert has_order(asked) is possible
    assert work.seconds < 0.2
