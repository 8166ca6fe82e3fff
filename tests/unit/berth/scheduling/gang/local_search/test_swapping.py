"""Swaps, in turns with relocation: they mend what relocation cannot, cost nothing and keep every rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from berth.scheduling.gang import Application, Infrastructure
from berth.scheduling.gang.budget import finish
from berth.scheduling.gang.local_search.relocation import relocate, relocation_costs
from berth.scheduling.gang.local_search.swapping import swap
from berth.scheduling.gang.search_state import INFEASIBLE
from tests.support.gang import app, boutique, zoned
from tests.support.gang_problems import problems
from tests.support.gang_search import cost, feasible, filled, opened

SOME = settings(max_examples=50, deadline=None, derandomize=True)


@SOME
@given(problem=problems())
def test_no_plan_becomes_dearer_or_breaks_a_rule(problem: tuple[Infrastructure, Application]) -> None:
    search = opened(*problem)
    if not filled(search):
        return
    before = cost(search, search.nodes())
    gained = finish(relocate(search)) + finish(swap(search))
    assert gained <= 1e-9
    assert cost(search, search.nodes()) == pytest.approx(before + gained, abs=1e-6)
    assert feasible(search, search.nodes())


def test_a_swap_mends_crossed_edges_on_full_nodes() -> None:
    search = opened(zoned(1, 2), app(1, 1, 1, 1, edges=[(0, 1), (2, 3)]))
    for component, column in enumerate([0, 2, 0, 2]):
        search.place(component, column)
    full = np.array([[1.0, 0, 0, 0]])
    search.spare[:, [1, 3]] = 0.0
    assert relocation_costs(search, full, np.array([0]))[0].min() >= INFEASIBLE / 2
    assert finish(swap(search)) == -40.0
    where = search.nodes().tolist()
    assert where[0] == where[1]
    assert where[2] == where[3]


def test_large_applications_come_to_an_end() -> None:
    search = opened(zoned(6, 900), boutique(5))
    placed = filled(search)
    assert len(placed) == 55
    before = cost(search, search.nodes())
    gained = finish(relocate(search)) + finish(swap(search))
    assert gained < 0
    assert cost(search, search.nodes()) == pytest.approx(before + gained)
    assert feasible(search, search.nodes())
