"""Latencies between places: one node counts once and moves nothing, old figures weigh less, cuts are no latencies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.probe_reports import FRESH_AGE
from controllers.networktopology.node_medians import (
    MAX_AGE,
    PairFigures,
    latencies,
    pair_figures,
    weight_of,
    weighted_median,
)
from controllers.networktopology.sources.base import UNREACHABLE, Measurement


def place_of(node: str) -> str:
    """``a1`` is in place A."""
    return node[:1].upper() if node[0] in "abc" else ""


def of(*samples: tuple[str, str, int]) -> dict[tuple[str, str], int]:
    return latencies(pair_figures([Measurement(*sample) for sample in samples], place_of)).known


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([(7, 1.0)], 7, id="one"),
        pytest.param([(9, 1.0), (1, 1.0), (5, 1.0)], 5, id="middle of three"),
        pytest.param([(4, 1.0), (7, 1.0)], 4, id="the lower of two"),
        pytest.param([(4, 1.0), (7, 1.0), (8, 1.0), (90, 1.0)], 7, id="the lower of the two in the middle"),
        pytest.param([(4, 1.0), (7, 0.5)], 4, id="of two, the weightier"),
        pytest.param([(1, 0.1), (2, 0.1), (3, 0.1), (9, 0.3)], 3, id="half of the weight on either side"),
        pytest.param([(5, 1.0), (UNREACHABLE, 1.0)], 5, id="one answers, one does not"),
        pytest.param([(5, 0.5), (UNREACHABLE, 1.0)], UNREACHABLE, id="most do not"),
    ],
)
def test_weighted_median(values: list[tuple[int, float]], expected: int) -> None:
    assert weighted_median(values) == expected
    assert weighted_median(values[::-1]) == expected


def test_nothing_has_no_median() -> None:
    with pytest.raises(ValueError, match="unknown, not 0"):
        weighted_median([])


@pytest.mark.parametrize("figure", [pytest.param(90, id="slow"), pytest.param(UNREACHABLE, id="silent")])
def test_one_node_that_most_reach_alone_makes_no_direction(figure: int) -> None:
    samples = [("a1", "b1", figure), ("a2", "b1", figure), ("a3", "b2", 5), ("b2", "a1", 4), ("b3", "a2", 4)]
    assert of(*samples) == {("A", "B"): 5, ("B", "A"): 5}
    assert of(*samples, ("a4", "b2", 6))["A", "B"] == 6, "half of the nodes are not most"


OLD = 800.0


@pytest.mark.parametrize("figure", [pytest.param(90, id="slow"), pytest.param(UNREACHABLE, id="silent")])
@pytest.mark.parametrize(
    "samples",
    [
        pytest.param([("a1", "b1"), ("a2", "b1"), ("a3", "b2", OLD), ("a4", "b3", OLD)], id="others are old"),
        pytest.param([("a1", "b1"), ("a2", "b2", OLD), ("a3", "b3", OLD)], id="one of three is not old"),
        pytest.param(
            [("a1", "b1"), ("a1", "b4", OLD), ("a2", "b1"), ("a2", "b5", OLD), ("a3", "b2")],
            id="old ones beside it",
        ),
        pytest.param([("a1", "b1"), ("a1", "b1"), ("a2", "b1"), ("a2", "b1"), ("a3", "b2")], id="one thing said twice"),
    ],
)
def test_what_most_have_reached_is_weighed_as_the_median_weighs(samples: list[tuple[Any, ...]], figure: int) -> None:
    there = [Measurement(start, end, figure if end == "b1" else 5, *age) for start, end, *age in samples]
    back = [Measurement("b2", "a3", 5), Measurement("b3", "a4", 5), Measurement("b4", "a2", 5)]
    found = latencies(pair_figures(there + back, place_of))
    assert found.known == {("A", "B"): 5, ("B", "A"): 5}


@pytest.mark.parametrize(
    ("age", "weight"),
    [(-5.0, 1.0), (0.0, 1.0), (FRESH_AGE, 1.0), (615.0, 0.5), (MAX_AGE, 0.0), (10 * MAX_AGE, 0.0)],
)
def test_weight_of(age: float, weight: float) -> None:
    assert weight_of(age) == pytest.approx(weight)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        pytest.param([], {}, id="nothing measured"),
        pytest.param([("a1", "b1", 4)], {("A", "B"): 4, ("B", "A"): 4}, id="a round trip leads both ways"),
        pytest.param([("a1", "b1", 4), ("b1", "a1", 8)], {("A", "B"): 4, ("B", "A"): 4}, id="few measure: together"),
        pytest.param(
            [(f"a{n}", f"b{n}", 4) for n in "123"] + [(f"b{n}", f"a{n}", 8) for n in "123"],
            {("A", "B"): 4, ("B", "A"): 8},
            id="three each way: directions apart",
        ),
        pytest.param(
            [("a1", f"b{n}", 90) for n in range(9)] + [("a2", "b1", 4), ("a3", "b1", 5)],
            {("A", "B"): 5, ("B", "A"): 5},
            id="a node with many peers counts once",
        ),
        pytest.param(
            [("a1", "b1", 4), ("a2", "b1", 5), ("a3", "b1", 6), ("b1", "a1", 60)],
            {("A", "B"): 5, ("B", "A"): 5},
            id="three one way: the other way takes them in",
        ),
        pytest.param([("a1", "a2", 4), ("x", "b1", 4), ("b1", "x", 4)], {}, id="inside a place, and without one"),
    ],
)
def test_latencies(samples: list[tuple[str, str, int]], expected: dict[tuple[str, str], int]) -> None:
    assert of(*samples) == expected


def test_what_is_too_old_does_not_count() -> None:
    figures = pair_figures([Measurement("a1", "b1", 4, MAX_AGE), Measurement("a2", "b1", 9, MAX_AGE - 1)], place_of)
    assert figures["A", "B"] == PairFigures(9, 9, 9, 1, 1, MAX_AGE - 1, one_decides=True)


def test_figures_of_a_pair() -> None:
    samples = [Measurement("a1", "b1", 4, 50.0), Measurement("a1", "b2", 6, 20.0), Measurement("b1", "a1", 30, 90.0)]
    assert pair_figures(samples, place_of)["A", "B"] == PairFigures(4, 4, 30, 3, 2, 20.0, one_decides=False)


def test_a_pair_that_most_nodes_have_no_answer_from_is_cut() -> None:
    samples = [Measurement("a1", "b1", UNREACHABLE), Measurement("a2", "b2", UNREACHABLE), Measurement("b1", "a1", 5)]
    found = latencies(pair_figures(samples, place_of))
    assert found.known == {}
    assert found.cut == {("A", "B"), ("B", "A")}


AGES = st.floats(0.0, FRESH_AGE)
FIGURES = st.integers(1, 60_000_000)


@given(
    truth=st.lists(st.tuples(st.sampled_from("ab"), FIGURES, AGES), min_size=2, max_size=8),
    nonsense=st.lists(st.tuples(st.one_of(FIGURES, st.just(UNREACHABLE)), AGES), max_size=20),
)
def test_one_node_that_reports_nonsense_stays_within_what_the_others_measure(
    truth: list[tuple[str, int, float]], nonsense: list[tuple[int, float]]
) -> None:
    samples = [
        Measurement(f"{side}{number}", "b0" if side == "a" else "a0", figure, age)
        for number, (side, figure, age) in enumerate(truth)
    ]
    samples += [Measurement("a-liar", f"b{number}", figure, age) for number, (figure, age) in enumerate(nonsense)]
    found = latencies(pair_figures(samples, place_of))
    figures = [figure for _, figure, _ in truth]
    assert found.cut == frozenset()
    assert min(figures) <= found.known["A", "B"] <= max(figures)


@given(
    honest=FIGURES,
    nonsense=st.one_of(FIGURES, st.just(UNREACHABLE)),
    ages=st.tuples(AGES, AGES),
    there=st.sampled_from([("a-liar", "b0"), ("b0", "a1")]),
)
def test_of_two_nodes_one_cannot_make_a_pair_dearer_than_the_other_measures_or_cut_it(
    honest: int, nonsense: int, ages: tuple[float, float], there: tuple[str, str]
) -> None:
    samples = [Measurement("a1", "b1", honest, ages[0]), Measurement(*there, nonsense, ages[1])]
    found = latencies(pair_figures(samples, place_of))
    assert found.cut == frozenset()
    assert found.known["A", "B"] == found.known["B", "A"] == min(honest, nonsense)


@given(
    samples=st.lists(
        st.builds(Measurement, *[st.sampled_from(["a1", "a2", "b1", "b2", "c1", "x"])] * 2, FIGURES, AGES), max_size=20
    )
)
def test_order_does_not_matter_and_a_latency_lies_between_what_was_measured(samples: list[Measurement]) -> None:
    found = pair_figures(samples, place_of)
    assert list(found.items()) == list(pair_figures(samples[::-1], place_of).items())
    for item in found.values():
        assert item.minimum <= item.microseconds <= item.maximum
        assert item.samples >= 1
