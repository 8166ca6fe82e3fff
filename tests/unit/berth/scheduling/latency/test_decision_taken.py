"""Somebody takes the new pod of a move away, when it was ready already: another is awaited on its node."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from berth.api.latencypolicy import LatencyPolicyStatus, Move, Outcome, Surge
from berth.scheduling.latency.decision import carry_on
from berth.scheduling.latency.moves import PATIENCE
from berth.scheduling.latency.situation import Pod, View
from tests.support.latency import NOW, later

SECONDS = PATIENCE.total_seconds()
NODES = ("a", "b", "c")
PODS = {
    "old": Pod("old", "a", ready=True),
    "waits": Pod("waits", "", ready=False),
    "again": Pod("again", "c", ready=False),
    "elsewhere": Pod("elsewhere", "b", ready=True),
}


def in_a_move(outcome: Outcome, *, ready_time: datetime) -> LatencyPolicyStatus:
    """The status of a policy that moves pod "old" from a to c, where "new" was ready then."""
    move = Move(
        pod="old",
        source_node="a",
        target_node="c",
        reason="BeyondHardLimit",
        outcome=outcome,
        start_time=NOW,
        ready_time=ready_time,
        new_pod="new",
    )
    return LatencyPolicyStatus(moves=(move,), surge=Surge(replicas=1, previous=1, wanted=2, seen=True))


@pytest.mark.parametrize("outcome", [Outcome.CREATING, Outcome.TRYING, Outcome.EVICTING])
@pytest.mark.parametrize(
    ("pods", "at", "found"),
    [
        pytest.param(["old"], 1, (Outcome.CREATING, None), id="none has come yet"),
        pytest.param(["old", "waits"], 1, (Outcome.CREATING, None), id="one waits for a node"),
        pytest.param(["old", "elsewhere"], 1, (Outcome.CREATING, None), id="one may come still"),
        pytest.param(["old", "again"], 1, (Outcome.CREATING, "again"), id="another has come"),
        pytest.param(["old", "waits"], SECONDS, (Outcome.CANCELLED, None), id="none came in time"),
        pytest.param([], 1, (Outcome.CANCELLED, "new"), id="both are gone"),
    ],
)
def test_another_is_awaited_for_as_long_as_the_first(
    outcome: Outcome, pods: list[str], at: float, found: tuple[Outcome, str | None]
) -> None:
    status = in_a_move(outcome, ready_time=NOW)
    view = View(tuple(PODS[name] for name in pods), 1, NODES, NODES)
    [before] = carry_on(status, view, later(1))[0].moves
    [after] = carry_on(status.model_copy(update={"moves": (before,)}), view, later(at))[0].moves
    assert (after.outcome, after.new_pod) == found


@pytest.mark.parametrize("outcome", [Outcome.TRYING, Outcome.EVICTING])
@pytest.mark.parametrize("settles", [0, 30])
def test_a_node_is_not_left_alone_for_a_pod_that_is_taken_when_no_other_may_be_awaited(
    outcome: Outcome, settles: int
) -> None:
    """A PodDisruptionBudget kept the old pod for minutes, say, so that the move began long ago."""
    view = View((PODS["old"], PODS["waits"]), 1, NODES, NODES, settles=timedelta(seconds=settles))
    status = in_a_move(outcome, ready_time=later(SECONDS - 60))
    for _ in range(2):
        status = carry_on(status, view, later(SECONDS + settles + 10))[0]
    assert [each.outcome for each in status.moves] == [Outcome.CANCELLED]
    assert not any(known.rejections for known in status.nodes)
