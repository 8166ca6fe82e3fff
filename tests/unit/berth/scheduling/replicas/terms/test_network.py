"""What calls cost, by every way of routing, beside the judge's loops over pods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.replicas.terms.network import MANY, carried
from tests.support.counts import books_of, nodes, problem, state_of, walk


@pytest.mark.parametrize("routing", list(Routing), ids=lambda routing: routing.value)
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_edges_cost_what_their_calls_cost(routing: Routing, seed: int) -> None:
    asked = small_problem(seed)
    asked = replace(
        asked,
        rules=(),
        workloads=[replace(workload, routing=routing) for workload in asked.workloads],
        edges=[replace(edge, max_cost=np.inf) for edge in asked.edges],
    )
    books = books_of(asked)
    walk(books, np.random.default_rng(seed), 8)
    state = state_of(books)
    expected = [part.value(state) for part in Judge(asked).parts if part.name == "network"]
    found = [
        books.network.edge_value(edge.caller, number)
        for edge, number in zip(asked.edges, books.model.target_of, strict=True)
    ]
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("routing", "cost"),
    [
        pytest.param(Routing.ALL, (0 + 1 + 5 + 80) / 4, id="all endpoints"),
        pytest.param(Routing.SAME_ZONE, 0.95 * 0.5 + 0.05 * 21.5, id="those of the zone"),
        pytest.param(Routing.SAME_NODE, 0.05 * 21.5, id="the one on the node"),
        pytest.param(Routing.LOCAL, 0.05 * 21.5, id="nothing but the one on the node"),
    ],
)
def test_a_caller_beside_one_of_four_endpoints(routing: Routing, cost: float) -> None:
    books = books_of(problem(1, 4, edges=[(0, 1)], routing=routing))
    books.change([(0, 0, 1), (1, 0, 1), (1, 1, 1), (1, 2, 1), (1, 4, 1)])
    assert books.network.edge_value(0, 0) == pytest.approx(cost)


@pytest.mark.parametrize(
    ("names", "cost"),
    [
        pytest.param([0, 1, 2, 3], 0.95 * (5 + 80) / 2 + 0.05 * 42.5, id="none in the zone: all"),
        pytest.param([0, 1, 0, 3], 0.95 * 80 + 0.05 * 42.5, id="one in a far zone of the same name"),
        pytest.param([0, 0, 0, 3], 0.95 * (5 + 80) / 2 + 0.05 * 42.5, id="both in zones of the same name"),
        pytest.param([0, 0, 2, 3], 0.95 * 5 + 0.05 * 42.5, id="one in a near zone of the same name"),
        pytest.param([0, 0, -1, 3], 0.95 * (5 + 80) / 2 + 0.05 * 42.5, id="one without a zone: all"),
        pytest.param([-1, -1, -1, -1], 0.95 * (5 + 80) / 2 + 0.05 * 42.5, id="no zones"),
    ],
)
@pytest.mark.parametrize("routing", [Routing.SAME_ZONE, Routing.SAME_NODE], ids=lambda routing: routing.value)
def test_zones_of_one_name_in_several_regions_are_one_zone(names: list[int], cost: float, routing: Routing) -> None:
    on = nodes(service_zone=np.array(names))
    books = books_of(problem(1, 2, edges=[(0, 1)], routing=routing, on=on))
    books.change([(0, 0, 1), (1, 2, 1), (1, 4, 1)])
    assert books.network.edge_value(0, 0) == pytest.approx(cost)


@pytest.mark.parametrize("shape", [(4,), (MANY,), (MANY + 20,), (3, MANY)], ids=str)
@pytest.mark.parametrize("share", [0.0, 0.03, 1.0], ids=["nobody", "few", "all"])
def test_amounts_cost_from_every_location_what_each_of_them_costs(shape: tuple[int, ...], share: float) -> None:
    rng = np.random.default_rng(0)
    cost = rng.integers(0, 100, (shape[-1], shape[-1])).astype(np.float64)
    amounts = rng.integers(1, 9, shape) * (rng.random(shape) < share)
    found = carried(cost, amounts.astype(np.float64))
    assert found.shape == shape
    assert found.tolist() == np.einsum("lm,...m->...l", cost, amounts).tolist()


def test_locations_without_anybody_are_not_multiplied() -> None:
    """A cost that is no number would be seen."""
    cost, amounts = np.full((MANY, MANY), np.nan), np.zeros(MANY)
    cost[:, 7], amounts[7] = np.arange(MANY), 2.0
    assert carried(cost, amounts).tolist() == (2.0 * np.arange(MANY)).tolist()
