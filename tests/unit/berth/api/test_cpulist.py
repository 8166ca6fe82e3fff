"""Lists of CPUs: the kernel's form, and what is none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.cpulist import MAX_CPU, format_cpulist, parse_cpulist


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("\n", [], id="empty file"),
        pytest.param("0", [0], id="one"),
        pytest.param("0-3\n", [0, 1, 2, 3], id="range"),
        pytest.param("0-1,8,10-11", [0, 1, 8, 10, 11], id="several"),
        pytest.param("5,1,1-2", [1, 2, 5], id="in any order, more than once"),
        pytest.param("0, 2", [0, 2], id="blanks"),
        pytest.param(f"0-{MAX_CPU}", range(MAX_CPU + 1), id="all there can be"),
    ],
)
def test_parse(text: str, cpus: Sequence[int]) -> None:
    assert parse_cpulist(text) == frozenset(cpus)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a", "'a' is no CPU and no range", id="letters"),
        pytest.param("0-", "'0-' is no CPU", id="half a range"),
        pytest.param("0,,1", "'' is no CPU", id="nothing between commas"),
        pytest.param("-1", "'-1' is no CPU", id="negative"),
        pytest.param("3-1", "'3-1' ends before it begins", id="backwards"),
        pytest.param("0-15:2/4", "'0-15:2/4' is no CPU", id="strides, which the kernel reads and never writes"),
        pytest.param("٣", "is no CPU", id="digits of another script"),
        pytest.param(f"0-{MAX_CPU + 1}", f"beyond CPU {MAX_CPU}", id="more than there can be"),
        pytest.param("99999999999999", "is no CPU", id="far more"),
        pytest.param(f"0-{MAX_CPU},0", "more than 65536 CPUs are named", id="all of them and one again"),
    ],
)
def test_what_is_no_list(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_cpulist(text)


@pytest.mark.parametrize(
    ("cpus", "text"),
    [
        pytest.param([], "", id="none"),
        pytest.param([7], "7", id="one"),
        pytest.param([3, 1, 2, 1], "1-3", id="in any order, more than once"),
        pytest.param([0, 1, 3, 5, 6], "0-1,3,5-6", id="gaps"),
    ],
)
def test_format(cpus: list[int], text: str) -> None:
    assert format_cpulist(cpus) == text


@given(st.frozensets(st.integers(0, MAX_CPU), max_size=50) | st.frozensets(st.integers(0, 12)))
def test_what_is_written_is_read_back(cpus: frozenset[int]) -> None:
    text = format_cpulist(cpus)
    assert parse_cpulist(text) == cpus
    parts = [part.partition("-") for part in text.split(",") if part]
    edges = [(int(first), int(last or first)) for first, _, last in parts]
    assert all(before[1] + 1 < after[0] for before, after in pairwise(edges)), "not as short as can be"
