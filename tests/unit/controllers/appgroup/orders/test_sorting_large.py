"""Ten thousand workloads in the shapes that break recursive and quadratic implementations."""

from __future__ import annotations

import sys

import pytest

from berth.api.appgroup import SortingAlgorithm
from controllers.appgroup.orders import DependencyGraph, sort_workloads
from tests.unit.controllers.appgroup import graphs

SIZE = 10_000

SHAPES = {
    "chain": graphs.chain(SIZE),
    "star": graphs.star(SIZE),
    "funnel": graphs.funnel(SIZE),
    "ring": graphs.ring(SIZE),
    "no edges": DependencyGraph.of([[]] * SIZE),
    "random acyclic": graphs.random_acyclic(SIZE, degree=5, seed=1),
    "random": graphs.random_graph(SIZE, degree=2, seed=2),
}


@pytest.mark.parametrize("algorithm", list(SortingAlgorithm))
@pytest.mark.parametrize("shape", list(SHAPES))
def test_ten_thousand_workloads(shape: str, algorithm: SortingAlgorithm) -> None:
    assert sys.getrecursionlimit() < SIZE
    graph = SHAPES[shape]
    ordering = sort_workloads(graph, algorithm)
    assert sorted(ordering.order) == list(range(SIZE))
    if not ordering.cycles and algorithm in (SortingAlgorithm.KAHN_SORT, SortingAlgorithm.TARJAN_SORT):
        assert graphs.respects(graph, ordering.order)


@pytest.mark.parametrize(
    ("shape", "cycles"),
    [pytest.param("chain", 0, id="chain"), pytest.param("ring", 1, id="ring"), pytest.param("star", 0, id="star")],
)
def test_number_of_cycles(shape: str, cycles: int) -> None:
    assert len(sort_workloads(SHAPES[shape], SortingAlgorithm.KAHN_SORT).cycles) == cycles


def test_the_cycle_of_a_ring_goes_all_the_way_round() -> None:
    (cycle,) = sort_workloads(SHAPES["ring"], SortingAlgorithm.TARJAN_SORT).cycles
    assert cycle == (*range(SIZE), 0)
