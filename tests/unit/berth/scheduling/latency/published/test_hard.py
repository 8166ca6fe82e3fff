"""The published rule with a hard limit."""

from __future__ import annotations

import pytest

from berth.scheduling.latency.classification import Limits
from berth.scheduling.latency.published.hard import leave
from berth.scheduling.latency.published.search import Visited

LIMITS = Limits(40, 30)


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        pytest.param([Visited("a", 70, 1), Visited("b", 35, 1)], ("a",), id="beyond the limit"),
        pytest.param([Visited("a", 70, 1), Visited("b", 100, 2)], ("b", "a"), id="worst first"),
        pytest.param([Visited("a", 40, 1)], (), id="at the limit it stays"),
        pytest.param([Visited("a", 70, 0)], (), id="without a pod there is nothing to leave"),
        pytest.param([Visited("a", None, 1)], (), id="not measured"),
    ],
)
def test_which_nodes_are_left(nodes: list[Visited], left: tuple[str, ...]) -> None:
    assert leave(nodes, LIMITS) == left
