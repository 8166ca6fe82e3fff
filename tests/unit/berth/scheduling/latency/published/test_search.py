"""Where a pod goes that a published rule has dropped."""

from __future__ import annotations

import pytest

from berth.scheduling.latency.published.search import Visited, destination, measured


@pytest.mark.parametrize(
    ("nodes", "node"),
    [
        pytest.param([Visited("a", visits=1), Visited("b")], "b", id="not visited yet"),
        pytest.param(
            [Visited("a", visits=2), Visited("b", visits=1, pods=3)], "b", id="visited least comes before load"
        ),
        pytest.param([Visited("a", pods=2), Visited("b", pods=1)], "b", id="then least loaded"),
        pytest.param([Visited("b"), Visited("a")], "b", id="then the first"),
        pytest.param(
            [Visited("a", 70, 0, 1, True), Visited("b", 35, 0, 2, False)], "a", id="where it was dropped, too"
        ),
    ],
)
def test_destination(nodes: list[Visited], node: str) -> None:
    assert destination(nodes) == node


def test_measured_nodes_with_pods_come_worst_first() -> None:
    nodes = [Visited("a", 15, 1), Visited("b", 70, 1), Visited("c", 90, 0), Visited("d", None, 1)]
    assert [node.node for _, node in measured(nodes)] == ["b", "a"]
