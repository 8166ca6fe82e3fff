"""What moves leave that are given up: the pod that was created for one goes, and no other."""

from __future__ import annotations

import pytest

from berth.api.latencypolicy import LatencyPolicyStatus, Move, Outcome, Surge
from berth.scheduling.latency.decision import decide
from berth.scheduling.latency.situation import Evict, Pod, View
from tests.support.latency import later, policy

NODES = ("a", "b", "c", "d")


def move(source: str, target: str, new: str | None, outcome: Outcome = Outcome.CANCELLED) -> Move:
    return Move(
        pod=f"on-{source}",
        source_node=source,
        target_node=target,
        reason="Nearer",
        outcome=outcome,
        start_time=later(0),
        new_pod=new,
    )


@pytest.mark.parametrize(
    ("moves", "pods", "evicted"),
    [
        pytest.param([move("a", "b", "new")], {"old": "a", "new": "b"}, ["new"], id="the pod that it was given up for"),
        pytest.param([move("a", "b", "new")], {"old": "a", "other": "b"}, [], id="one made in its place on that node"),
        pytest.param([move("a", "b", None)], {"old": "a", "other": "b"}, [], id="none had come"),
        pytest.param(
            [move("a", "b", "kept"), move("b", "c", "new", Outcome.MOVED)],
            {"kept": "b", "new": "c"},
            [],
            id="one was given up before another was made",
        ),
        pytest.param(
            [move("a", "b", "kept"), move("b", "c", "new")],
            {"kept": "b", "new": "c"},
            ["new"],
            id="one was given up before, and its pod stayed",
        ),
    ],
)
def test_what_goes(moves: list[Move], pods: dict[str, str], evicted: list[str]) -> None:
    status = LatencyPolicyStatus(moves=tuple(moves), surge=Surge(replicas=1, previous=1, wanted=2, seen=True))
    view = View(tuple(Pod(name, node) for name, node in pods.items()), 1, NODES, NODES)
    found = decide(status, policy(hard=80), view, later(60))
    assert [action.pod for action in found.actions if isinstance(action, Evict)] == evicted


def test_a_move_says_which_pod_has_come() -> None:
    status = LatencyPolicyStatus(moves=(move("a", "b", None, Outcome.CREATING),))
    view = View((Pod("on-a", "a"), Pod("new", "b", ready=False)), 1, NODES, NODES)
    [found] = decide(status, policy(hard=80), view, later(60)).status.moves
    assert (found.outcome, found.new_pod) == (Outcome.CREATING, "new")
