"""Conditions: update, keep, find. How controllers use them is tested with the controllers."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.conditions import MAX_MESSAGE, Condition, ConditionStatus, ConditionUpdate, apply, find_condition

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


def conditions(*pairs: tuple[str, bool]) -> tuple[Condition, ...]:
    result: tuple[Condition, ...] = ()
    for name, status in pairs:
        result = apply(result, [ConditionUpdate(name, status, "Set", "")], observed_generation=1, now=NOON)
    return result


def test_a_new_condition_is_appended() -> None:
    before = conditions(("Ordered", True))
    update = ConditionUpdate("Placed", False, "Waiting", "2 pods wait")
    after = apply(before, [update], observed_generation=3, now=LATER)
    assert [item.type for item in after] == ["Ordered", "Placed"]
    assert after[1].to_api() == {
        "type": "Placed",
        "status": "False",
        "observedGeneration": 3,
        "lastTransitionTime": "2026-01-31T12:05:00Z",
        "reason": "Waiting",
        "message": "2 pods wait",
    }
    assert after[0] == before[0]


@pytest.mark.parametrize(
    ("status", "expected"),
    [(True, NOON), (ConditionStatus.TRUE, NOON), (False, LATER), (ConditionStatus.UNKNOWN, LATER)],
    ids=["same", "same-by-name", "false", "unknown"],
)
def test_the_transition_time_moves_only_with_the_status(status: ConditionStatus | bool, expected: datetime) -> None:
    before = conditions(("Ordered", True), ("Placed", True))
    update = ConditionUpdate("Ordered", status, "Again", "another message")
    after = apply(before, [update], observed_generation=2, now=LATER)
    assert after[0].last_transition_time == expected
    assert (after[0].reason, after[0].message, after[0].observed_generation) == ("Again", "another message", 2)
    assert [item.type for item in after] == ["Ordered", "Placed"]


def test_writing_the_same_state_again_changes_nothing() -> None:
    before = conditions(("Ordered", True))
    again = apply(before, [ConditionUpdate("Ordered", True, "Set", "")], observed_generation=1, now=LATER)
    assert again == before


def test_a_long_message_is_cut_to_what_the_api_takes() -> None:
    update = ConditionUpdate("Ordered", False, "Cycle", "x" * (MAX_MESSAGE + 9))
    after = apply((), [update], observed_generation=1, now=NOON)
    assert len(after[0].message.encode()) == MAX_MESSAGE
    assert after[0].message.endswith("…")


def test_what_a_message_quotes_forges_no_line_and_commands_no_terminal() -> None:
    update = ConditionUpdate("Ordered", False, "Cycle", 'no "a\nStatus: True\x1b[2J\u202e\udcff"')
    after = apply((), [update], observed_generation=1, now=NOON)
    assert after[0].message == 'no "a\\nStatus: True\\x1b[2J\\u202e\\udcff"'


def test_several_updates_are_made_together() -> None:
    before = conditions(("Theirs", True), ("Placed", True))
    updates = [ConditionUpdate("Placed", False, "Waiting", ""), ConditionUpdate("Ordered", True, "Set", "")]
    after = apply(before, updates, observed_generation=2, now=LATER)
    assert [(item.type, item.status.value) for item in after] == [
        ("Theirs", "True"),
        ("Placed", "False"),
        ("Ordered", "True"),
    ]
    assert after[0] == before[0]


def test_find() -> None:
    have = conditions(("Ordered", True), ("Placed", False))
    assert find_condition(have, "Placed") is have[1]
    assert find_condition(have, "Other") is None


def test_times_are_written_in_utc_and_whole_seconds() -> None:
    moment = datetime(2026, 1, 31, 14, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=2)))
    item = Condition(type="A", status=ConditionStatus.TRUE, last_transition_time=moment, reason="R", message="")
    assert item.to_api()["lastTransitionTime"] == "2026-01-31T12:00:00Z"


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ABC"), st.booleans()), max_size=12))
def test_types_stay_unique_and_the_last_word_wins(history: list[tuple[str, bool]]) -> None:
    have = conditions(*history)
    last = dict(history)
    assert {item.type: item.status is ConditionStatus.TRUE for item in have} == last
    assert len(have) == len(last)
