"""The old pod of a move serves on where fewer others do than should, for a while."""

from __future__ import annotations

from datetime import timedelta

import pytest

from berth.api.latencypolicy import LatencyPolicyStatus, Move, Outcome, Surge
from berth.scheduling.latency import moves, per_user
from berth.scheduling.latency.decision import decide
from berth.scheduling.latency.situation import Evict, Pod, View
from berth.scheduling.latency.user_table import UserTable
from tests.support.latency import NOW, later, policy

NODES = ("a", "b", "c")
SECONDS = moves.HELD.total_seconds()


def going(outcome: Outcome = Outcome.EVICTING) -> LatencyPolicyStatus:
    """Two pods should serve, and the one on a goes to c: the new one has been ready since NOW."""
    move = Move(
        pod="old",
        source_node="a",
        target_node="c",
        reason="MoreUsers",
        outcome=outcome,
        start_time=later(-10),
        ready_time=NOW,
        new_pod="new",
    )
    return LatencyPolicyStatus(moves=(move,), surge=Surge(replicas=2, previous=2, wanted=3, seen=True))


CASES = [
    pytest.param({"old", "other", "new"}, 1, ["old"], id="as many others serve"),
    pytest.param({"old", "new"}, 1, [], id="another has failed: it stays"),
    pytest.param({"old", "new"}, SECONDS - 1, [], id="for a while"),
    pytest.param({"old", "new"}, SECONDS, ["old"], id="and goes where the other is broken for good"),
    pytest.param({"new"}, 1, ["old"], id="it does not serve itself"),
    pytest.param({"old", "other"}, SECONDS, [], id="the new one has failed"),
]


def view(ready: set[str]) -> View:
    places = {"old": "a", "other": "b", "new": "c"}
    return View(tuple(Pod(name, node, ready=name in ready) for name, node in places.items()), 2, NODES, NODES)


@pytest.mark.parametrize(("ready", "at", "evicted"), CASES)
def test_where_all_users_count_as_one(ready: set[str], at: float, evicted: list[str]) -> None:
    found = decide(going(), policy(hard=40), view(ready), later(at))
    assert [action.pod for action in found.actions if isinstance(action, Evict)] == evicted


@pytest.mark.parametrize(("ready", "at", "evicted"), CASES)
def test_where_each_user_counts(ready: set[str], at: float, evicted: list[str]) -> None:
    spec = policy(hard=40, users={"mode": "PerUser"})
    found = per_user.decide(going(), spec, view(ready), UserTable(), later(at))
    assert [action.pod for action in found.actions if isinstance(action, Evict)] == evicted


@pytest.mark.parametrize("mode", ["Single", "PerUser"])
def test_it_is_looked_at_again_when_that_is_over(mode: str) -> None:
    spec, there, now = policy(hard=40, users={"mode": mode}), view({"old", "new"}), later(SECONDS - 5)
    if mode == "Single":
        again = decide(going(), spec, there._replace(active=False), now).look_again
    else:
        again = per_user.decide(going(), spec, there, UserTable(), now).look_again
    assert again is not None
    assert again - now <= timedelta(seconds=5)
