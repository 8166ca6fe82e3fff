"""Classes from run times: the published measurements, what quartiles are, and what must not matter."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from berth.scheduling.interference.classification import Classification, classify, slowdowns, spread

PUBLISHED = Path(__file__).parents[5] / "examples" / "interference" / "spec-cpu2006.csv"
SLOWDOWNS = st.integers(900, 1900).map(lambda thousandths: thousandths / 1000)
TABLES = st.integers(2, 6).flatmap(
    lambda size: st.fixed_dictionaries(
        {
            f"w{row}": st.fixed_dictionaries({f"w{column}": SLOWDOWNS for column in range(size) if column != row})
            for row in range(size)
        }
    )
)


def published() -> dict[str, dict[str, float]]:
    alone: dict[str, list[float]] = {}
    beside: dict[str, dict[str, list[float]]] = {}
    with PUBLISHED.open() as lines:
        for run in csv.DictReader(lines):
            times = beside.setdefault(run["workload"], {}) if run["beside"] else alone
            times[run["beside"] or run["workload"]] = [float(run["seconds"])]
    return slowdowns(alone, beside)


def letters(found: list[Classification]) -> dict[str, str]:
    return {item.workload: str(item.interference_class) for item in found}


def test_the_published_run_times_give_a_and_d_alone() -> None:
    found = classify(published())
    assert letters(found) == {
        **dict.fromkeys(("zeusmp", "namd", "gobmk", "omnetpp", "perlbench", "cactusADM"), "A"),
        **dict.fromkeys(("libquantum2", "GemsFDTD2", "libquantum1", "soplex2"), "D"),
    }
    whiskers = {i.workload: (i.suffers.whisker, i.causes.whisker) for i in found if i.suffers and i.causes}
    assert whiskers["omnetpp"] == (1.166, 1.115), "1.259 beside libquantum2 is an outlier"
    assert whiskers["soplex2"] == (1.294, 1.212)


@pytest.mark.parametrize(
    ("limit", "classes"),
    [
        pytest.param(1.05, "DACDDDDDDD", id="nearly all suffer at 5 %"),
        pytest.param(1.1, "CAADBDDDDD", id="more than half at 10 %"),
        pytest.param(1.25, "AAAAAADDBB", id="two of four still at 25 %"),
        pytest.param(1.5, "AAAAAAAAAA", id="nobody at 50 %"),
    ],
)
def test_other_limits(limit: float, classes: str) -> None:
    assert "".join(letters(classify(published(), limit)).values()) == classes


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([1.5], (1.5, 1.5, 1.5, 1.5, 1.5), id="one"),
        pytest.param([1.0, 2.0], (1.0, 1.25, 1.5, 1.75, 2.0), id="two"),
        pytest.param([1.0, 1.1, 1.2, 1.3, 1.4], (1.0, 1.1, 1.2, 1.3, 1.4), id="no outlier"),
        pytest.param([1.0, 1.1, 1.2, 1.3, 9.0], (1.0, 1.1, 1.2, 1.3, 1.3), id="outlier above"),
        pytest.param([0.1, 1.1, 1.2, 1.3, 1.4], (1.1, 1.1, 1.2, 1.3, 1.4), id="outlier below"),
        pytest.param([1.3, 1.3, 1.3, 1.3, 1.4], (1.3, 1.3, 1.3, 1.3, 1.3), id="all the same but one"),
    ],
)
def test_box_plot(values: list[float], expected: tuple[float, ...]) -> None:
    found = spread(reversed(values))
    assert found is not None
    box = (found.lower_whisker, found.first_quartile, found.median, found.third_quartile, found.whisker)
    assert box == pytest.approx(expected)


def test_no_values_have_no_box_plot() -> None:
    assert spread([]) is None


@given(st.lists(st.floats(0.1, 999), min_size=1, max_size=30))
def test_quartiles_are_those_of_linear_interpolation(values: list[float]) -> None:
    found = spread(values)
    assert found is not None
    quartiles = (found.first_quartile, found.median, found.third_quartile)
    assert quartiles == pytest.approx(tuple(np.percentile(values, [25, 50, 75])))
    assert found.values[0] <= found.lower_whisker <= found.whisker <= found.values[-1]
    assert {found.lower_whisker, found.whisker} <= set(values)


@given(st.lists(st.integers(20, 40).map(lambda twentieths: twentieths / 20), min_size=1, max_size=12))
@example([1.0, 1.05, 1.05, 1.15, 1.15, 1.3])
def test_whiskers_are_those_of_exact_figures(values: list[float]) -> None:
    """Slowdowns have three places, so that many are just where a whisker may end."""
    exact = sorted(Fraction(round(1000 * value), 1000) for value in values)

    def quartile(number: int) -> Fraction:
        place = Fraction(number * (len(exact) - 1), 4)
        below = int(place)
        return exact[below] + (place - below) * (exact[min(below + 1, len(exact) - 1)] - exact[below])

    first, third = quartile(1), quartile(3)
    reach = Fraction(3, 2) * (third - first)
    within = [float(value) for value in exact if first - reach <= value <= third + reach]
    found = spread(values)
    assert found is not None
    assert (found.lower_whisker, found.whisker) == (within[0], within[-1])


def test_repeated_runs_count_by_their_median() -> None:
    alone = {"a": [10.0, 11.0, 99.0], "b": [5.0]}
    assert slowdowns(alone, {"a": {"b": [22.0, 20.0, 24.0]}, "x": {"a": [1.0]}}) == {"a": {"b": 2.0}, "b": {}}


@pytest.mark.parametrize("seconds", [0.5, 20_000.0])
def test_times_of_different_units_are_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"a beside b takes .* times its time alone; check the units"):
        slowdowns({"a": [10.0]}, {"a": {"b": [seconds]}})


@pytest.mark.parametrize(
    ("table", "classes"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"a": {}}, {"a": "None"}, id="alone in the world"),
        pytest.param({"a": {"x": 1.5}}, {"a": "None"}, id="nobody's neighbour"),
        pytest.param({"a": {"b": 1.5}, "b": {}}, {"a": "None", "b": "None"}, id="one direction"),
        pytest.param({"a": {"b": 1.5}, "b": {"a": 1.0}}, {"a": "B", "b": "C"}, id="both"),
        pytest.param({"a": {"a": 1.2}}, {"a": "D"}, id="beside its like, just at the limit"),
        pytest.param({"a": {"a": 1.199}}, {"a": "A"}, id="just below it"),
    ],
)
def test_what_is_not_known_has_no_class(table: dict[str, dict[str, float]], classes: dict[str, str]) -> None:
    assert letters(classify(table)) == classes


@given(table=TABLES, data=st.data())
def test_neither_order_nor_units_of_run_times_matter(table: dict[str, dict[str, float]], data: st.DataObject) -> None:
    seconds = data.draw(st.sampled_from([0.5, 1.0, 2.0, 60.0]))
    order = data.draw(st.permutations(sorted(table)))
    alone = {name: [seconds] for name in order}
    beside: dict[str, dict[str, Any]] = {
        name: {other: [seconds * table[name][other]] for other in reversed(order) if other in table[name]}
        for name in order
    }
    assert letters(classify(slowdowns(alone, beside))) == letters(classify(table))


@given(table=TABLES, low=st.floats(1.0, 2.0), high=st.floats(1.0, 2.0))
def test_a_higher_limit_makes_nobody_suffer_or_hurt_who_did_not(
    table: dict[str, dict[str, float]], low: float, high: float
) -> None:
    strict, lenient = classify(table, min(low, high)), classify(table, max(low, high))
    for one, other in zip(strict, lenient, strict=True):
        assert one.interference_class is not None
        assert other.interference_class is not None
        assert one.interference_class.sensitive >= other.interference_class.sensitive
        assert one.interference_class.contentious >= other.interference_class.contentious
