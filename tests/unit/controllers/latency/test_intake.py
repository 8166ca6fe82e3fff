"""How often somebody may speak, and that a message counts once."""

from __future__ import annotations

import pytest

from controllers.latency.intake import Rate, Sequences
from tests.support.placement import Clock


def test_so_many_at_once_then_so_many_a_second_for_each() -> None:
    clock = Clock()
    rate = Rate(2.0, 3.0, clock)
    assert [rate.allows("a") for _ in range(5)] == [True, True, True, False, False]
    assert rate.allows("b")
    clock.advance(1.0)
    assert [rate.allows("a") for _ in range(3)] == [True, True, False]
    clock.advance(3600.0)
    assert [rate.allows("a") for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize(
    ("messages", "new"),
    [
        pytest.param([("i", 1), ("i", 2)], [True, True], id="one after the other"),
        pytest.param([("i", 1), ("i", 1)], [True, False], id="again"),
        pytest.param([("i", 2), ("i", 1)], [True, False], id="an older one"),
        pytest.param([("i", 9), ("j", 1)], [True, True], id="another process"),
    ],
)
def test_what_is_new(messages: list[tuple[str, int]], new: list[bool]) -> None:
    sequences = Sequences()
    assert [sequences.is_new("uid", *message) for message in messages] == new
    assert sequences.is_new("other", *messages[0])
