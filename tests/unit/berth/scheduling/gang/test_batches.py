"""Large groups in batches: nothing lost, even sizes, every workload in each."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.gang.batches import BATCH, batches


@pytest.mark.parametrize("count", [0, 1, 2, BATCH - 1, BATCH])
def test_up_to_a_batch_stays_as_it_is(count: int) -> None:
    items = [f"w{number % 3}" for number in range(count)]
    assert batches(items, str) == ([items] if items else [])


@given(st.lists(st.integers(1, 2 * BATCH), min_size=1, max_size=5))
def test_batches_are_the_application_in_small(replicas: list[int]) -> None:
    items = [(f"w{kind}", number) for kind, count in enumerate(replicas) for number in range(count)]
    found = batches(items, lambda item: item[0])
    assert sorted(item for batch in found for item in batch) == sorted(items)
    assert all(batch == sorted(batch) for batch in found)
    assert max(map(len, found)) <= BATCH
    for kind, count in enumerate(replicas):
        shares = [Counter(item[0] for item in batch)[f"w{kind}"] for batch in found]
        expected = [count * len(batch) / len(items) for batch in found]
        assert all(abs(share - mean) <= len(replicas) + 1 for share, mean in zip(shares, expected, strict=True))
