"""How old watches are, and how they ended; with kopf: tests/integration/test_operator.py."""

from __future__ import annotations

import pytest

from berth.runtime.watch_ages import WatchAges

Step = tuple[str, float]


def new() -> WatchAges:
    return WatchAges(lasts=60.0, silent=70.0)


@pytest.mark.parametrize(
    ("steps", "now", "age"),
    [
        pytest.param([], 50.0, None, id="no watch yet"),
        pytest.param([("requested", 0.0)], 50.0, None, id="never answered"),
        pytest.param([("requested", 0.0), ("answered", 1.0)], 50.0, 49.0, id="the first answer"),
        pytest.param(
            [("requested", 0.0), ("answered", 1.0), ("requested", 61.0), ("answered", 62.0)],
            70.0,
            8.0,
            id="ended by the server in time",
        ),
        pytest.param(
            [("requested", 0.0), ("answered", 1.0), ("requested", 71.0), ("answered", 72.0)],
            80.0,
            79.0,
            id="given up as silent: the next answer proves nothing",
        ),
        pytest.param(
            [(step, 71.0 * number) for number in range(3) for step in ("requested", "answered")],
            200.0,
            200.0,
            id="silent again and again",
        ),
        pytest.param(
            [
                ("requested", 0.0),
                ("answered", 1.0),
                ("requested", 71.0),
                ("answered", 72.0),
                ("requested", 132.0),
                ("answered", 133.0),
            ],
            140.0,
            7.0,
            id="silent, then ended in time",
        ),
        pytest.param(
            [("requested", 0.0), ("answered", 1.0), ("requested", 20.0), ("requested", 150.0), ("answered", 151.0)],
            160.0,
            9.0,
            id="cut, and answered after a long outage",
        ),
    ],
)
def test_age_of_a_watch(steps: list[Step], now: float, age: float | None) -> None:
    ages = new()
    for step, at in steps:
        getattr(ages, step)("pods", at)
    assert ages.age("pods", now) == age


@pytest.mark.parametrize(
    ("steps", "broken"),
    [
        pytest.param([("requested", 0.0), ("answered", 1.0)], False, id="the first"),
        pytest.param([("requested", 0.0), ("answered", 1.0), ("requested", 61.0)], False, id="ended in time"),
        pytest.param([("requested", 0.0), ("answered", 1.0), ("requested", 31.0)], True, id="cut"),
        pytest.param([("requested", 0.0), ("answered", 1.0), ("requested", 71.0)], True, id="given up as silent"),
        pytest.param(
            [("requested", 0.0), ("answered", 1.0), ("requested", 9.0), ("requested", 10.0)], True, id="twice"
        ),
    ],
)
def test_a_watch_that_was_broken_off_is_told_once(steps: list[Step], broken: bool) -> None:
    ages = new()
    for step, at in steps:
        getattr(ages, step)("pods", at)
    assert [ages.was_broken("pods"), ages.was_broken("pods"), ages.was_broken("nodes")] == [broken, False, False]


@pytest.mark.parametrize(
    ("lasted", "hasty"),
    [
        pytest.param([0.5, 0.1], [0, 1, 2], id="ended at once, and again"),
        pytest.param([0.5, 60.0, 0.5], [0, 1, 0, 1], id="the last ones in a row"),
        pytest.param([1.0], [0, 0], id="a second is enough"),
    ],
)
def test_watches_that_end_at_once_are_counted(lasted: list[float], hasty: list[int]) -> None:
    ages, now = new(), 100.0
    counted = []
    for seconds in lasted:
        counted.append(ages.requested("pods", now))
        ages.answered("pods", now)
        now += seconds
    counted.append(ages.requested("pods", now))
    assert counted == hasty
    # kopf sends a request that fails again, with pauses of its own.
    assert ages.requested("pods", now + 9.0) == hasty[-1]
    assert ages.requested("nodes", now) == 0
    ages.forget("pods")
    assert ages.requested("pods", now + 9.0) == 0


def test_kinds_do_not_vouch_for_each_other() -> None:
    ages = new()
    ages.answered("pods", 5.0)
    assert ages.age("nodes", 6.0) is None


def test_a_kind_that_is_followed_no_more_has_no_age_and_a_clean_slate() -> None:
    ages = new()
    for at in (0.0, 71.0, 142.0):
        ages.requested("pods", at)
        ages.answered("pods", at)
    ages.forget("pods")
    assert ages.age("pods", 150.0) is None
    ages.requested("pods", 300.0)
    ages.answered("pods", 300.0)
    assert ages.age("pods", 301.0) == 1.0
