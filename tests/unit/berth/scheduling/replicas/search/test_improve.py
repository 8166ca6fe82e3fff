"""Moves that improve a draft: single pods, contents of nodes, swaps; never for the worse, and until none is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.small import small_problem
from berth.scheduling.gang.budget import UNLIMITED, Budget
from berth.scheduling.planning import finish
from berth.scheduling.replicas.problem import Prices, Problem
from berth.scheduling.replicas.rule import AntiAffinity
from berth.scheduling.replicas.search.draft import Draft
from berth.scheduling.replicas.search.improve import contents, improve, singles, swaps
from berth.scheduling.replicas.search.wishes import Wishes
from tests.support.counts import ZONE, books_of, filled, nodes, problem, state_of


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_a_plan_gets_no_worse_and_loses_nobody(seed: int) -> None:
    draft = filled(small_problem(seed), np.random.default_rng(seed))
    books, rows = draft.books, range(len(draft.missing))
    before, placed, room = books.value(), books.planned.sum(axis=1).tolist(), books.free.min()
    finish(improve(draft, UNLIMITED, list(rows)))
    assert books.value() <= before + 1e-9 * books.model.penalty
    assert books.planned.sum(axis=1).tolist() == placed
    assert (books.planned >= 0).all()
    assert books.free.min() >= min(0, room)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_no_single_pod_of_an_improved_plan_wants_to_move(seed: int) -> None:
    asked = small_problem(seed)
    # Whoever has nothing to do with a pod is not asked again when its move leaves room.
    asked = replace(asked, nodes=replace(asked.nodes, free=np.full_like(asked.nodes.free, 1000), reserve=None))
    draft = filled(asked, np.random.default_rng(seed))
    if draft.books.load.callees or draft.books.bandwidth.active:
        return  # who calls the same workload is not asked again
    finish(singles(draft, UNLIMITED, range(len(draft.missing)), Wishes(draft.books)))
    for row, column in np.argwhere(draft.books.planned).tolist():
        change, able = draft.books.wishes(row, column)
        assert not (change[able] < -2 * draft.model.gain).any()


def test_without_time_nothing_moves() -> None:
    draft = filled(small_problem(5), np.random.default_rng(5))
    planned = draft.books.planned.copy()
    finish(improve(draft, Budget(lambda: 1.0, 0.0), list(range(len(draft.missing)))))
    assert np.array_equal(draft.books.planned, planned)


NOTHING_SURVIVES = Prices(survive_node=0, survive_zone=0)


def stuck_together() -> Problem:
    """Two workloads that call each other twice and both call one that is placed far away."""
    edges = [(0, 1), (1, 0), (0, 2), (1, 2)]
    return problem(1, 1, 0, edges=edges, placed={2: {6: 1}}, prices=NOTHING_SURVIVES)


def in_each_others_place() -> Problem:
    """Two workloads on full nodes, each where the other wants to be."""
    full = [1, 0, 0, 0, 0, 0, 1, 0]
    return problem(1, 1, 0, 0, edges=[(0, 2), (1, 3)], placed={2: {7: 1}, 3: {1: 1}}, on=nodes(full))


def test_the_contents_of_a_node_move_where_no_pod_moves_alone() -> None:
    draft = Draft(books_of(stuck_together()))
    draft.put(0, 0)
    draft.put(1, 0)
    wishes = Wishes(draft.books)
    finish(singles(draft, UNLIMITED, [0, 1], wishes))
    assert state_of(draft.books)[:2] == [(0,), (0,)]
    assert finish(contents(draft, UNLIMITED, [0, 1], [0, 1], wishes)) == {0, 1}
    assert state_of(draft.books)[:2] == [(6,), (6,)]
    assert draft.books.value() == 0
    assert finish(contents(draft, UNLIMITED, [0, 1], [0, 1], wishes)) == set()


def test_the_objective_is_not_asked_where_no_node_promises_less(monkeypatch: pytest.MonkeyPatch) -> None:
    draft = Draft(books_of(stuck_together()))
    draft.put(0, 6)
    draft.put(1, 6)
    asked: list[object] = []
    monkeypatch.setattr(draft.books, "value", asked.append)
    assert finish(contents(draft, UNLIMITED, [0, 1], [0, 1], Wishes(draft.books))) == set()
    assert not asked
    assert state_of(draft.books)[:2] == [(6,), (6,)]
    assert draft.missing == [0, 0, 0]


def test_pods_that_must_be_apart_move_to_no_common_domain() -> None:
    """Where they are, no node has the key: there they may be together."""
    racks = np.where(ZONE == 0, -1, ZONE)
    apart = AntiAffinity(domain=racks, subjects=[0], selects=[1])
    draft = Draft(books_of(replace(stuck_together(), rules=[apart])))
    draft.put(0, 0)
    draft.put(1, 0)
    before = draft.books.value()
    assert finish(contents(draft, UNLIMITED, [0, 1], [0, 1], Wishes(draft.books))) == set()
    assert state_of(draft.books)[:2] == [(0,), (0,)]
    assert draft.books.value() == pytest.approx(before)


def test_only_nodes_with_touched_pods_are_looked_at() -> None:
    draft = Draft(books_of(stuck_together()))
    draft.put(0, 0)
    draft.put(1, 0)
    assert finish(contents(draft, UNLIMITED, [0, 1], [2], Wishes(draft.books))) == set()


def test_two_pods_swap_where_neither_has_room() -> None:
    draft = Draft(books_of(in_each_others_place()))
    draft.put(0, 0)
    draft.put(1, 6)
    wishes, before = Wishes(draft.books), draft.books.value()
    finish(singles(draft, UNLIMITED, [0, 1], wishes))
    assert finish(contents(draft, UNLIMITED, [0, 1], [0, 1], wishes)) == set()
    assert draft.books.value() == before
    assert finish(swaps(draft, UNLIMITED, [0, 1], [0, 1], wishes)) == {0, 1}
    assert state_of(draft.books)[:2] == [(6,), (0,)]
    assert draft.books.value() == pytest.approx(2.0)
    assert finish(swaps(draft, UNLIMITED, [0, 1], [0, 1], wishes)) == set()


def test_a_swap_that_is_no_gain_leaves_everything_as_it_was() -> None:
    """Both want the same place: what one gains the other loses."""
    asked = problem(1, 1, 0, edges=[(0, 2), (1, 2)], placed={2: {7: 1}}, on=nodes([1, 0, 0, 0, 0, 0, 1, 0]))
    draft = Draft(books_of(asked))
    draft.put(0, 0)
    draft.put(1, 6)
    free = draft.books.free.copy()
    assert finish(swaps(draft, UNLIMITED, [0, 1], [0, 1], Wishes(draft.books))) == set()
    assert state_of(draft.books)[:2] == [(0,), (6,)]
    assert np.array_equal(draft.books.free, free)
