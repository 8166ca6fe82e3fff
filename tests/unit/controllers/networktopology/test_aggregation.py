"""Samples between nodes to costs between places: the median and its rounding, directions, what is left out."""

from __future__ import annotations

import math
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.networktopology.aggregation import aggregate, median_cost

SAMPLES = st.lists(st.integers(min_value=0, max_value=3_600_000), min_size=1)
PLACE = {"n1": "A", "n2": "A", "n3": "B", "n4": "B", "n5": "C"}


def place_of(node: str) -> str:
    return PLACE.get(node, "")


@pytest.mark.parametrize(
    ("samples", "cost"),
    [
        pytest.param([7], 7, id="one sample"),
        pytest.param([9, 1, 5], 5, id="middle of three"),
        pytest.param([4, 6], 5, id="mean of two"),
        pytest.param([4, 5], 5, id="half rounds up"),
        pytest.param([1, 2, 9, 10], 6, id="mean of the middle two, rounded up"),
        pytest.param([1, 1, 1, 10_000], 1, id="one broken link does not move it"),
        pytest.param([0], 1, id="nothing counts as 1"),
        pytest.param([0, 0, 0], 1, id="all nothing"),
        pytest.param([0, 1], 1, id="half of the least"),
    ],
)
def test_median_cost(samples: list[int], cost: int) -> None:
    assert median_cost(samples) == cost


def test_no_samples_have_no_cost() -> None:
    with pytest.raises(ValueError, match="unknown, not 0"):
        median_cost([])


@given(samples=SAMPLES)
def test_median_cost_is_the_median_rounded_up(samples: list[int]) -> None:
    assert median_cost(samples) == max(1, math.ceil(median(samples)))


@pytest.mark.parametrize(
    ("measurements", "expected"),
    [
        pytest.param([], {}, id="nothing measured"),
        pytest.param([("n1", "n3", 4)], {("A", "B"): 4}, id="one direction says nothing about the other"),
        pytest.param(
            [("n1", "n3", 4), ("n3", "n1", 40)],
            {("A", "B"): 4, ("B", "A"): 40},
            id="asymmetry is kept",
        ),
        pytest.param(
            [("n1", "n3", 4), ("n1", "n4", 6), ("n2", "n3", 100)],
            {("A", "B"): 6},
            id="node pairs together",
        ),
        pytest.param([("n1", "n2", 3)], {}, id="inside one place"),
        pytest.param([("n1", "gone", 3), ("gone", "n1", 3)], {}, id="node without a place"),
        pytest.param(
            [("n5", "n1", 2), ("n1", "n5", 2)],
            {("A", "C"): 2, ("C", "A"): 2},
            id="pairs are sorted",
        ),
    ],
)
def test_aggregate(measurements: list[tuple[str, str, int]], expected: dict[tuple[str, str], int]) -> None:
    found = aggregate(measurements, place_of)
    assert found == expected
    assert list(found) == sorted(expected)


MEASUREMENTS = st.lists(st.tuples(st.sampled_from(list(PLACE)), st.sampled_from(list(PLACE)), st.integers(0, 1000)))


@given(measurements=MEASUREMENTS)
def test_a_cost_lies_between_its_samples_and_is_never_0(measurements: list[tuple[str, str, int]]) -> None:
    for (origin, destination), cost in aggregate(measurements, place_of).items():
        samples = [figure for a, b, figure in measurements if (PLACE[a], PLACE[b]) == (origin, destination)]
        assert max(1, min(samples)) <= cost <= max(1, *samples)


@given(measurements=MEASUREMENTS)
def test_order_of_samples_does_not_matter(measurements: list[tuple[str, str, int]]) -> None:
    assert list(aggregate(measurements, place_of).items()) == list(aggregate(measurements[::-1], place_of).items())
