"""Which pods a plan gives the nodes that are worth keeping: who stays when every workload shrinks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.cases import boutique, cluster
from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.gang.budget import UNLIMITED, Budget
from berth.scheduling.planning import finish
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.lasting import MOST, lasting_first
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.plan import plan
from berth.scheduling.replicas.problem import Problem
from berth.scheduling.replicas.search.draft import Draft
from tests.support.counts import books_of, problem


def planned(asked: Problem) -> Draft:
    draft = Draft(Books(Model(asked, np.arange(asked.nodes.size))))
    for row, counts in enumerate(finish(plan(asked, partial=True)).counts):
        for node, count in counts.items():
            draft.put(row, node, count)
    return draft


def shrunk(asked: Problem, order: list[list[int]], replicas: int) -> float:
    """The objective with so many pods of every set, on the first of its columns."""
    books = Books(Model(asked, np.arange(asked.nodes.size)))
    for row, columns in enumerate(order):
        for column in columns[:replicas]:
            books.insert(row, column)
    return books.value()


@pytest.mark.parametrize("routing", [Routing.ALL, Routing.SAME_ZONE, Routing.SAME_NODE])
@pytest.mark.parametrize("cpu", [1000, 4000])
def test_an_application_that_shrinks_is_as_good_as_one_from_scratch(routing: Routing, cpu: int) -> None:
    """Required anti-affinity by host: every node has one replica, so that three different ones may go."""
    asked = boutique(3, nodes=cluster(24, 4, cpu=cpu), routing=routing, rule="required", limits=False)
    scratch = finish(plan(boutique(2, nodes=asked.nodes, routing=routing, rule="required", limits=False)))
    assert shrunk(asked, finish(lasting_first(planned(asked), UNLIMITED)), 2) <= 1.2 * scratch.objective + 1e-9


def test_the_nodes_that_go_first_are_those_of_the_worst_rest() -> None:
    """Two of three nodes stay, the same of every set: no other two are better."""
    asked = boutique(3, routing=Routing.SAME_ZONE, rule="required")
    order = finish(lasting_first(planned(asked), UNLIMITED))
    nodes = order[0]
    assert all(columns == nodes for columns in order)
    rest = [shrunk(asked, [list(pair)] * len(order), 2) for pair in itertools.combinations(nodes, 2)]
    assert shrunk(asked, order, 2) == pytest.approx(min(rest))


def test_a_location_is_left_as_a_whole() -> None:
    """Both share a node in one zone and are on two in another: neither of these two can go before the other."""
    draft = Draft(books_of(problem(2, 2, edges=[(0, 1)], routing=Routing.SAME_ZONE)))
    for row, column in ((0, 0), (0, 2), (1, 0), (1, 3)):
        draft.put(row, column)
    assert finish(lasting_first(draft, UNLIMITED)) == [[0, 2], [0, 3]]


def test_pods_that_share_a_node_go_before_others() -> None:
    """Two of three pods are on the second node: it is worth no more than others."""
    draft = Draft(books_of(problem(3, 1, edges=[(0, 1)])))
    draft.put(0, 0)
    draft.put(0, 1, 2)
    draft.put(1, 0)
    assert finish(lasting_first(draft, UNLIMITED)) == [[0, 1], [0]]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10_000))
def test_the_draft_stays_as_it_was(seed: int) -> None:
    draft = planned(small_problem(seed))
    before, value, missing = draft.books.planned.copy(), draft.books.value(), list(draft.missing)
    order = finish(lasting_first(draft, UNLIMITED))
    assert (draft.books.planned == before).all()
    assert draft.books.value() == pytest.approx(value)
    assert draft.missing == missing
    assert [sorted(columns) for columns in order] == [np.flatnonzero(counts).tolist() for counts in before]


@pytest.mark.parametrize(
    ("routing", "order"),
    [
        pytest.param(Routing.SAME_ZONE, [0, 1, 4, 5, 8, 9, 12, 13, 16], id="zones in turns: what is left survives one"),
        pytest.param(Routing.ALL, [0, 4, 8, 12, 16, 1, 5, 9, 13], id="zone by zone: what is left is near each other"),
    ],
)
def test_of_many_nodes_those_come_first_two_of_which_are_worth_most(routing: Routing, order: list[int]) -> None:
    asked = boutique(9, nodes=cluster(24, 4), routing=routing)
    rows, places = range(len(asked.pod_sets)), len(order) + 2  # and two zones
    assert len(rows) * places * (places + 1) // 2 > MOST
    draft = Draft(Books(Model(asked, np.arange(24))))
    for row, column in itertools.product(rows, order):
        draft.put(row, column)
    before = draft.books.planned.copy()
    assert finish(lasting_first(draft, UNLIMITED)) == [order] * len(rows)
    assert (draft.books.planned == before).all()
    assert not any(draft.missing)


def test_two_are_left_in_one_zone_where_that_is_better_than_one_in_each_of_two() -> None:
    """To empty one node after another, the alone one in its zone last, would end with one in each."""
    asked = boutique(6, nodes=cluster(24, 4), routing=Routing.ALL, rule="required")
    alone, others = 0, [1, 5, 9, 13, 17]
    rows, places = range(len(asked.pod_sets)), 1 + len(others) + 1  # and a zone
    assert len(rows) * places * (places + 1) // 2 <= MOST
    draft = Draft(Books(Model(asked, np.arange(24))))
    for row, column in itertools.product(rows, [alone, *others]):
        draft.put(row, column)
    for order in finish(lasting_first(draft, UNLIMITED)):
        assert order[-1] == alone
        assert sorted(order) == [alone, *others]


def test_the_last_pods_of_all_sets_share_a_node_where_some_have_none_on_the_first() -> None:
    asked = boutique(9, nodes=cluster(24, 4), routing=Routing.ALL)
    of_all, rows = [4, 8, 12, 16, 1, 5, 9, 13], range(len(asked.pod_sets))
    draft = Draft(Books(Model(asked, np.arange(24))))
    for row, column in itertools.product(rows, of_all):
        draft.put(row, column)
    for row in rows:
        draft.put(row, 20 if row % 2 else 0)
    order = finish(lasting_first(draft, UNLIMITED))
    assert {columns[0] for columns in order} == {4}


def later(looks: int) -> Budget:
    """Time that is over after so many looks at the clock."""
    times = itertools.count()
    return Budget(lambda: float(next(times)), looks)


@pytest.mark.parametrize(("why", "looks"), [("late", 0), ("late on the way", 10)])
def test_where_time_is_over_columns_are_in_their_order(why: str, looks: int) -> None:
    asked = boutique(3, rule="required")
    draft = Draft(Books(Model(asked, np.arange(24))))
    for row in range(len(asked.pod_sets)):
        for column in (8, 1, 9):
            draft.put(row, column)
    budget = later(looks)
    assert budget.over is (why == "late")
    before = draft.books.planned.copy()
    order = finish(lasting_first(draft, budget))
    assert order == [[1, 8, 9]] * len(asked.pod_sets)
    assert order != finish(lasting_first(draft, UNLIMITED))
    assert (draft.books.planned == before).all()
