"""What is known of the use of links, and for how long."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.cache.link_use import MAX_AGE, LinkUse, LinkUseTable
from tests.support.placement import Clock

INDEX = {"n1": 0, "n2": 2}
USE = LinkUse(5.0, 2.0, 10.0)


def known(table: LinkUseTable) -> list[list[float]]:
    return [np.nan_to_num(row, nan=-1.0).tolist() for row in table.arrays(INDEX, 3)]


def test_figures_by_slot() -> None:
    table = LinkUseTable(Clock())
    table.update("n2", USE, age=0)
    table.update("elsewhere", USE, age=0)
    table.update("n1", LinkUse(1.0, 0.0, None), age=0)
    assert known(table) == [[1, -1, 5], [0, -1, 2], [-1, -1, 10]]


@pytest.mark.parametrize(
    ("age", "after", "there"),
    [
        pytest.param(0, MAX_AGE - 1, True, id="fresh"),
        pytest.param(0, MAX_AGE, False, id="no-word-for-long"),
        pytest.param(MAX_AGE - 1, 0, True, id="old"),
        pytest.param(MAX_AGE - 1, 1, False, id="too-old-soon"),
        pytest.param(MAX_AGE, 0, False, id="too-old"),
        pytest.param(-30, MAX_AGE, False, id="a-clock-ahead-lives-no-longer"),
    ],
)
def test_reports_count_for_ten_minutes(age: float, after: float, there: bool) -> None:
    clock = Clock()
    table = LinkUseTable(clock)
    table.update("n1", USE, age=age)
    clock.advance(after)
    assert (known(table)[0][0] == USE.mean) is there


def test_a_node_without_a_report_is_not_known() -> None:
    table = LinkUseTable(Clock())
    table.update("n1", USE, age=0)
    table.delete("n1")
    table.delete("n1")
    table.update("n2", USE, age=0)
    table.update("n2", USE, age=MAX_AGE)
    assert known(table)[0] == [-1, -1, -1]
