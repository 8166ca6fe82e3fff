"""Moves: how many may begin, what they gained, and what is remembered."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from berth.api.latencypolicy import MAX_MOVES, LatencyPolicyStatus, MeasurementSource, Move, Outcome
from berth.scheduling.latency import moves
from berth.scheduling.latency.knowledge import by_name, observe
from berth.scheduling.latency.situation import Pod, View
from tests.support.latency import METER, NOW, PROBE, again, later, measured, policy

EMPTY = LatencyPolicyStatus()


def move(start: float = 0, outcome: Outcome = Outcome.MOVED, **fields: object) -> Move:
    evicted = None if outcome is Outcome.CREATING else later(start + 5)
    stated = {"pod": "p", "source_node": "a", "target_node": "b", "reason": "Nearer", "start_time": later(start)}
    return Move.model_validate({**stated, "outcome": outcome, "ready_time": evicted, **fields})


def status_with(*given: Move) -> LatencyPolicyStatus:
    return LatencyPolicyStatus(moves=given)


@pytest.mark.parametrize(
    ("given", "fields", "at"),
    [
        pytest.param([], {}, later(100), id="nothing was moved"),
        pytest.param([move(0, Outcome.CREATING)], {}, None, id="one goes on"),
        pytest.param([move(0, Outcome.EVICTING)], {}, None, id="until the old pod is gone"),
        pytest.param([move(0, Outcome.CREATING)], {"max_concurrent": 2}, later(100), id="two may"),
        pytest.param(
            [move(0), move(50)], {"max_per_hour": 2}, later(3600), id="the hour is full until the first is old"
        ),
        pytest.param([move(-3500), move(50)], {"max_per_hour": 2}, later(100), id="which it is"),
        pytest.param([move(0, Outcome.CANCELLED)], {"max_per_hour": 1}, later(3600), id="those given up count"),
        pytest.param(
            [move(0, Outcome.CANCELLED, refused=True)],
            {"max_per_hour": 1},
            later(100),
            id="one that was refused does not",
        ),
        pytest.param([], {"max_per_hour": 0}, None, id="none may ever"),
    ],
)
def test_when_a_move_may_begin(given: list[Move], fields: dict[str, object], at: datetime | None) -> None:
    assert moves.may_begin(status_with(*given), policy(**fields), later(100)) == at


def test_a_quota_that_stands_for_hours_pushes_no_moves_out() -> None:
    status = status_with(*(move(number) for number in range(MAX_MOVES - 2)))
    for number in range(100):
        status = moves.begin(status, move(1000 + number, Outcome.CREATING))
        status = moves.replace(status, status.moves[-1], outcome=Outcome.CANCELLED, refused=True)
    left = [*range(MAX_MOVES - 2), 1098, 1099]
    assert [each.start_time for each in status.moves] == [later(at) for at in left]


def test_the_cool_down_begins_when_the_old_pod_went() -> None:
    spec = policy(cool_down_seconds=60)
    assert moves.cool_at(EMPTY, spec) is None
    assert moves.cool_at(status_with(move(0), move(10)), spec) == later(75)
    assert moves.cool_at(status_with(move(10, Outcome.CREATING)), spec) == later(70)


@pytest.mark.parametrize(
    ("before", "expected", "after", "outcome"),
    [
        pytest.param(70, 15, 16, Outcome.CONFIRMED, id="as promised"),
        pytest.param(70, 15, 18.7, Outcome.CONFIRMED, id="a little farther"),
        pytest.param(70, 15, 19, Outcome.DISAPPOINTED, id="a quarter farther than promised"),
        pytest.param(70, None, 60, Outcome.CONFIRMED, id="nothing was promised, and it is nearer"),
        pytest.param(70, None, 67, Outcome.DISAPPOINTED, id="hardly nearer"),
        pytest.param(None, None, 67, Outcome.CONFIRMED, id="nobody knew how far it was"),
    ],
)
def test_what_a_move_gained(before: float | None, expected: float | None, after: float, outcome: Outcome) -> None:
    given = status_with(
        move(
            before_microseconds=before and round(before * 1000),
            expected_microseconds=expected and round(expected * 1000),
        )
    )
    status = moves.judge(observe(given, policy(hard=100), [measured("b", after, 20)]), later(20))
    assert status.moves[0].outcome is outcome
    assert status.moves[0].after_microseconds == round(after * 1000)
    assert by_name(status)["b"].rejections == (outcome is Outcome.DISAPPOINTED)
    assert moves.judge(status, later(30)) == status
    assert again(status) == status


@pytest.mark.parametrize(
    ("milliseconds", "at", "source", "samples"),
    [
        pytest.param(80, 20, METER, 2, id="too few round trips"),
        pytest.param(80, 4, METER, 15, id="before the move"),
        pytest.param(80, 20, PROBE, 15, id="by a probe"),
    ],
)
def test_what_does_not_judge_a_move(milliseconds: int, at: int, source: MeasurementSource, samples: int) -> None:
    given = status_with(move(before_microseconds=70_000))
    seen = observe(given, policy(hard=100), [measured("b", milliseconds, at, source, samples)])
    assert moves.judge(seen, later(30)).moves[0].outcome is Outcome.MOVED


def test_one_round_trip_far_beyond_the_hard_limit_is_enough() -> None:
    seen = observe(status_with(move(before_microseconds=70_000)), policy(hard=40), [measured("b", 80, 20, samples=1)])
    assert moves.judge(seen, later(20)).moves[0].outcome is Outcome.DISAPPOINTED


def test_a_status_keeps_the_last_moves() -> None:
    status = EMPTY
    for number in range(MAX_MOVES + 3):
        status = moves.begin(status, move(number))
    assert [each.start_time for each in status.moves] == [later(number) for number in range(3, MAX_MOVES + 3)]


@pytest.mark.parametrize(
    ("outcome", "new", "settles", "seconds"),
    [
        pytest.param(Outcome.CREATING, None, 0, 0, id="none has come"),
        pytest.param(Outcome.CREATING, "new", 1, 1, id="one has to be ready for a while"),
        pytest.param(Outcome.EVICTING, "new", 0, 5, id="one was ready"),
        pytest.param(Outcome.EVICTING, "another", 0, 0, id="another was ready, which is gone"),
        pytest.param(Outcome.EVICTING, None, 0, 5, id="one was ready, of an unknown name"),
    ],
)
def test_a_move_is_overdue_by_what_it_waits_for(outcome: Outcome, new: str | None, settles: int, seconds: int) -> None:
    view = View((Pod("p", "a"), Pod("new", "b")), 1, ("a", "b"), ("a", "b"), settles=timedelta(seconds=settles))
    late = NOW + moves.PATIENCE + timedelta(seconds=seconds)
    assert moves.overdue(move(0, outcome, new_pod=new), view, late)
    assert not moves.overdue(move(0, outcome, new_pod=new), view, late - timedelta(seconds=1))
