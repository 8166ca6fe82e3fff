"""Waiting times between attempts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.client import backoff


@given(
    attempt=st.integers(min_value=0, max_value=10_000),
    base=st.floats(min_value=0.01, max_value=5),
    cap=st.floats(min_value=0.01, max_value=600),
)
def test_wait_is_between_a_tenth_and_the_whole_of_the_exponential(attempt: int, base: float, cap: float) -> None:
    whole = min(cap, base * 2.0 ** min(attempt, 16))
    assert 0.1 * whole <= backoff(attempt, base=base, cap=cap) <= whole


@pytest.mark.parametrize(("attempt", "longest"), [(0, 0.2), (1, 0.4), (3, 1.6), (6, 10.0), (500, 10.0)], ids=str)
def test_defaults_double_up_to_ten_seconds(attempt: int, longest: float) -> None:
    waits = [backoff(attempt) for _ in range(200)]
    assert max(waits) <= longest
    assert min(waits) >= 0.1 * longest
    assert len(set(waits)) > 150  # jitter: clients that failed together do not return together
