"""Drafts: what is missing, round trips through snapshots, and the floor of the objective."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.small import small_problem
from berth.scheduling.replicas.search.draft import Draft
from tests.support.counts import books_of, problem, walk


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_a_restored_snapshot_is_what_it_was(seed: int) -> None:
    books, rng = books_of(small_problem(seed)), np.random.default_rng(seed)
    walk(books, rng, 8)
    draft = Draft(books)
    rows = range(len(draft.missing))
    planned, missing, free, value = draft.snapshot(rows), list(draft.missing), books.free.copy(), books.value()
    draft.clear(rows, range(books.model.size))
    assert not books.planned.any()
    walk(books, rng, 8)
    Draft(books).restore(rows, planned)
    assert np.array_equal(books.planned, planned)
    assert np.array_equal(books.free, free)
    assert books.value() == pytest.approx(value, rel=1e-9, abs=1e-9 * books.model.penalty)
    assert Draft(books).missing == missing


def test_a_snapshot_takes_four_bytes_for_each_pod_set_and_column() -> None:
    draft = Draft(books_of(problem(3, 2)))
    draft.put(0, 4, 2)
    planned = draft.snapshot([0, 1])
    assert planned.nbytes == 4 * len(draft.missing) * draft.model.size
    assert planned[0, 4] == 2


def test_clear_tells_what_was_there() -> None:
    draft = Draft(books_of(problem(3, 2)))
    draft.put(0, 4, 2)
    draft.put(1, 4)
    assert draft.missing == [1, 1]
    assert draft.clear([0], range(8)) == [(0, 4, 2)]
    assert draft.missing == [3, 1]


@pytest.mark.parametrize(
    ("homes", "rows", "expected"),
    [
        pytest.param([[0, 0], [0], [0]], [0, 1, 2], (0, 0, 0), id="nothing"),
        pytest.param([[0], [0], [0]], [0, 1, 2], (1, 0, 0), id="one of two replicas"),
        pytest.param([[0, 0], [], [0]], [0, 1, 2], (1, 1, 2), id="the middle of a chain"),
        pytest.param([[0, 0], [0], []], [0, 1, 2], (1, 1, 1), id="the end of a chain"),
        pytest.param([[], [], [0]], [0, 1, 2], (3, 2, 2), id="both ends of a dependency"),
        pytest.param([[0], [], [0]], [0], (1, 0, 1), id="of one workload, with its dependencies"),
        pytest.param([[0, 0], [], [0]], [0], (0, 0, 0), id="nothing of one workload"),
    ],
)
def test_shortage(homes: list[list[int]], rows: list[int], expected: tuple[int, int, int]) -> None:
    draft = Draft(books_of(problem(2, 1, 1, edges=[(0, 1), (1, 2)])))
    for row, nodes in enumerate(homes):
        for node in nodes:
            draft.put(row, node)
    assert draft.shortage(rows) == expected


def test_a_workload_with_a_placed_replica_is_there() -> None:
    draft = Draft(books_of(problem(1, 1, edges=[(0, 1)], placed={1: {3: 1}})))
    assert draft.shortage([0, 1]) == (2, 1, 1)


CHARGE = np.array([3.0, 1, 2, 2, 2, 2, 2, 2])


@pytest.mark.parametrize(
    ("homes", "charge", "floor"),
    [
        pytest.param([0, 0], None, True, id="nothing to pay"),
        pytest.param([0], None, False, id="somebody is missing"),
        pytest.param([0, 1], None, False, id="calls cost"),
        pytest.param([1, 1], CHARGE, True, id="the least that plugins charge"),
        pytest.param([0, 0], CHARGE, False, id="more than the least"),
    ],
)
def test_at_floor(homes: list[int], charge: np.ndarray | None, floor: bool) -> None:
    draft = Draft(books_of(problem(1, 1, edges=[(0, 1)], cost=charge)))
    for row, node in enumerate(homes):
        draft.put(row, node)
    assert draft.at_floor([0, 1]) is floor
