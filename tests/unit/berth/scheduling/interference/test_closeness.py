"""What a pair counts that shares a socket of several caches."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.interference.closeness import ACROSS_CACHES, closeness, closeness_of, spans


@pytest.mark.parametrize(
    ("caches", "pods", "expected"),
    [
        pytest.param(1, 9, 1.0, id="one cache"),
        pytest.param(4, 1, 1.0, id="a pod alone has nobody"),
        pytest.param(4, 0, 1.0, id="nobody"),
        pytest.param(4, 4, 0.5, id="each has a cache of its own"),
        pytest.param(2, 4, 0.5 + 0.5 / 3, id="two in each: one of three others is near"),
        pytest.param(2, 3, 0.5 + 0.5 / 3, id="two and one: one pair of three"),
        pytest.param(8, 9, 0.5 + 0.5 / 36, id="one pair of 36"),
    ],
)
def test_a_pair_counts_by_how_often_it_shares_a_cache(caches: int, pods: int, expected: float) -> None:
    assert closeness(caches, pods) == pytest.approx(expected)


@given(st.integers(1, 6), st.integers(2, 20))
def test_pods_are_dealt_evenly(caches: int, pods: int) -> None:
    pairs = list(combinations(range(pods), 2))
    meeting = sum(one % caches == other % caches for one, other in pairs) / len(pairs)
    assert closeness(caches, pods) == pytest.approx(ACROSS_CACHES + (1 - ACROSS_CACHES) * meeting)


@given(st.integers(1, 16), st.integers(2, 60))
def test_more_pods_are_closer_and_more_caches_keep_them_apart(caches: int, pods: int) -> None:
    assert closeness(caches + 1, pods) <= closeness(caches, pods) + 1e-12
    assert ACROSS_CACHES <= closeness(caches, pods) <= closeness(caches, pods + 1) + 1e-12 <= 1 + 1e-12


@pytest.mark.parametrize(
    ("size", "capacity", "caches", "expected"),
    [
        pytest.param(4000, 16000, 4, False, id="as large as a cache"),
        pytest.param(4001, 16000, 4, True, id="larger"),
        pytest.param(16000, 16000, 1, False, id="there is one cache"),
    ],
)
def test_a_pod_too_large_for_a_cache_shares_each(size: int, capacity: int, caches: int, expected: bool) -> None:
    assert spans(size, capacity, caches) == expected
    assert closeness_of([size, 1], capacity, caches) == (1.0 if expected or caches == 1 else 0.5)
