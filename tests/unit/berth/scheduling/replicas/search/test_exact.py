"""Exact search beside brute force: the optimum where there is one, and a draft that is as good as it was if not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench.replicas_core.brute import TooLargeError, best
from bench.replicas_core.cases import boutique, cluster
from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.gang.budget import UNLIMITED, Budget
from berth.scheduling.planning import finish
from berth.scheduling.replicas.hard import keeps_rules
from berth.scheduling.replicas.problem import Edge
from berth.scheduling.replicas.rule import AntiAffinity
from berth.scheduling.replicas.search.draft import Draft
from berth.scheduling.replicas.search.exact import Exact, unpunished, without_room
from tests.support.counts import HOST, books_of, filled, nodes, problem, state_of

STEPS = 20_000


def optimum(seed: int) -> float | None:
    """None where no placement exists; not a number where brute force gives up."""
    try:
        lowest, state = best(small_problem(seed), limit=20_000)
    except TooLargeError:
        return float("nan")
    return None if state is None else lowest


@pytest.mark.parametrize("seed", range(300, 340))
def test_from_an_empty_draft_the_optimum_is_found_and_proved(seed: int) -> None:
    asked, lowest = small_problem(seed), optimum(seed)
    if lowest != lowest:
        pytest.skip("too large for brute force")
    draft = Draft(books_of(asked))
    search = Exact(draft, UNLIMITED, STEPS)
    searched = finish(search.run())
    if lowest is None:
        assert search.best is None
        assert not draft.books.planned.any()
        return
    assert searched
    assert search.proved
    assert search.lowest == pytest.approx(lowest, rel=1e-9, abs=1e-6)
    assert Judge(asked).objective(state_of(draft.books)) == pytest.approx(lowest, rel=1e-9, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), steps=st.integers(0, 60), looks=st.integers(1, 40))
@example(seed=159, steps=4, looks=2)  # placed pods call each other beyond a limit
def test_however_soon_it_ends_a_plan_gets_no_worse(seed: int, steps: int, looks: int) -> None:
    draft = filled(small_problem(seed), np.random.default_rng(seed))
    rows = range(len(draft.missing))
    before, planned = unpunished(draft.books), draft.snapshot(rows)
    whole = not any(draft.missing) and keeps_rules(draft.books)
    clock = count()
    search = Exact(draft, Budget(lambda: float(next(clock)), float(looks)), steps)
    finish(search.run())
    if search.best is None:
        assert not whole
        assert np.array_equal(draft.books.planned, planned)
        assert draft.missing == [max(0, r - int(p.sum())) for r, p in zip(draft.model.replicas, planned, strict=True)]
        return
    assert not any(draft.missing)
    assert keeps_rules(draft.books)
    assert unpunished(draft.books) == pytest.approx(search.lowest, rel=1e-9, abs=1e-6)
    if whole:
        assert search.lowest <= before + 1e-9


def test_the_optimum_is_not_beaten() -> None:
    draft = Draft(books_of(problem(2, 2, edges=[(0, 1)])))
    for row in (0, 1):
        for node in (0, 1):
            draft.put(row, node)
    planned = draft.snapshot([0, 1])
    search = Exact(draft, UNLIMITED, STEPS)
    assert finish(search.run())
    assert search.proved
    # One zone for 0.5 and two prices of 1 for what dies with it.
    assert search.lowest == pytest.approx(2.5)
    assert np.array_equal(draft.books.planned, planned)


@pytest.mark.parametrize(
    "draft",
    [
        pytest.param(lambda: Draft(books_of(boutique(20))), id="pods times columns"),
        pytest.param(lambda: Draft(books_of(problem(5, 1))), id="ways to place one workload"),
    ],
)
def test_what_is_too_large_is_left_as_it_is(draft: Callable[[], Draft]) -> None:
    made = draft()
    made.put(0, 3)
    planned = made.books.planned.copy()
    assert not finish(Exact(made, UNLIMITED, STEPS).run())
    assert np.array_equal(made.books.planned, planned)


@pytest.mark.parametrize("old", [pytest.param(0, id="a caller"), pytest.param(1, id="an endpoint")])
def test_limits_of_what_goes_later_are_kept(old: int) -> None:
    """Both would be cheapest beside what the second of them calls, in the other region."""
    calls = [Edge(caller=0, callee=1, max_cost=5.0), Edge(caller=1, callee=2)]
    asked = problem(1, 1, 0, edges=calls, placed={2: {7: 1}})
    workloads = [replace(one, leaving={0: 1} if number == old else {}) for number, one in enumerate(asked.workloads)]
    draft = Draft(books_of(replace(asked, workloads=workloads)))
    search = Exact(draft, UNLIMITED, STEPS)
    assert finish(search.run())
    assert search.best is not None
    assert keeps_rules(draft.books)


def test_where_no_placement_exists_that_is_proved() -> None:
    draft = Draft(books_of(problem(3, 3, on=nodes([2, 1, 1, 1, 0, 0, 0, 0]))))
    search = Exact(draft, UNLIMITED, STEPS)
    assert finish(search.run())
    assert search.proved
    assert search.best is None


def test_without_steps_nothing_is_proved() -> None:
    search = Exact(Draft(books_of(problem(2, 2, edges=[(0, 1)]))), UNLIMITED, 0)
    assert finish(search.run())
    assert not search.proved
    assert search.best is None


@pytest.mark.parametrize("weight", [pytest.param(None, id="one-port-for-all"), pytest.param(100, id="rather-apart")])
def test_a_rule_among_three_workloads_ends_branches_with_the_second(weight: int | None) -> None:
    """Eight pods on eight nodes: of ways to place all three there are 970,000."""
    rule = AntiAffinity(domain=HOST, subjects=[0, 1, 2], selects=[0, 1, 2], weight=weight)
    draft = Draft(books_of(problem(3, 3, 2, edges=[(0, 1), (1, 2)], rules=[rule])))
    search = Exact(draft, UNLIMITED, 2_000)
    finish(search.run())
    assert search.proved
    assert draft.missing == [0, 0, 0]


@pytest.mark.parametrize(
    ("nodes", "routing", "rule"),
    [
        pytest.param(12, Routing.ALL, "none", id="all-endpoints"),
        pytest.param(12, Routing.ALL, "default", id="default-spreading"),
        pytest.param(12, Routing.SAME_ZONE, "required", id="one-on-a-node"),
        pytest.param(9, Routing.ALL, "none", id="nine-nodes"),
    ],
)
def test_nodes_that_are_alike_are_tried_once(nodes: int, routing: Routing, rule: str) -> None:
    """Online Boutique on a small cluster: 33 pods took 2,500 to 17,000 steps, beyond the time of a plan."""
    draft = Draft(books_of(boutique(3, nodes=cluster(nodes, 2), routing=routing, rule=rule, limits=False)))
    search = Exact(draft, UNLIMITED, 1_000)
    finish(search.run())
    assert search.proved
    assert not any(draft.missing)


@pytest.mark.parametrize(
    ("replicas", "free", "without"),
    [
        pytest.param([2, 1], [1, 1, 1, 0], False, id="just-enough"),
        pytest.param([2, 2], [1, 1, 1, 0], True, id="too-little"),
        pytest.param([2], [-9, 1, 1, 0], False, id="beside-an-overfull-node"),
        pytest.param([0], [-9, 0, 0, 0], False, id="for-nobody"),
    ],
)
def test_where_nodes_have_no_room_for_all(replicas: list[int], free: list[int], *, without: bool) -> None:
    assert without_room(books_of(problem(*replicas, on=nodes([*free, 0, 0, 0, 0]))).model) is without
