"""Which published rule a policy asks for, and how that is told."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.latencypolicy import Objective, PublishedRule, Search, VisitedNode
from berth.scheduling.latency.published.rules import rule_of, who_decides
from tests.support.latency import NOW, policy


@pytest.mark.parametrize(
    ("spec", "rule", "why"),
    [
        pytest.param({"objective": Objective.MINIMUM, "hard": 80}, "Minimum", "objective Minimum", id="the minimum"),
        pytest.param({"hard": 80}, "Hard", "a hard limit of 80 ms", id="a hard limit"),
        pytest.param({"hard": 80, "soft": 80}, "Hard", "a hard limit of 80 ms", id="two that are one"),
        pytest.param({"hard": 80, "soft": 30}, "HardAndSoft", "a soft limit of 30 ms", id="both limits"),
        pytest.param({"soft": 30}, "HardAndSoft", "a soft limit of 30 ms", id="a soft limit alone"),
    ],
)
def test_rule_by_what_is_wanted(spec: dict[str, Any], rule: str, why: str) -> None:
    made = policy(**spec)
    assert rule_of(made) == rule
    visited = (VisitedNode(node="a", visits=1, left=True), VisitedNode(node="b", visits=1))
    text = who_decides(Search(rule=PublishedRule(rule), start_time=NOW, round_time=NOW, visited=visited), made)
    assert f"rule {rule} decides, for {why}" in text
    assert "2 nodes visited, 1 left" in text
