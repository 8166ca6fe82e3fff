"""What a sender may send within an hour."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.node.throughput import ledger as module
from agents.node.throughput.ledger import HOUR, Ledger


@pytest.mark.parametrize(
    ("sent", "now", "expected"),
    [
        pytest.param([], 0.0, 100, id="nothing yet"),
        pytest.param([("a", 30, 0.0)], 1.0, 70, id="the rest"),
        pytest.param([("a", 30, 0.0), ("a", 70, 10.0)], 11.0, 0, id="all of it"),
        pytest.param([("a", 130, 0.0)], 1.0, 0, id="more than it might"),
        pytest.param([("a", 0, 0.0)], 1.0, 90, id="a test counts as a tenth at least"),
        pytest.param([("b", 100, 0.0)], 1.0, 100, id="what others sent"),
        pytest.param([("a", 30, 0.0), ("a", 70, 10.0)], HOUR, 30, id="an hour after the first"),
        pytest.param([("a", 30, 0.0), ("a", 70, 10.0)], HOUR + 10, 100, id="an hour after all"),
    ],
)
def test_allowed(sent: list[tuple[str, int, float]], now: float, expected: int) -> None:
    made = Ledger(100)
    for sender, size, at in sent:
        made.add(sender, size, at)
    assert made.allowed("a", now) == expected


def test_senders_beyond_those_remembered_send_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SENDERS", 2)
    made = Ledger(100)
    for sender in ("a", "b"):
        made.add(sender, 1, 0.0)
    assert (made.allowed("a", 1.0), made.allowed("c", 1.0)) == (90, 0)
    assert made.allowed("c", HOUR) == 100


@given(st.lists(st.tuples(st.floats(0, 1000), st.integers(0, 200)), max_size=40))
def test_nobody_sends_more_than_the_limit_within_an_hour(steps: list[tuple[float, int]]) -> None:
    made, now, sent = Ledger(100), 0.0, []
    for wait, wanted in steps:
        now += wait
        size = min(wanted, made.allowed("a", now))
        made.add("a", size, now)
        sent.append((now, size))
        assert sum(size for at, size in sent if at > now - HOUR) <= 100


@pytest.mark.parametrize("limit", [1, 5, 1000, 10**11])
@pytest.mark.parametrize("size", [0, 1])
def test_a_sender_has_ten_tests_an_hour_at_most(limit: int, size: int) -> None:
    """Each is remembered and keeps others waiting, also one that sends nothing."""
    made, tests = Ledger(limit), 0
    while made.allowed("a", float(tests)):
        made.add("a", size, float(tests))
        tests += 1
        assert tests <= 10
    assert tests == min(limit, 10)
