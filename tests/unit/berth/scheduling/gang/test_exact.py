"""Shares of nodes and what is left of bandwidth, in whole numbers of any size."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.gang.exact import UNLIMITED, WIDEST, ExactAmounts, share_of
from berth.scheduling.units import LIMIT


@given(
    st.lists(st.tuples(st.integers(0, LIMIT), st.integers(1, 10**9)), min_size=1, max_size=5),
    st.integers(0, 9),
)
def test_a_share_is_the_decimal_that_it_is_written_as(rows: list[tuple[int, int]], digits: int) -> None:
    shares = [max(Fraction(part, 10**9), Fraction(1, 10**9)) for _, part in rows]
    shares = [max(Fraction(int(share * 10**digits), 10**digits), Fraction(1, 10**9)) for share in shares]
    capacity = np.array([[amount, amount // 2] for amount, _ in rows], dtype=np.int64)
    found = share_of(capacity, np.array([float(share) for share in shares]))
    assert found.tolist() == [
        [amount * share // 1, amount // 2 * share // 1] for (amount, _), share in zip(rows, shares, strict=True)
    ]


def test_all_of_everything_is_everything() -> None:
    capacity = np.array([[LIMIT], [7]], dtype=np.int64)
    assert share_of(capacity, np.ones(2)).tolist() == [[LIMIT], [7]]


def amounts(*bandwidth: int) -> ExactAmounts:
    nothing = np.zeros((len(bandwidth), 0), dtype=np.int64)
    budgets = np.array(bandwidth, dtype=np.int64)
    return ExactAmounts(open=nothing, max_unit=nothing, bandwidth=budgets, bandwidth_kept=np.zeros_like(budgets))


@pytest.mark.parametrize(
    ("budget", "requested", "edges", "left", "as_float"),
    [
        pytest.param(10, 3, [4], 3, 3.0, id="some-left"),
        pytest.param(10, 0, [4, 7], -1, -1.0, id="overdrawn"),
        pytest.param(2**53 + 1, 2**53, [], 1, 1.0, id="a-bit-that-no-float-sees"),
        pytest.param(LIMIT, 0, [], LIMIT, float(WIDEST), id="more-than-the-engine-takes"),
        pytest.param(10, LIMIT, [LIMIT, 2**80], -LIMIT, float(-LIMIT), id="absurdly-overdrawn"),
        pytest.param(UNLIMITED, LIMIT, [2**80], UNLIMITED, np.inf, id="no-budget"),
    ],
)
def test_what_is_left_of_a_budget(budget: int, requested: int, edges: list[int], left: int, as_float: float) -> None:
    found = amounts(budget, 5)
    found.take(np.array([requested, 0]), ((0, amount) for amount in edges))
    assert found.bandwidth_free.tolist() == [left, 5]
    assert found.bandwidth_left.tolist() == [as_float, 5.0]
    found.take(None, ())
    assert found.bandwidth_free.tolist() == [budget, 5]
