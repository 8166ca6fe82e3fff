"""What is remembered of what was compiled: bounded by size, the last used stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.cache.memo import ENTRY_BYTES, Memo, digest


def test_a_result_is_made_once_with_the_digest_of_its_fields() -> None:
    memo: Memo[list[bytes]] = Memo(10 * ENTRY_BYTES)
    first = memo.get(b"fields", lambda key: [key])
    assert first == [digest(b"fields")]
    assert memo.get(b"fields", lambda key: [key]) is first
    assert memo.get(b"other", lambda key: [key]) is not first


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        pytest.param([b"a", b"b", b"c"], [b"b", b"c"], id="the one used last longest ago goes"),
        pytest.param([b"a", b"b", b"a", b"c"], [b"a", b"c"], id="use counts"),
        pytest.param([b"a", b"b", b"x" * 3 * ENTRY_BYTES], [b"a", b"b"], id="what is larger than all is not kept"),
        pytest.param([b"a", b"b", b"x" * ENTRY_BYTES], [b"x" * ENTRY_BYTES], id="a large one takes the place of many"),
    ],
)
def test_the_last_used_stay(fields: list[bytes], kept: list[bytes]) -> None:
    memo: Memo[object] = Memo(2 * ENTRY_BYTES + 100)
    made = {one: memo.get(one, lambda _: object()) for one in fields}
    assert len(memo) == len(kept)
    for one in kept:
        assert memo.get(one, lambda _: object()) is made[one]


@given(lengths=st.lists(st.integers(0, 3 * ENTRY_BYTES), max_size=50))
def test_the_bound_holds_whatever_comes(lengths: list[int]) -> None:
    memo: Memo[int] = Memo(5 * ENTRY_BYTES)
    for number, length in enumerate(lengths):
        fields = number.to_bytes(4) + bytes(length)
        assert memo.get(fields, lambda _, number=number: number) == number  # type: ignore[misc]
        assert memo._results.currsize <= 5 * ENTRY_BYTES
        assert len(memo) <= 5
