"""Pods that mind their neighbours change places: never for the worse, where no pod can move by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.small import small_problem
from berth.scheduling.gang.budget import UNLIMITED, Budget
from berth.scheduling.planning import finish
from berth.scheduling.replicas.problem import Prices
from berth.scheduling.replicas.search import exchange
from berth.scheduling.replicas.search.draft import Draft
from berth.scheduling.replicas.search.exchange import exchanges
from berth.scheduling.replicas.search.improve import improve
from berth.scheduling.replicas.search.wishes import Wishes
from tests.support.counts import books_of, filled, nodes, problem
from tests.support.sharing import shared


def full() -> Draft:
    """Two D on one full node of a socket, two A on another one, and no room elsewhere."""
    asked = problem(1, 1, 1, 1, on=nodes((2, 2, 0, 0, 0, 0, 0, 0)), prices=Prices(survive_node=0, survive_zone=0))
    draft = Draft(books_of(shared(asked, "DDAA", sockets=1)))
    for row, column in enumerate((0, 0, 1, 1)):
        draft.put(row, column)
    return draft


def test_two_pods_change_places_where_both_nodes_are_full() -> None:
    draft = full()
    before = draft.books.value()
    moved = finish(exchanges(draft, UNLIMITED, range(4), Wishes(draft.books)))
    assert draft.books.value() < before - 10
    assert len(moved) == 2
    assert draft.books.planned[:2, 0].sum() == draft.books.planned[2:, 0].sum() == 1


def test_an_improved_plan_has_had_its_exchanges() -> None:
    draft = full()
    finish(improve(draft, UNLIMITED, range(4)))
    assert draft.books.planned[:2, 0].sum() == 1


@pytest.mark.parametrize("why", ["no time", "too many"])
def test_otherwise_nobody_moves(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = full()
    if why == "too many":
        monkeypatch.setattr(exchange, "MOST", 3)
    budget = Budget(lambda: 1.0, 0.0) if why == "no time" else UNLIMITED
    assert finish(exchanges(draft, budget, range(4), Wishes(draft.books))) == set()
    assert draft.books.planned[:2, 0].sum() == 2


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_a_plan_gets_no_worse_and_loses_nobody(seed: int) -> None:
    rng, asked = np.random.default_rng(seed), small_problem(seed)
    draft = filled(shared(asked, rng.choice(list("ABCD "), len(asked.pod_sets)).tolist()), rng)
    books = draft.books
    before, placed, room = books.value(), books.planned.sum(axis=1).tolist(), books.free.min()
    finish(exchanges(draft, UNLIMITED, range(len(placed)), Wishes(books)))
    assert books.value() <= before + 1e-9 * books.model.penalty
    assert books.planned.sum(axis=1).tolist() == placed
    assert (books.planned >= 0).all()
    assert books.free.min() >= min(0, room)
