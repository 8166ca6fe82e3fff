"""Which containers the runtime is to hear of, and when it is told again."""

from __future__ import annotations

import pytest

from agents.node.pinning.untold import REFUSED_SECONDS, REST_SECONDS, Untold
from agents.node.pinning.writer import Way, Written

TOLD = Written(Way.RUNTIME)
NOT_ASKED = Written(Way.DIRECT, "there was no time", answered=False)
AWAITED = Written(Way.DIRECT, "no answer yet", answered=False, awaited=True)
REFUSED = Written(Way.DIRECT, "it starts", answered=True)
UNKNOWN = Written(Way.DIRECT)


@pytest.mark.parametrize(
    ("written", "waits"),
    [
        pytest.param(TOLD, None, id="it was told"),
        pytest.param(UNKNOWN, None, id="it knows no such container"),
        pytest.param(NOT_ASKED, 0.0, id="it did not answer"),
        pytest.param(REFUSED, REFUSED_SECONDS, id="it refused"),
    ],
)
def test_when_it_is_told_again(written: Written, waits: float | None) -> None:
    untold = Untold(["a"])
    assert untold.waiting(0.0) == ["a"]
    untold.note("a", written, 100.0)
    found = [after for after in (0.0, REFUSED_SECONDS - 1, REFUSED_SECONDS) if untold.waiting(100.0 + after)]
    assert (found[0] if found else None) == waits


def test_those_that_wait_longest_come_first_and_others_are_forgotten() -> None:
    untold = Untold("abc")
    untold.note("a", NOT_ASKED, 1.0)
    assert untold.waiting(1.0) == ["b", "c", "a"]
    untold.keep({"a", "c"})
    assert untold.waiting(1.0) == ["c", "a"]
    untold.later("c", 1.0)
    assert untold.waiting(1.0) == ["a"]


def test_one_that_is_still_to_be_answered_is_the_next() -> None:
    untold = Untold("abc")
    untold.note("a", NOT_ASKED, 1.0)
    untold.note("c", AWAITED, 1.0)
    assert untold.waiting(1.0) == ["c", "b", "a"]


def test_a_runtime_that_rests_is_told_of_nothing() -> None:
    untold = Untold("a")
    untold.rest(1.0)
    assert untold.waiting(REST_SECONDS) == []
    assert untold.waiting(1.0 + REST_SECONDS) == ["a"]


def test_nobody_hurries_for_one_that_did_not_answer_last() -> None:
    untold = Untold("abc")
    assert untold.hurried(1.0)
    untold.rest(1.0)
    assert not untold.hurried(1.0 + REST_SECONDS)
    untold.note("a", NOT_ASKED, 1.0 + REST_SECONDS)
    assert not untold.hurried(1.0 + REST_SECONDS)
    untold.note("a", TOLD, 1.0 + REST_SECONDS)
    assert untold.hurried(1.0 + REST_SECONDS)
