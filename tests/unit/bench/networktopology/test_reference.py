"""The reference, on examples small enough to follow by hand."""

from __future__ import annotations

import pytest

from bench.networktopology import reference

PLACE_OF = {"a1": "A", "a2": "A", "a3": "A", "b1": "B", "b2": "B", "c1": "C"}


@pytest.mark.parametrize(
    ("round_trips", "expected"),
    [
        pytest.param({("a1", "b1"): 5}, {("A", "B"): 5, ("B", "A"): 5}, id="one node, both directions"),
        pytest.param({("a1", "b1"): 5, ("b1", "a1"): 9}, {("A", "B"): 5, ("B", "A"): 5}, id="the lower of two"),
        pytest.param({("a1", "b1"): 4, ("a1", "b2"): 6}, {("A", "B"): 4, ("B", "A"): 4}, id="a node counts once"),
        pytest.param(
            {("a1", "b1"): 1, ("a2", "b2"): 2, ("a3", "b1"): 3, ("a3", "b2"): 4}
            | {(b, "a1"): 90 for b in ("b1", "b2")},
            {("A", "B"): 2, ("B", "A"): 3},
            id="three stand for their own direction",
        ),
        pytest.param(
            {("a1", "b1"): 90, ("a2", "b1"): 90, ("a3", "b2"): 3, ("b2", "a2"): 4},
            {("A", "B"): 4, ("B", "A"): 4},
            id="not if most measure the same node",
        ),
        pytest.param({("a1", "a2"): 5}, {}, id="inside a place"),
    ],
)
def test_direct(round_trips: dict[tuple[str, str], int], expected: dict[tuple[str, str], int]) -> None:
    assert reference.direct(round_trips, PLACE_OF) == expected


def test_cheapest() -> None:
    links = {("A", "B"): 5, ("B", "C"): 6, ("A", "C"): 20, ("C", "A"): 1}
    found = {("A", "B"): 5, ("A", "C"): 11, ("B", "C"): 6, ("B", "A"): 7, ("C", "A"): 1, ("C", "B"): 6}
    assert reference.cheapest(links) == found


@pytest.mark.parametrize(("microseconds", "cost"), [(1, 1), (100, 1), (101, 2), (850, 9), (60_000_000, 10_000)])
def test_costs(microseconds: int, cost: int) -> None:
    assert reference.costs({("A", "B"): microseconds}) == {("A", "B"): cost}
