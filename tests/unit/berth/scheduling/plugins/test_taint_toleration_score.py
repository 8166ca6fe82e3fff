"""TaintToleration's score: soft taints."""

from __future__ import annotations

from typing import Any

import pytest

from berth.scheduling.plugins.taint_toleration import TaintToleration
from tests.support.builders import node, pod
from tests.support.filtering import cluster, scores


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([], {"none": 100, "one": 50, "two": 0}, id="fewer-are-better"),
        pytest.param([{"key": "k", "operator": "Exists"}], {"none": 100, "one": 100, "two": 0}, id="tolerated"),
        pytest.param([{"operator": "Exists"}], {"none": 100, "one": 100, "two": 100}, id="all-tolerated"),
        pytest.param(
            [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
            {"none": 100, "one": 50, "two": 0},
            id="toleration-of-another-effect",
        ),
    ],
)
def test_soft_taints(tolerations: list[dict[str, Any]], expected: dict[str, float]) -> None:
    nodes = [
        node("none", taints=["k:NoSchedule"]),
        node("one", taints=["k:PreferNoSchedule"]),
        node("two", taints=["k:PreferNoSchedule", "j:PreferNoSchedule"]),
    ]
    assert scores(TaintToleration(), pod("new", spec={"tolerations": tolerations}), cluster(nodes)) == expected
