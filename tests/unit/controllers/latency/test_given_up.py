"""Why moves were given up, for people: the words are those of what is looked at when it is decided."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from berth.api.latencypolicy import LatencyPolicyStatus, Move, Outcome
from berth.scheduling.latency import moves
from berth.scheduling.latency.decision import decide
from berth.scheduling.latency.situation import Pod, View
from controllers.latency.given_up import why_given_up
from tests.support.latency import known, later, policy

LATE = moves.PATIENCE.total_seconds()
OLD, NEW = Pod("old", "a"), Pod("new", "b")


@pytest.mark.parametrize(
    ("pods", "nodes", "at", "fields", "said"),
    [
        pytest.param([OLD, NEW], "ab", 10, {}, "by what is measured now it gains too little", id="pays no more"),
        pytest.param([], "ab", 10, {}, "old is gone", id="the pod is gone"),
        pytest.param([OLD, NEW], "a", 10, {}, "node b is gone", id="the node is gone"),
        pytest.param(
            [OLD, NEW._replace(node="c")],
            "ab",
            10,
            {"candidates": ("a",)},
            "b takes no pod any more, and the new one is elsewhere",
            id="the node is cordoned",
        ),
        pytest.param(
            [OLD, NEW._replace(node="c")],
            "ab",
            10,
            {"candidates": (), "active": False},
            None,
            id="nobody is known, and so not where pods may go",
        ),
        pytest.param(
            [OLD, NEW._replace(node="c")],
            "ab",
            10,
            {"candidates": ()},
            "b takes no pod any more, and the new one is elsewhere",
            id="all nodes are full",
        ),
        pytest.param([OLD], "ab", LATE, {}, "no pod came to b in time", id="none came"),
        pytest.param([OLD, NEW._replace(ready=False)], "ab", LATE, {}, "new was not ready in time", id="not ready"),
        pytest.param([OLD, NEW], "ab", LATE, {}, "old was not gone in time", id="not evicted"),
        pytest.param(
            [OLD], "ab", LATE, {"refused": "exceeded quota"}, "no pod may be created: exceeded quota", id="refused"
        ),
        pytest.param([OLD], "ab", LATE, {"settles": timedelta(seconds=60)}, None, id="time is not over"),
    ],
)
def test_what_is_said_of_a_move_that_is_given_up(
    pods: list[Pod], nodes: str, at: float, fields: dict[str, Any], said: str | None
) -> None:
    move = Move(
        pod="old",
        source_node="a",
        target_node="b",
        reason="BeyondHardLimit",
        outcome=Outcome.CREATING,
        start_time=later(0),
        expected_microseconds=20_000,
    )
    found = tuple(known(node, 20).model_copy(update={"time": later(at)}) for node in "ab")
    status = LatencyPolicyStatus(moves=(move,), nodes=found)
    view = View(tuple(pods), 1, tuple(nodes), tuple(nodes))._replace(**fields)
    [after] = decide(status, policy(hard=80), view, later(at)).status.moves
    assert (after.outcome is Outcome.CANCELLED) is (said is not None)
    if said is not None:
        assert why_given_up(status, view, later(at)) == {"old": said}


def test_nothing_is_said_of_moves_that_have_ended() -> None:
    ended = Move(
        pod="old",
        source_node="a",
        target_node="b",
        reason="Nearer",
        outcome=Outcome.MOVED,
        start_time=later(0),
    )
    assert why_given_up(LatencyPolicyStatus(moves=(ended,)), View((), 1, (), ()), later(1)) == {}
