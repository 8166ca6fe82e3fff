"""Relocation: its costs are changes of the objective, and it never makes a plan dearer or breaks a rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from berth.scheduling.gang import Application, Infrastructure
from berth.scheduling.gang.budget import finish
from berth.scheduling.gang.local_search.relocation import relocate, relocation_cost, relocation_costs
from berth.scheduling.gang.search_state import INFEASIBLE
from tests.support.gang import app, nodes
from tests.support.gang_problems import problems
from tests.support.gang_search import cost, feasible, filled, opened

SOME = settings(max_examples=50, deadline=None, derandomize=True)


@SOME
@given(problem=problems(), data=st.data())
def test_costs_are_changes_of_the_objective(problem: tuple[Infrastructure, Application], data: st.DataObject) -> None:
    search = opened(*problem)
    placed = filled(search)
    assume(placed)
    home = int(search.where[data.draw(st.sampled_from(placed))])
    there = [component for component in placed if search.where[component] == home]
    members = np.array(data.draw(st.lists(st.sampled_from(there), min_size=1, unique=True)))
    block = np.zeros((1, search.where.size))
    block[0, members] = 1.0
    changes = relocation_costs(search, block, np.array([home]))[0]
    assert changes == pytest.approx(relocation_cost(search, members, home), abs=1e-6)
    before = search.nodes()
    assert changes[home] >= INFEASIBLE / 2
    for column in np.flatnonzero(changes < INFEASIBLE / 2).tolist():
        after = before.copy()
        after[members] = search.columns[column]
        assert changes[column] == pytest.approx(cost(search, after) - cost(search, before), abs=1e-6)
        assert feasible(search, after) or search.paths is not None


def test_two_components_together_escape_what_single_ones_cannot() -> None:
    # Apart they pay 40 for the edge, together they save 2 each on the second node.
    infrastructure = nodes(4, 4, price=[[2.0, 0.0], [1.0, 0.0]], bandwidth_price=10.0)
    search = opened(infrastructure, app(2, 2, edges=[(0, 1)], bandwidth=2.0))
    search.place(0, 0)
    search.place(1, 0)
    single = relocation_costs(search, np.eye(2), search.where[:2])
    assert single.min() > 0
    assert finish(relocate(search)) == -4.0
    assert search.nodes().tolist() == [1, 1]
