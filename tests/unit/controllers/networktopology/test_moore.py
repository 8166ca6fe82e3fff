"""Paths of many origins at once: the same costs as by Dijkstra's algorithm, in bounded memory and time."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.networktopology import algorithms, dijkstra, floyd_warshall, graph, moore
from controllers.networktopology.algorithms import PathAlgorithm, cheapest_paths
from controllers.networktopology.cost_matrix import Costs, filled
from controllers.networktopology.graph import CostGraph, TooManyPlacesError

NAMES = [f"z{number:04}" for number in range(1200)]
PAIRS = st.tuples(st.sampled_from(NAMES[:40]), st.sampled_from(NAMES[:40]))
LINKS = st.one_of(
    [st.dictionaries(PAIRS, st.integers(0, greatest), max_size=200) for greatest in (3, 2**10, 2**40, 2**61 // 41)]
)


def sparse(places: int, *, seed: int) -> CostGraph:
    """Some four links a place, so that paths have many of them, and some places are not reached."""
    draw = random.Random(seed)
    pairs = (draw.sample(NAMES[:places], 2) for _ in range(4 * places))
    return CostGraph({(one, other): draw.randint(0, 10_000) for one, other in pairs})


@given(links=LINKS, at_once=st.sampled_from([1, 7, 40]))
def test_any_graph_has_the_costs_that_dijkstra_finds(links: dict[tuple[str, str], int], at_once: int) -> None:
    stated = CostGraph(links)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moore, "CELLS", at_once * max(1, len(stated.places)))
        assert list(moore.all_pairs(stated)) == list(dijkstra.all_pairs(stated))


@pytest.mark.parametrize("places", [99, 100, 501], ids=str)
def test_graphs_of_any_size_have_the_costs_that_dijkstra_finds(places: int) -> None:
    stated = sparse(places, seed=places)
    assert list(cheapest_paths(stated)) == list(dijkstra.all_pairs(stated))


def test_a_thousand_places_are_more_than_dijkstra_has_steps_for(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = sparse(1000, seed=1)
    monkeypatch.setattr(graph, "MAX_STEPS", 1_000_000)
    with pytest.raises(TooManyPlacesError):
        list(dijkstra.all_pairs(stated))
    found = dict(cheapest_paths(stated))
    monkeypatch.undo()
    origin = stated.places[500]
    assert found[origin] == dijkstra.from_origin(stated, origin, graph.Steps())


@pytest.mark.parametrize(
    "links",
    [
        pytest.param({(f"a{number}", f"b{number}"): number for number in range(1200)}, id="pairs-that-meet-nobody"),
        pytest.param({("hub", f"leaf{number}"): number for number in range(1200)}, id="star"),
    ],
)
def test_places_without_paths_take_no_room(links: dict[tuple[str, str], int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may state such links, and the topologies of others wait."""
    figures = []

    def counted(rows: int, columns: int, figure: int) -> Costs:
        figures.append(rows * columns)
        return filled(rows, columns, figure)

    monkeypatch.setattr(moore, "filled", counted)
    found = dict(cheapest_paths(CostGraph(links)))
    assert {(origin, end): cost for origin, row in found.items() for end, cost in row.items()} == links
    assert sum(figures) == 0


@pytest.mark.parametrize("few", [0, 1000, 10**6], ids=str)
def test_it_goes_on_where_dijkstra_has_stopped(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stated = sparse(501, seed=7)
    monkeypatch.setattr(algorithms, "FEW_STEPS", few)
    assert list(cheapest_paths(stated)) == list(dijkstra.all_pairs(stated))


def test_a_chain_in_the_worst_order_ends() -> None:
    """Each place is looked at before the one it is reached from."""
    names = NAMES[:600]
    chain = CostGraph({(after, before): 1 for before, after in itertools.pairwise(names)})
    assert dict(moore.all_pairs(chain))[names[-1]] == {name: 599 - index for index, name in enumerate(names[:-1])}


def test_a_long_chain_is_left_to_dijkstra_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it can do is not given up, and takes little more than by it alone."""
    names = NAMES[:800]
    chain = CostGraph({(after, before): 1 for before, after in itertools.pairwise(names)})
    needed = 800 * (800 + 799)
    steps = []

    class Counted(graph.Steps):
        def take(self, count: int) -> None:
            steps.append(count)
            super().take(count)

    monkeypatch.setattr(moore, "Steps", Counted)
    monkeypatch.setattr(graph, "MAX_STEPS", needed)
    assert dict(moore.all_pairs(chain)) == dict(dijkstra.all_pairs(chain))
    assert sum(steps) <= needed * 1.3


def test_more_steps_than_allowed_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MAX_STEPS", 900)
    with pytest.raises(TooManyPlacesError):
        list(moore.all_pairs(sparse(120, seed=1)))


def test_rows_come_before_all_of_them_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has enough asks for no more."""
    stated = sparse(600, seed=1)
    monkeypatch.setattr(moore, "CELLS", 600 * 10)
    monkeypatch.setattr(graph, "MAX_STEPS", 100_000)
    assert len(list(itertools.islice(moore.all_pairs(stated), 10))) == 10
    with pytest.raises(TooManyPlacesError):
        list(moore.all_pairs(stated))


@pytest.mark.parametrize("all_pairs", [moore.all_pairs, floyd_warshall.all_pairs], ids=["moore", "floyd_warshall"])
def test_costs_that_no_sum_holds_are_refused_and_left_to_dijkstra(all_pairs: PathAlgorithm) -> None:
    large = CostGraph(dict.fromkeys(itertools.pairwise(NAMES[:200]), 2**61))
    assert not moore.suits(large)
    assert not floyd_warshall.suits(large)
    with pytest.raises(ValueError, match="too large"):
        list(all_pairs(large))
    assert dict(cheapest_paths(large))[NAMES[0]][NAMES[199]] == 199 * 2**61


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        pytest.param(moore.FEWEST_PLACES - 1, False, id="few"),
        pytest.param(moore.FEWEST_PLACES, True, id="enough"),
    ],
)
def test_suits(places: int, expected: bool) -> None:
    assert moore.suits(CostGraph(dict.fromkeys(itertools.pairwise(NAMES[:places]), 1))) == expected
