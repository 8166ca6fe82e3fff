"""Figures of arrays: wide enough for every path, and read back as paths."""

from __future__ import annotations

import numpy as np
import pytest

from controllers.networktopology.cost_matrix import filled, no_path, paths
from controllers.networktopology.graph import CostGraph

SHORT, LONG = 2**30 - 1, 2**61


@pytest.mark.parametrize(
    ("links", "figure"),
    [
        pytest.param({}, SHORT, id="no places"),
        pytest.param({("a", "b"): 10_000}, SHORT, id="latencies"),
        pytest.param({("a", "b"): SHORT // 2}, SHORT, id="longest of 32 bits"),
        pytest.param({("a", "b"): SHORT // 2 + 1}, LONG, id="longer"),
        pytest.param({("a", "b"): LONG // 2 - 1}, LONG, id="longest of 64 bits"),
        pytest.param({("a", "b"): LONG // 2}, None, id="too long"),
        pytest.param(
            {("a", "b"): LONG // 4, ("b", "c"): 1, ("c", "d"): 1}, None, id="too long with all places between"
        ),
    ],
)
def test_a_figure_is_above_every_path_and_a_sum_of_two_fits(
    links: dict[tuple[str, str], int], figure: int | None
) -> None:
    graph = CostGraph(links)
    assert no_path(graph) == figure
    if figure is not None:
        made = filled(1, 2, figure)
        assert made.tolist() == [[figure, figure]]
        assert (made + made).tolist() == [[2 * figure, 2 * figure]]


def test_rows_are_paths_without_those_that_are_none() -> None:
    costs = np.array([[0, 7, SHORT], [SHORT, SHORT, 3]])
    assert list(paths(["a", "b"], ["a", "b", "c"], costs, SHORT)) == [("a", {"b": 7}), ("b", {"c": 3})]


def test_a_row_that_reaches_all_is_whole() -> None:
    costs = np.array([[5, SHORT, 6]])
    assert list(paths(["b"], ["a", "b", "c"], costs, SHORT)) == [("b", {"a": 5, "c": 6})]
