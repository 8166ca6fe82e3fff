"""The next best nodes of a plan: what they say is what the objective does, and large plans look at some only."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.cases import boutique
from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.gang.budget import UNLIMITED, Budget
from berth.scheduling.planning import finish
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.hard import keeps_rules
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.plan import plan
from berth.scheduling.replicas.problem import Problem
from berth.scheduling.replicas.runner_ups import ALTERNATIVES, MOST, runner_ups


def planned(problem: Problem) -> Books:
    """Books over all nodes with a plan of the problem in them."""
    books = Books(Model(problem, np.arange(problem.nodes.size)))
    for row, counts in enumerate(finish(plan(problem, partial=True)).counts):
        for node, count in counts.items():
            books.insert(row, node, count)
    return books


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10_000))
def test_a_runner_up_is_the_difference_of_whole_objectives(seed: int) -> None:
    books = planned(small_problem(seed))
    if not keeps_rules(books):
        return
    scale = 1e-9 * books.model.penalty
    for (row, node), options in finish(runner_ups(books, UNLIMITED)).items():
        assert len(options) <= ALTERNATIVES
        before, gains = books.value(), []
        for option in options:
            assert option.node != node
            charge = books.model.charge[row]
            charged = 0.0 if charge is None else float(charge[option.node] - charge[node])
            books.move(row, node, option.node)
            gains.append(sum(option.changes.values()) + charged)
            assert books.value() - before == pytest.approx(gains[-1], abs=scale, rel=1e-9)
            assert keeps_rules(books)
            books.move(row, option.node, node)
        assert gains == sorted(gains)
        best, able = books.wishes(row, node)
        able[node] = False
        best[~able | (best >= books.model.penalty * 1e-3)] = np.inf
        assert len(options) == min(ALTERNATIVES, int(np.isfinite(best).sum()))
        if options:
            assert gains[0] == pytest.approx(best.min(), abs=scale, rel=1e-9)


def test_every_pod_of_an_application_has_some() -> None:
    answer = finish(plan(boutique(routing=Routing.SAME_ZONE)))
    places = {(row, node) for row, counts in enumerate(answer.counts) for node in counts}
    assert set(answer.runner_ups) == places
    assert all(len(options) == ALTERNATIVES for options in answer.runner_ups.values())


def test_leaving_the_nodes_of_the_others_costs_more_and_the_term_says_why() -> None:
    answer = finish(plan(boutique()))
    for options in answer.runner_ups.values():
        for option in options:
            assert sum(option.changes.values()) >= -1e-9
    assert any(option.changes["network"] > 0 for options in answer.runner_ups.values() for option in options)


def test_of_a_large_plan_every_set_comes_before_the_second_node_of_one() -> None:
    problem = boutique(9, rule="required")
    books = planned(problem)
    found = finish(runner_ups(books, UNLIMITED))
    assert len(found) == MOST
    per_set = [sum(1 for row, _ in found if row == number) for number in range(11)]
    assert max(per_set) - min(per_set) <= 1


def test_a_plan_that_was_cut_short_has_none() -> None:
    books = planned(boutique())
    over = Budget(iter([0.0, 9.0]).__next__, 1.0)
    assert over.over
    assert finish(runner_ups(books, over)) == {}


def test_the_time_ends_them_on_the_way() -> None:
    """Each of thousands of rules takes its time, for each pod set."""
    books = planned(boutique())
    times = itertools.count()
    found = finish(runner_ups(books, Budget(lambda: float(next(times)), 10.0)))
    assert 0 < len(found) < len(finish(runner_ups(books, UNLIMITED)))
