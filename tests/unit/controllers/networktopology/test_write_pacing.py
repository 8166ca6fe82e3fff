"""Which differences of weights are written when, where measuring never ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.conditions import Condition, ConditionStatus
from berth.api.networktopology import NetworkTopologyStatus
from controllers.networktopology.weights import Ownership
from controllers.networktopology.write_pacing import (
    REFRESH_SECONDS,
    WRITE_SECONDS,
    data_time,
    seconds_until_words,
    seconds_until_write,
)
from tests.support.topologies import Stated, weight_set

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
THEIRS = weight_set("UserDefined", zones={"a>b": 5})


def sets(zones: Stated, regions: Stated | None = None) -> list[dict[str, Any]]:
    return [weight_set(name, zones=zones, regions=regions) for name in ("Dijkstra", "NetperfCosts")]


def wait(before: list[dict[str, Any]], after: list[dict[str, Any]], *, ago: float = 0.0, names: str = "") -> float:
    """Seconds, with both sets written so long ago."""
    owned = Ownership(frozenset((names or "Dijkstra NetperfCosts").split()), NOW - timedelta(seconds=ago))
    return seconds_until_write([THEIRS, *before], after, owned, NOW)


@pytest.mark.parametrize(
    ("before", "after", "interval"),
    [
        pytest.param({"a>b": 100}, {"a>b": 110}, REFRESH_SECONDS, id="a tenth"),
        pytest.param({"a>b": 100}, {"a>b": 90}, REFRESH_SECONDS, id="a tenth less"),
        pytest.param({"a>b": 100}, {"a>b": 111}, WRITE_SECONDS, id="more than a tenth"),
        pytest.param({"a>b": 3}, {"a>b": 4}, REFRESH_SECONDS, id="one unit"),
        pytest.param({"a>b": 3}, {"a>b": 5}, WRITE_SECONDS, id="two units of few"),
        pytest.param({"a>b": 3}, {"a>b": 3, "b>a": 3}, WRITE_SECONDS, id="a pair comes"),
        pytest.param({"a>b": 3, "b>a": 3}, {"a>b": 3}, WRITE_SECONDS, id="a pair goes"),
        pytest.param({"a>b": {"bandwidthCapacity": "1G"}}, {"a>b": 3}, WRITE_SECONDS, id="no cost before"),
    ],
)
def test_seconds_until_write(before: Stated, after: Stated, interval: float) -> None:
    for ago in (0.0, 1.0, interval - 1, interval, 10 * interval):
        assert wait(sets(before), sets(after), ago=ago) == max(0.0, interval - ago)
    assert wait(sets({}, before), sets({}, after)) == interval


@pytest.mark.parametrize(
    ("after", "names"),
    [
        pytest.param(sets({"a>b": 3}), "Dijkstra", id="one is not ours any more"),
        pytest.param(sets({"a>b": 3})[:1], "", id="a set goes"),
        pytest.param([], "", id="all go"),
    ],
)
def test_sets_that_come_and_go_do_not_wait(after: list[dict[str, Any]], names: str) -> None:
    assert wait(sets({"a>b": 3}), after, names=names) == 0.0


def test_the_first_write_does_not_wait() -> None:
    assert seconds_until_write([], sets({"a>b": 3}), Ownership(), NOW) == 0.0


@pytest.mark.parametrize(
    ("ago", "expected"),
    [
        pytest.param(-1, WRITE_SECONDS, id="nearly the same time"),
        pytest.param(-WRITE_SECONDS, WRITE_SECONDS, id="half a minute"),
        pytest.param(-WRITE_SECONDS - 1, 0.0, id="more than it would wait: every later look would find the same"),
        pytest.param(-86_400, 0.0, id="a day"),
    ],
)
def test_a_write_of_the_future_is_that_of_another_clock(ago: float, expected: float) -> None:
    assert wait(sets({"a>b": 3}), sets({"a>b": 9}), ago=ago) == expected


def test_a_row_without_costs_is_one_that_differs() -> None:
    """The kind lets whoever may edit a set leave out costList."""
    before = sets({"a>b": 3})
    del before[0]["topologyList"][0]["originList"][0]["costList"]
    assert wait(before, sets({"a>b": 3})) == WRITE_SECONDS


@given(before=st.integers(1, 10_000), after=st.integers(1, 10_000), ago=st.floats(0, 1000))
def test_whatever_changes_is_written_within_the_refresh(before: int, after: int, ago: float) -> None:
    left = wait(sets({"a>b": before}), sets({"a>b": after}), ago=ago)
    assert 0.0 <= left <= max(0.0, REFRESH_SECONDS - ago) + 1e-6
    if abs(after - before) > max(1, before / 10):
        assert left <= WRITE_SECONDS


@pytest.mark.parametrize(
    ("shown", "measured", "expected"), [(None, 0, 0), (0, None, None), (0, 59, 0), (0, 60, 60), (100, 0, 0)]
)
def test_data_time_moves_by_the_minute(shown: int | None, measured: int | None, expected: int | None) -> None:
    def moment(seconds: int | None) -> datetime | None:
        return None if seconds is None else NOW + timedelta(seconds=seconds)

    assert data_time(moment(shown), moment(measured)) == moment(expected)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"message": "other words"}, 20.0, id="another message waits"),
        pytest.param({"reason": "Other", "message": "other words"}, 20.0, id="another reason too"),
        pytest.param({"status": ConditionStatus.FALSE, "reason": "Other"}, 0.0, id="what holds no more does not"),
    ],
)
def test_words_wait_and_what_they_are_about_does_not(change: dict[str, Any], expected: float) -> None:
    condition = Condition(
        type="SourceAvailable", status=ConditionStatus.TRUE, last_transition_time=NOW, reason="Read", message="words"
    )
    shown, wanted = (
        NetworkTopologyStatus(conditions=(item,)) for item in (condition, condition.model_copy(update=change))
    )
    assert seconds_until_words(shown, wanted, NOW - timedelta(seconds=10), NOW) == expected
