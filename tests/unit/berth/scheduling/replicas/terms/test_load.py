"""Load of endpoints, by every way of routing, beside the judge's loops over pods."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.cases import boutique, cluster
from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from tests.support.counts import books_of, nodes, problem, state_of, walk


@pytest.mark.parametrize("routing", list(Routing), ids=lambda routing: routing.value)
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_the_load_is_that_of_the_calls(routing: Routing, seed: int) -> None:
    asked = small_problem(seed)
    asked = replace(asked, rules=(), workloads=[replace(workload, routing=routing) for workload in asked.workloads])
    books = books_of(asked)
    walk(books, np.random.default_rng(seed), 8)
    state = state_of(books)
    expected = sum(part.value(state) for part in Judge(asked).parts if part.name == "load")
    assert sum(map(books.load.value, range(len(asked.workloads)))) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("routing", "callers", "load"),
    [
        pytest.param(Routing.ALL, [0, 0], 0.0, id="all endpoints alike"),
        pytest.param(Routing.SAME_ZONE, [0, 4], 0.0, id="a caller in each zone"),
        pytest.param(Routing.SAME_ZONE, [0, 1], 1.0, id="both in one zone"),
        pytest.param(Routing.SAME_ZONE, [2, 2], 0.0, id="in another zone, all are called"),
        pytest.param(Routing.SAME_NODE, [0, 4], 0.0, id="a caller on each node"),
        pytest.param(Routing.LOCAL, [0, 2], 1.0, id="one call arrives"),
        pytest.param(Routing.LOCAL, [1, 2], 0.0, id="none arrives"),
    ],
)
def test_two_endpoints_in_two_zones(routing: Routing, callers: list[int], load: float) -> None:
    books = books_of(problem(2, 2, edges=[(0, 1)], routing=routing))
    books.change([*((0, node, 1) for node in callers), (1, 0, 1), (1, 4, 1)])
    assert books.load.value(1) == pytest.approx(5.0 * load)


@pytest.mark.parametrize(
    ("names", "load"),
    [
        pytest.param([0, 1, 2, 3], 0.25, id="three quarters of the calls in one zone"),
        pytest.param([0, 1, 0, 3], 0.0, id="one zone: all call both"),
        pytest.param([0, 1, 0, 0], 0.0, id="one zone with a place without pods"),
        pytest.param([0, 1, -1, 3], 0.0, id="one without a zone: all call both"),
    ],
)
def test_three_callers_and_one_in_two_places_with_an_endpoint_each(names: list[int], load: float) -> None:
    books = books_of(problem(4, 2, edges=[(0, 1)], routing=Routing.SAME_ZONE, on=nodes(service_zone=np.array(names))))
    books.change([(0, 0, 3), (0, 5, 1), (1, 1, 1), (1, 4, 1)])
    assert books.load.value(1) == pytest.approx(5.0 * load)


def test_an_endpoint_alone_in_a_zone_that_two_regions_have_gets_the_calls_of_both() -> None:
    on = nodes(service_zone=np.array([0, 1, 0, 3]))
    books = books_of(problem(4, 2, edges=[(0, 1)], routing=Routing.SAME_ZONE, on=on))
    books.change([(0, 0, 1), (0, 4, 2), (0, 2, 1), (1, 1, 1), (1, 3, 1)])
    assert books.load.value(1) == pytest.approx(5.0 * (2 * (0.75**2 + 0.25**2) - 1))


def lines_of_changes(zones: int) -> int:
    """Lines that run when each workload of Online Boutique in two of so many zones asks what one more pod changes."""
    books = books_of(boutique(3, nodes=cluster(zones, zones), routing=Routing.SAME_ZONE))
    books.change([(row, column, count) for row in range(11) for column, count in ((0, 2), (1, 1))])
    lines = 0

    def trace(frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal lines
        if "replicas" not in frame.f_code.co_filename:
            return None  # what the garbage collector calls
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for workload in range(11):
            books.load.add(workload)
    finally:
        sys.settrace(before)
    return lines


def test_zones_without_calls_and_endpoints_are_not_looked_at() -> None:
    assert lines_of_changes(400) == lines_of_changes(4)
