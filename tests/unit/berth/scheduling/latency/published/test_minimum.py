"""The published search for the minimum: everywhere once, then the best."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.latency.classification import Limits
from berth.scheduling.latency.published.minimum import destination, leave
from berth.scheduling.latency.published.search import Visited

LIMITS = Limits(40, 30)


def test_the_worst_with_a_pod_is_left_while_some_are_not_visited() -> None:
    nodes = [Visited("a", 15, 1, 1), Visited("b", 70, 1, 1), Visited("c", 90, 0, 1), Visited("d")]
    assert leave(nodes, LIMITS) == ("b",)
    assert destination(nodes) == "d"


def test_then_all_go_to_the_best() -> None:
    nodes = [Visited("a", 15, 0, 1), Visited("b", 70, 1, 1), Visited("c", 20, 1, 1)]
    assert leave(nodes, LIMITS) == ("b",)
    assert destination(nodes) == "a"


@given(st.lists(st.integers(1, 200), min_size=2, max_size=10, unique=True), st.integers(0, 9))
def test_one_pod_visits_all_and_ends_on_the_best(far: list[int], start: int) -> None:
    start %= len(far)
    nodes = [Visited(f"n{at}", None, int(at == start), int(at == start)) for at in range(len(far))]
    place, visited, moves = start, [start], 0
    while True:
        nodes[place] = nodes[place]._replace(microseconds=far[place])
        if f"n{place}" not in leave(nodes, LIMITS):
            break
        nodes[place] = nodes[place]._replace(pods=0, dropped=True)
        place = int(destination(nodes)[1:])
        nodes[place] = nodes[place]._replace(pods=1, visits=nodes[place].visits + 1)
        visited.append(place)
        moves += 1
        assert moves <= len(far)
    assert set(visited) == set(range(len(far)))
    assert far[place] == min(far)
