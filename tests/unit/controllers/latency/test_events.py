"""What Events of policies say, and when there is none."""

from __future__ import annotations

import pytest

from berth.api.conditions import Condition, ConditionUpdate
from berth.api.latencypolicy import CONDITION_MOVING, CONDITION_WORKING, Move, Outcome, Surge
from berth.kube.events import Reference
from controllers.latency.events import condition_changed, eviction_refused, move_news, resized, taken_over
from tests.support.latency import NOW, later

POLICY = Reference("berth.dev/v1alpha1", "LatencyPolicy", "shop", "web", "uid")


def move(outcome: Outcome = Outcome.CREATING, **fields: object) -> Move:
    stated = {"pod": "web-1", "source_node": "a", "target_node": "b", "reason": "Nearer", "start_time": NOW}
    return Move.model_validate({**stated, "outcome": outcome, **fields})


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([], [], [], id="none"),
        pytest.param([], [move()], [("MoveBegun", "web-1 from a to b, Nearer", False)], id="begun, without any figure"),
        pytest.param(
            [],
            [move(before_microseconds=90_000, expected_microseconds=12_340)],
            [("MoveBegun", "web-1 from a to b, Nearer: before 90.0 ms, expected 12.3 ms", False)],
            id="begun, with what is expected",
        ),
        pytest.param([move()], [move(Outcome.TRYING)], [], id="goes on"),
        pytest.param([move()], [move(Outcome.EVICTING)], [], id="goes on, the old pod has to go"),
        pytest.param(
            [move(Outcome.EVICTING)], [move(Outcome.MOVED)], [("MoveMoved", "web-1 from a to b", False)], id="moved"
        ),
        pytest.param(
            [move(Outcome.MOVED)],
            [move(Outcome.CONFIRMED, after_microseconds=12_000)],
            [("MoveConfirmed", "web-1 from a to b: after 12.0 ms", False)],
            id="confirmed",
        ),
        pytest.param(
            [move(Outcome.MOVED)],
            [move(Outcome.DISAPPOINTED, expected_microseconds=10_000, after_microseconds=80_000)],
            [("MoveDisappointed", "web-1 from a to b: expected 10.0 ms, after 80.0 ms", True)],
            id="disappointed, a warning",
        ),
        pytest.param(
            [move()],
            [move(Outcome.CANCELLED)],
            [("MoveCancelled", "web-1 from a to b; node b is gone", True)],
            id="given up, a warning",
        ),
        pytest.param([move(Outcome.CANCELLED)], [move(Outcome.CANCELLED)], [], id="said already"),
        pytest.param([move(Outcome.MOVED)], [], [], id="forgotten, as old ones are"),
        pytest.param(
            [move(Outcome.CONFIRMED)],
            [move(Outcome.CONFIRMED), move(start_time=later(60))],
            [("MoveBegun", "web-1 from a to b, Nearer", False)],
            id="a pod of the same name moves again, as those of a StatefulSet do",
        ),
    ],
)
def test_moves_that_begin_and_end_are_told_once(
    before: list[Move], after: list[Move], expected: list[tuple[str, str, bool]]
) -> None:
    notes = move_news(POLICY, before, after, {"web-1": "node b is gone"})
    assert [(note.reason, note.message, note.warning) for note in notes] == expected
    assert {note.regarding for note in notes} <= {POLICY}


@pytest.mark.parametrize(
    ("surge", "before", "expected"),
    [
        pytest.param(Surge(replicas=3, previous=2, wanted=3), 2, ["From 2 to 3 pods, for 7 users"], id="one more"),
        pytest.param(Surge(replicas=1, previous=2, wanted=1), 2, ["From 2 to 1 pod, for 7 users"], id="one less"),
        pytest.param(
            Surge(replicas=2, previous=2, wanted=2, leaving="web-2"),
            2,
            ["From 2 to 1 pod, for 7 users"],
            id="one less, which is evicted first",
        ),
        pytest.param(Surge(replicas=2, previous=1, wanted=2), 2, [], id="as many as before"),
    ],
)
def test_another_number_of_replicas_is_told(surge: Surge, before: int, expected: list[str]) -> None:
    notes = resized(POLICY, surge, before, users=7)
    assert [note.message for note in notes] == expected
    assert not any(note.warning for note in notes)


@pytest.mark.parametrize(
    ("past", "update", "expected"),
    [
        pytest.param([], ("Working", False, "NoSuchWorkload"), ["NoSuchWorkload"], id="does not work from the start"),
        pytest.param([("Working", "True", "AsAsked")], ("Working", False, "Gone"), ["Gone"], id="not any more"),
        pytest.param([("Working", "False", "Gone")], ("Working", False, "Gone"), [], id="said already"),
        pytest.param([("Working", "False", "Gone")], ("Working", False, "Other"), ["Other"], id="for another reason"),
        pytest.param([("Working", "False", "Gone")], ("Working", True, "AsAsked"), [], id="works again"),
        pytest.param([], (CONDITION_MOVING, False, "CoolDown"), [], id="what changes all the time"),
    ],
)
def test_a_policy_that_does_not_work_is_told_once(
    past: list[tuple[str, str, str]], update: tuple[str, bool, str], expected: list[str]
) -> None:
    before = [
        Condition.model_validate(
            {"type": kind, "status": status, "reason": reason, "message": "", "last_transition_time": NOW}
        )
        for kind, status, reason in past
    ]
    notes = condition_changed(POLICY, before, ConditionUpdate(*update, "Why."))
    assert [note.reason for note in notes] == expected
    assert all(note.warning and note.message == "Why." for note in notes)
    assert CONDITION_WORKING == "Working"


def test_how_every_policy_begins_is_no_warning() -> None:
    [note] = condition_changed(POLICY, [], ConditionUpdate(CONDITION_WORKING, False, "NotMeasured", "Wait."))
    assert (note.reason, note.warning) == ("NotMeasured", False)


@pytest.mark.parametrize(
    ("note", "reason", "words"),
    [
        pytest.param(eviction_refused(POLICY, "web-1", "a budget"), "EvictionRefused", ["web-1", "a budget"], id="pdb"),
        pytest.param(taken_over(POLICY, 3, 5), "ReplicasChanged", ["set to 5", "it was 3", "stays"], id="replicas"),
    ],
)
def test_what_others_keep_from_happening_is_a_warning(note: object, reason: str, words: list[str]) -> None:
    assert (note.reason, note.warning, note.regarding) == (reason, True, POLICY)  # type: ignore[attr-defined]
    assert [word for word in words if word not in note.message] == []  # type: ignore[attr-defined]
