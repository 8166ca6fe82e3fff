"""Users of whom each counts, and whom agents had no turn to measure: they are asked about again, and not at once."""

from __future__ import annotations

import pytest

from controllers.latency.crowd import REFRESH, Crowd
from tests.support.latency import NOW, later
from tests.unit.controllers.latency.test_crowd import answer, serve, told

ADDRESS = "203.0.113.7"


@pytest.fixture
def crowd() -> Crowd:
    found = Crowd(NOW)
    serve(found, told("u", 20_000, address=ADDRESS))
    assert found.due(NOW, bool) == [ADDRESS]
    return found


def test_who_had_no_turn_is_asked_about_again(crowd: Crowd) -> None:
    crowd.had_no_turn(ADDRESS, NOW)
    assert crowd.due_at(NOW) == NOW + REFRESH
    assert crowd.due(later(5), bool) == []
    assert crowd.due(NOW + REFRESH, bool) == [ADDRESS]


def test_who_has_answered_another_agent_is_asked_about_as_before(crowd: Crowd) -> None:
    answer(crowd, ADDRESS, 20_000)
    before = crowd.due_at(NOW)
    crowd.had_no_turn(ADDRESS, NOW)
    assert crowd.due_at(NOW) == before


def test_who_was_not_asked_about_is_not_known(crowd: Crowd) -> None:
    before = crowd.due_at(NOW)
    crowd.had_no_turn("203.0.113.9", NOW)
    assert crowd.due_at(NOW) == before
