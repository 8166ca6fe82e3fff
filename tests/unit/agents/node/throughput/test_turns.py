"""Whose throughput is measured next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.node.throughput.ledger import HOUR
from agents.node.throughput.turns import LEAST_PAUSE, Turns, pause


def test_each_in_turn_and_none_twice_within_the_hour() -> None:
    turns = Turns()
    assert [turns.take(["b", "a"], now) for now in (0.0, 1.0, 2.0)] == ["a", "b", None]
    assert [turns.take(["a", "b"], HOUR + now) for now in (0.0, 0.5, 1.0)] == ["a", None, "b"]


def test_a_new_peer_comes_first_and_one_that_returns_is_new() -> None:
    turns = Turns()
    assert turns.take(["a"], 0.0) == "a"
    assert turns.take(["a", "b"], HOUR) == "b"
    assert turns.take(["b"], HOUR + 1) is None
    assert turns.take(["a", "b"], HOUR + 2) == "a"


def test_without_peers_there_is_no_turn() -> None:
    assert Turns().take([], 0.0) is None


@pytest.mark.parametrize(
    ("peers", "expected"), [(0, HOUR), (1, HOUR), (10, HOUR / 10), (100, LEAST_PAUSE)], ids=["none", "one", "10", "100"]
)
def test_pause(peers: int, expected: float) -> None:
    assert pause(peers) == expected


@given(st.lists(st.floats(1, 2000), min_size=1, max_size=60), st.integers(1, 5))
def test_no_peer_is_tried_twice_within_an_hour(waits: list[float], peers: int) -> None:
    turns, now, tried = Turns(), 0.0, dict[str, float]()
    names = [f"n{number}" for number in range(peers)]
    for wait in waits:
        now += wait
        name = turns.take(names, now)
        if name is not None:
            assert now - tried.get(name, now - HOUR) >= HOUR
            tried[name] = now
