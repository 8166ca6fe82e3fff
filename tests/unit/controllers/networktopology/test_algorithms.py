"""CostGraph, Dijkstra and Bellman-Ford: examples by hand, and what must hold for any graph.

The composition of graphs from measurements is in test_compute.py.
"""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.networktopology import dijkstra, graph
from controllers.networktopology.algorithms import ALGORITHMS, PathAlgorithm
from controllers.networktopology.graph import CostGraph, Steps, TooManyPlacesError

Links = dict[tuple[str, str], int]
Rows = dict[str, dict[str, int]]

PLACES = st.sampled_from("abcdefgh")
LINKS = st.dictionaries(st.tuples(PLACES, PLACES), st.integers(min_value=0, max_value=50), max_size=40)

all_algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS.keys())


def by_definition(links: Links) -> Rows:
    """Cheapest paths by the recurrence of Floyd and Warshall: slow, and independent of both algorithms."""
    places = sorted({place for pair in links for place in pair})
    best = dict(links)
    for middle, origin, destination in product(places, places, places):
        if (origin, middle) in best and (middle, destination) in best:
            through = best[origin, middle] + best[middle, destination]
            best[origin, destination] = min(through, best.get((origin, destination), through))
    return {
        origin: {end: best[origin, end] for end in places if end != origin and (origin, end) in best}
        for origin in places
    }


@all_algorithms
@pytest.mark.parametrize(
    ("links", "expected"),
    [
        pytest.param({}, {}, id="no places"),
        pytest.param({("a", "b"): 5}, {"a": {"b": 5}, "b": {}}, id="one direction only"),
        pytest.param({("a", "b"): 5, ("b", "a"): 7}, {"a": {"b": 5}, "b": {"a": 7}}, id="directions stay apart"),
        pytest.param(
            {("a", "b"): 5, ("b", "c"): 3}, {"a": {"b": 5, "c": 8}, "b": {"c": 3}, "c": {}}, id="missing pair is filled"
        ),
        pytest.param(
            {("a", "c"): 10, ("a", "b"): 3, ("b", "c"): 3},
            {"a": {"b": 3, "c": 6}, "b": {"c": 3}, "c": {}},
            id="detour is cheaper",
        ),
        pytest.param(
            {("a", "b"): 1, ("c", "d"): 1}, {"a": {"b": 1}, "b": {}, "c": {"d": 1}, "d": {}}, id="unreachable is absent"
        ),
        pytest.param({("a", "b"): 0, ("b", "c"): 0}, {"a": {"b": 0, "c": 0}, "b": {"c": 0}, "c": {}}, id="stated zero"),
        pytest.param(
            {("a", "b"): 2**63 - 1, ("b", "c"): 2**63 - 1},
            {"a": {"b": 2**63 - 1, "c": 2**64 - 2}, "b": {"c": 2**63 - 1}, "c": {}},
            id="large costs do not overflow",
        ),
    ],
)
def test_paths(algorithm: PathAlgorithm, links: Links, expected: Rows) -> None:
    assert dict(algorithm(CostGraph(links))) == expected


@all_algorithms
@given(links=LINKS)
def test_any_graph_has_the_costs_of_the_definition(algorithm: PathAlgorithm, links: Links) -> None:
    assert dict(algorithm(CostGraph(links))) == by_definition(links)


@given(links=LINKS)
def test_no_path_is_dearer_than_a_link_or_a_detour(links: Links) -> None:
    stated = CostGraph(links)
    costs = dict(dijkstra.all_pairs(stated))
    for origin, destination, cost in stated.links():
        assert costs[origin][destination] <= cost
        for end, rest in costs[destination].items():
            assert end == origin or costs[origin][end] <= cost + rest


@given(links=LINKS, order=st.randoms(use_true_random=False))
def test_order_of_links_does_not_matter(links: Links, order: Random) -> None:
    pairs = list(links.items())
    order.shuffle(pairs)
    shuffled = dict(pairs)
    assert list(CostGraph(links).links()) == list(CostGraph(shuffled).links())
    assert list(dijkstra.all_pairs(CostGraph(links))) == list(dijkstra.all_pairs(CostGraph(shuffled)))


def test_a_long_chain_needs_no_recursion() -> None:
    chain = CostGraph({(f"{number:05}", f"{number + 1:05}"): 1 for number in range(3000)})
    assert dijkstra.from_origin(chain, "00000", Steps())["03000"] == 3000


@all_algorithms
@pytest.mark.parametrize("steps", [0, 1, 9], ids=str)
def test_more_steps_than_allowed_are_not_taken(
    algorithm: PathAlgorithm, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = CostGraph({("a", "b"): 1, ("b", "c"): 1, ("c", "d"): 1})
    monkeypatch.setattr(graph, "MAX_STEPS", steps)
    with pytest.raises(TooManyPlacesError):
        dict(algorithm(chain))
    monkeypatch.setattr(graph, "MAX_STEPS", 50)
    assert dict(algorithm(chain))["a"] == {"b": 1, "c": 2, "d": 3}


class TestGraph:
    def test_a_link_to_itself_names_a_place_and_is_no_link(self) -> None:
        loop = CostGraph({("a", "a"): 3})
        assert loop.places == ("a",)
        assert list(loop.links()) == []

    def test_negative_costs_are_refused(self) -> None:
        with pytest.raises(ValueError, match="cost of a to b is -1; costs are 0 or more"):
            CostGraph({("a", "b"): -1})
