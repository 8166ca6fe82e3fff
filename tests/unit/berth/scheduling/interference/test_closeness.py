"""What a pair counts that shares a socket of several caches."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.interference.closeness import (
    ACROSS_CACHES,
    ON_ONE_CORE,
    closeness,
    closeness_of,
    on_siblings,
    spans,
)


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


@pytest.mark.parametrize(
    ("sizes", "cores", "more"),
    [
        pytest.param([1000, 1000], 0, 0.0, id="no core has siblings"),
        pytest.param([1000, 1000], 2, 0.0, id="a core each"),
        pytest.param([1000, 1000], 1, 1.0, id="both on one core"),
        pytest.param([0, 0], 1, 1.0, id="they request nothing, and run"),
        pytest.param([1000, 1000, 1000], 2, 1 / 3, id="one pair of three"),
        pytest.param([4000, 4000], 4, 0.0, id="they come out even"),
        pytest.param([3000, 5000], 4, 8 / 14, id="they do not: seven CPUs of a pod's, and four are another's"),
        pytest.param([1000], 1, 0.0, id="nobody else"),
        pytest.param([10**15, 1], 1, 1.0, id="more than there is"),
    ],
)
def test_pods_that_need_more_cores_than_there_are_meet_on_siblings(sizes: list[int], cores: int, more: float) -> None:
    assert closeness_of(sizes, 8000, 1, cores) == pytest.approx(1 + (ON_ONE_CORE - 1) * more)


@given(st.integers(0, 16), st.integers(0, 40), st.integers(0, 80), st.integers(0, 80))
def test_siblings_count_between_nothing_and_a_core_for_all(cores: int, pods: int, needed: int, beyond: int) -> None:
    assert 0.0 <= on_siblings(cores, pods, needed, max(1, needed + beyond)) <= ON_ONE_CORE - 1
