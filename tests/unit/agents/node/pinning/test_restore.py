"""What a container is to have back."""

from __future__ import annotations

import pytest

from agents.node.pinning.cpuset import Cpuset
from agents.node.pinning.journal import Entry
from agents.node.pinning.restore import before, unchanged


@pytest.mark.parametrize(
    ("cpus", "mems", "allowed", "expected"),
    [
        pytest.param("0-3", "0", "0-7", ({0, 1, 2, 3}, {0}), id="what it had"),
        pytest.param("", "", "0-7", (set(range(8)), {0, 1}), id="it had stated nothing"),
        pytest.param("0-7", "0-1", "4-7", ({4, 5, 6, 7}, {0, 1}), id="its pod has fewer now"),
        pytest.param("0-3", "0", "4-7", ({4, 5, 6, 7}, {0}), id="its pod has none of them now"),
        pytest.param("many", "all", "0-3", ({0, 1, 2, 3}, {0, 1}), id="a journal edited by hand"),
    ],
)
def test_what_it_gets(cpus: str, mems: str, allowed: str, expected: tuple[set[int], set[int]]) -> None:
    first, last = map(int, allowed.split("-"))
    found = Cpuset(
        cpus="1",
        mems="1",
        effective_cpus=frozenset({1}),
        effective_mems=frozenset({1}),
        allowed_cpus=frozenset(range(first, last + 1)),
        allowed_mems=frozenset({0, 1}),
    )
    assert before(Entry(container="c", cgroup="/c", cpus=cpus, mems=mems), found) == expected


@pytest.mark.parametrize(
    ("written", "effective", "allowed", "expected"),
    [
        pytest.param("0-1", {0, 1}, {0, 1, 2, 3}, True, id="as it was written"),
        pytest.param("0-1", {0}, {0, 1, 2, 3}, False, id="somebody took some away"),
        pytest.param("0-1", {0, 1, 2, 3}, {0, 1, 2, 3}, False, id="somebody gave it all"),
        pytest.param("0-1", {0}, {0, 2}, True, id="a CPU is offline"),
        pytest.param("", {0, 1}, {0, 1}, False, id="nobody knows what was written"),
        pytest.param("many", {0, 1}, {0, 1}, False, id="a journal edited by hand"),
    ],
)
def test_whether_somebody_has_changed_it(written: str, effective: set[int], allowed: set[int], expected: bool) -> None:
    found = Cpuset(
        cpus="",
        mems="",
        effective_cpus=frozenset(effective),
        effective_mems=frozenset({0}),
        allowed_cpus=frozenset(allowed),
        allowed_mems=frozenset({0}),
    )
    assert unchanged(Entry(container="c", cgroup="/c", cpus="0-3", mems="0", written=written), found) is expected
