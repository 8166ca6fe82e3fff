"""Lines are put together whatever chunks they come in, in time that does not depend on these."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube import lines
from berth.kube.lines import Lines


@given(data=st.lists(st.sampled_from([b"a", b"bc", b"\n", b""])).map(b"".join), cuts=st.lists(st.integers(0, 40)))
def test_lines_are_those_of_the_whole_whatever_the_chunks(data: bytes, cuts: list[int]) -> None:
    reader = Lines()
    found = [line for a, b in pairwise(sorted({0, len(data), *cuts})) for line in reader.feed(data[a:b])]
    assert found == data.split(b"\n")[:-1]


def test_a_line_of_many_megabytes_in_small_chunks_takes_no_time() -> None:
    chunk = b"x" * 1024
    count = 16_384
    reader = Lines()
    began = time.process_time()
    assert not any(reader.feed(chunk) for _ in range(count))
    [line] = reader.feed(b"\n")
    assert len(line) == count * len(chunk)
    assert time.process_time() - began < 1.0


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take all memory, and no silence would tell."""
    monkeypatch.setattr(lines, "LARGEST_LINE", 10)
    reader = Lines()
    assert [reader.feed(b"12345\n12345") for _ in range(3)] == [[b"12345"], [b"1234512345"], [b"1234512345"]]
    with pytest.raises(ValueError, match="a line of more than 10 bytes"):
        reader.feed(b"678901")
