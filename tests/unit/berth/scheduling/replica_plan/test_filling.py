"""The order in which pods are given the nodes of a plan."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduling.gang.budget import UNLIMITED, finish
from berth.scheduling.replica_plan.filling import filling_order
from berth.scheduling.replicas.rule import Spread

HOST, ZONE = np.arange(4), np.array([0, 0, 1, 1])


def spread(domain: np.ndarray, *, skew: int = 1, subjects: tuple[int, ...] = (0,), **options: Any) -> Spread:
    given: dict[str, Any] = {"hard": True, "selects": list(subjects), **options}
    return Spread(domain=domain, subjects=list(subjects), max_skew=skew, **given)


@pytest.mark.parametrize(
    ("rules", "counts", "order"),
    [
        pytest.param([], {2: 2, 0: 1}, [2, 0, 2], id="as planned, each once before any comes again"),
        pytest.param([], {3: 1, 2: 3, 0: 2}, [3, 2, 0, 2, 0, 2], id="round after round"),
        pytest.param([spread(HOST, hard=False)], {2: 1, 0: 1}, [2, 0], id="soft ones do not decide"),
        pytest.param([spread(HOST)], {2: 2, 0: 1}, [2, 0, 2], id="one host after another"),
        pytest.param([spread(ZONE)], {0: 1, 1: 1, 2: 1, 3: 1}, [0, 2, 1, 3], id="one zone after another"),
        pytest.param([spread(HOST), spread(ZONE)], {0: 2, 2: 1, 3: 1}, [0, 2, 3, 0], id="the fuller of both"),
        pytest.param([spread(HOST, placed=np.array([0, 0, 2, 0]))], {2: 2, 0: 2}, [0, 0, 2, 2], id="beside others"),
        pytest.param([spread(HOST, selects=[])], {2: 2, 0: 1}, [2, 0, 2], id="one that does not count them"),
        pytest.param([spread(ZONE)], {0: 2, 1: 1, 2: 2, 3: 1}, [0, 2, 1, 3, 0, 2], id="each of a zone once"),
        pytest.param(
            [spread(HOST, skew=9, placed=np.array([9, 0, 0, 0])), spread(HOST)],
            {0: 1, 2: 2},
            [0, 2, 2],
            id="the strictest of a key",
        ),
    ],
)
def test_nodes_of_a_set(rules: list[Spread], counts: dict[int, int], order: list[int]) -> None:
    assert finish(filling_order(rules, [counts], UNLIMITED)) == [order]


def test_sets_take_turns_and_count_for_each_other() -> None:
    rule = spread(ZONE, subjects=(0, 1))
    assert finish(filling_order([rule], [{0: 1, 2: 1}, {1: 1, 3: 1}], UNLIMITED)) == [[0, 2], [3, 1]]


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.integers(0, 3), st.integers(1, 5)), max_size=4), st.data())
def test_everybody_gets_what_is_planned(counts: list[dict[int, int]], data: st.DataObject) -> None:
    numbers = st.lists(st.integers(0, max(0, len(counts) - 1)), max_size=len(counts), unique=True)
    rules = [
        spread(
            domain, skew=data.draw(st.integers(1, 3)), subjects=tuple(data.draw(numbers)), selects=data.draw(numbers)
        )
        for domain in data.draw(st.lists(st.sampled_from((HOST, ZONE, np.array([0, -1, 1, -1]))), max_size=3))
    ]
    found = finish(filling_order(rules, counts, UNLIMITED))
    assert [Counter(slots) for slots in found] == [Counter(each) for each in counts]
