"""Paths by matrix: the same costs as by Dijkstra's algorithm, and which graphs are taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.networktopology import dijkstra, floyd_warshall
from controllers.networktopology.algorithms import cheapest_paths
from controllers.networktopology.floyd_warshall import FEWEST_PLACES, MOST_PLACES
from controllers.networktopology.graph import CostGraph

PLACES = [f"z{number:03}" for number in range(40)]
PAIRS = st.tuples(st.sampled_from(PLACES), st.sampled_from(PLACES))
LINKS = st.one_of(
    [
        st.dictionaries(PAIRS, st.integers(0, greatest), min_size=1, max_size=600)
        for greatest in (2**10, 2**30 // len(PLACES), 2**40)
    ]
)


def mesh(places: int, cost: int = 7) -> CostGraph:
    names = [f"z{number:04}" for number in range(places)]
    return CostGraph({(a, b): cost for a in names for b in names if a != b})


@given(links=LINKS)
def test_any_graph_has_the_costs_that_dijkstra_finds(links: dict[tuple[str, str], int]) -> None:
    graph = CostGraph(links)
    expected = list(dijkstra.all_pairs(graph))
    assert list(floyd_warshall.all_pairs(graph)) == expected
    assert list(cheapest_paths(graph)) == expected


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        pytest.param(CostGraph({}), False, id="empty"),
        pytest.param(mesh(FEWEST_PLACES - 1), False, id="small"),
        pytest.param(mesh(FEWEST_PLACES), True, id="dense"),
        pytest.param(mesh(MOST_PLACES + 1), False, id="large"),
        pytest.param(CostGraph({(f"a{n}", f"a{n + 1}"): 1 for n in range(100)}), True, id="sparse"),
        pytest.param(mesh(FEWEST_PLACES, 2**61 // FEWEST_PLACES), False, id="costs that a sum could overflow"),
        pytest.param(mesh(FEWEST_PLACES, 2**61 // FEWEST_PLACES - 1), True, id="large costs"),
    ],
)
def test_suits(graph: CostGraph, expected: bool) -> None:
    assert floyd_warshall.suits(graph) == expected


def test_graphs_are_not_left_to_an_algorithm_that_takes_twenty_times_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(_: CostGraph) -> None:
        raise AssertionError("taken step by step")

    monkeypatch.setattr(dijkstra, "all_pairs", never)
    assert len(dict(cheapest_paths(mesh(200)))) == 200
