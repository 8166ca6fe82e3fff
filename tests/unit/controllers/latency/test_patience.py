"""What of a status is written at once, and what may wait."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.conditions import Condition, ConditionStatus
from berth.api.latencypolicy import (
    Association,
    LatencyPolicyStatus,
    NodeState,
    PublishedRule,
    Search,
    Surge,
    VisitedNode,
)
from controllers.latency.patience import LONGEST_REST, SHORT, patience, rest_after
from tests.support.latency import NOW, known, later


def routed(number: int, node: str = "a", at: float = 0) -> tuple[Association, ...]:
    return tuple(Association(user=f"u{user}", node=node, last_seen_time=later(at)) for user in range(number))


def told(reason: str, message: str) -> tuple[Condition, ...]:
    return (
        Condition(type="Moving", status=ConditionStatus.TRUE, reason=reason, message=message, last_transition_time=NOW),
    )


def searched(at: float, *visited: str) -> Search:
    nodes = tuple(VisitedNode(node=node, visits=1) for node in ("a", *visited))
    return Search(rule=PublishedRule.HARD, start_time=NOW, round_time=later(at), visited=nodes)


BEFORE: dict[str, Any] = {
    "nodes": (known("a", 20, NodeState.SOFT_VALID),),
    "associations": routed(10),
    "conditions": told("Idle", "so"),
    "search": searched(0),
}


@pytest.mark.parametrize(
    ("changed", "seconds"),
    [
        pytest.param({}, 10, id="nothing"),
        pytest.param({"nodes": (known("a", 21, NodeState.SOFT_VALID),)}, 10, id="a figure"),
        pytest.param({"nodes": (known("a", 90, NodeState.INVALID),)}, 0, id="a state"),
        pytest.param({"p50": "21.0 ms", "state": "SoftValid 10"}, 10, id="figures of users"),
        pytest.param({"conditions": told("Idle", "otherwise")}, 10, id="what a condition tells"),
        pytest.param({"conditions": told("Leaving", "so")}, 0, id="why a condition is so"),
        pytest.param({"associations": routed(10, at=9)}, 10, id="when users were heard of"),
        pytest.param({"associations": routed(10, node="b")}, 1, id="where users are routed"),
        pytest.param({"associations": routed(300, node="b")}, 3, id="of more users, later"),
        pytest.param({"associations": routed(1000)}, 10, id="of a thousand with the figures"),
        pytest.param({"fewer_time": NOW}, 10, id="since when fewer pods would do"),
        pytest.param({"search": searched(31)}, 10, id="when the last round was"),
        pytest.param({"search": searched(0, "b")}, 0, id="where a round goes"),
        pytest.param({"plan": ("a", "b")}, 0, id="the plan"),
        pytest.param({"surge": Surge(replicas=1, previous=1, wanted=2)}, 0, id="what is to be done"),
    ],
)
def test_how_long_a_status_waits(changed: dict[str, Any], seconds: float) -> None:
    before = LatencyPolicyStatus(**BEFORE)
    assert patience(before, before.model_copy(update=changed), 10) == seconds


@pytest.mark.parametrize(("took", "rest"), [(0.0, 0.0), (SHORT, 0.0), (0.03, 0.27), (0.5, 4.5), (60.0, LONGEST_REST)])
def test_a_policy_takes_a_tenth_of_the_time(took: float, rest: float) -> None:
    assert rest_after(took) == pytest.approx(rest)
