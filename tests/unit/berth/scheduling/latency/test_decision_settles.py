"""A new pod counts once it was ready for as long as its Deployment says (minReadySeconds), as in a rollout."""

from __future__ import annotations

from datetime import timedelta

import pytest

from berth.api.latencypolicy import LatencyPolicyStatus, Move, Outcome
from berth.scheduling.latency import moves
from berth.scheduling.latency.decision import Decision, decide
from berth.scheduling.latency.situation import Evict, Pod, View
from tests.support.latency import again, later, policy

NODES = ("a", "b", "c")
STARTED = LatencyPolicyStatus(
    moves=(
        Move(
            pod="old",
            source_node="a",
            target_node="b",
            reason="BeyondHardLimit",
            outcome=Outcome.CREATING,
            start_time=later(0),
            expected_microseconds=20_000,
        ),
    )
)


def look(status: LatencyPolicyStatus, at: float, *, ready: bool, settles: float, other: bool = True) -> Decision:
    """What another controller decides of what one has written."""
    pods = (Pod("old", "a"), Pod("new", "b", ready), Pod("other", "c", other))
    view = View(pods, 2, NODES, NODES, settles=timedelta(seconds=settles))
    return decide(again(status), policy(hard=80), view, later(at))


def evicted(found: Decision) -> list[str]:
    return [action.pod for action in found.actions if isinstance(action, Evict)]


@pytest.mark.parametrize("settles", [0, 1, 30, 900])
def test_the_old_pod_goes_once_the_new_one_was_ready_for_so_long(settles: float) -> None:
    found = look(STARTED, 5, ready=True, settles=settles)
    assert evicted(found) == (["old"] if not settles else [])
    if not settles:
        return
    assert found.look_again is not None
    assert found.look_again <= later(5 + settles)
    before = look(found.status, 5 + settles - 0.5, ready=True, settles=settles)
    assert (evicted(before), before.status.moves[0].outcome) == ([], Outcome.CREATING)
    after = look(before.status, 5 + settles, ready=True, settles=settles)
    assert (evicted(after), after.status.moves[0].outcome) == (["old"], Outcome.EVICTING)


def test_a_pod_that_fails_again_begins_anew_and_one_that_goes_on_so_is_given_up() -> None:
    status = STARTED
    for at in range(0, int(moves.PATIENCE.total_seconds()) + 60, 10):
        found = look(status, at, ready=at % 20 == 0, settles=30)
        assert "old" not in evicted(found)
        status = found.status
    assert [move.outcome for move in status.moves] == [Outcome.CANCELLED]
    assert [(known.node, known.rejections) for known in status.nodes] == [("b", 1)]


def test_the_old_pod_is_held_from_then_on_where_fewer_others_serve_than_should() -> None:
    status = look(STARTED, 0, ready=True, settles=120).status
    found = look(status, 120, ready=True, settles=120, other=False)
    assert evicted(found) == []
    held = moves.HELD.total_seconds()
    assert evicted(look(found.status, 120 + held, ready=True, settles=120, other=False)) == ["old"]
