"""What a container is to have back."""

from __future__ import annotations

import pytest

from agents.node.pinning.cpuset import Cpuset
from agents.node.pinning.journal import Entry
from agents.node.pinning.restore import before


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
