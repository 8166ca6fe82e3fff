"""Measured latencies on the scale of costs: the unit, rounding, and the bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.networktopology.scale import COST_UNIT, MAX_MEASURED_COST, to_cost

MICROSECONDS = st.integers(min_value=0, max_value=2**63)
UNITS = st.integers(min_value=1, max_value=1_000_000)


@pytest.mark.parametrize(
    ("microseconds", "unit", "cost"),
    [
        pytest.param(850, COST_UNIT, 9, id="0.85 ms is nine tenths of a millisecond by default"),
        pytest.param(900, COST_UNIT, 9, id="exactly"),
        pytest.param(901, COST_UNIT, 10, id="rounded up"),
        pytest.param(0, COST_UNIT, 1, id="nothing"),
        pytest.param(30, COST_UNIT, 1, id="less than a unit"),
        pytest.param(80_000, COST_UNIT, 800, id="an ocean"),
        pytest.param(1_000_000, COST_UNIT, 10_000, id="a second"),
        pytest.param(1_000_001, COST_UNIT, 10_000, id="beyond what maxNetworkCost can state"),
        pytest.param(12_000, 1000, 12, id="whole milliseconds are upstream's costs"),
        pytest.param(850, 1000, 1, id="a fraction of upstream's unit"),
        pytest.param(850, 1, 850, id="microseconds"),
    ],
)
def test_to_cost(microseconds: int, unit: int, cost: int) -> None:
    assert to_cost(microseconds, unit) == cost


@given(microseconds=MICROSECONDS, unit=UNITS)
def test_a_cost_is_in_bounds_and_else_the_units_rounded_up(microseconds: int, unit: int) -> None:
    exact = math.ceil(Fraction(microseconds, unit))
    assert to_cost(microseconds, unit) == min(max(1, exact), MAX_MEASURED_COST)


@given(one=MICROSECONDS, other=MICROSECONDS, unit=UNITS)
def test_what_is_farther_never_costs_less(one: int, other: int, unit: int) -> None:
    near, far = sorted((one, other))
    assert to_cost(near, unit) <= to_cost(far, unit)
