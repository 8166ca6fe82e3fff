"""A controller whose clock jumps while users stay where they are: no pod moves for that, and none comes or goes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.latency_histories import OPEN, History

HOUR = 3600.0
REPLICAS = 2
USERS: dict[str, dict[str, Any]] = {
    "all as one": {"mode": "Single"},
    "each": {"mode": "PerUser"},
    "each, and as many pods as they need": {"mode": "PerUser", "maxReplicas": REPLICAS, "minReplicas": REPLICAS},
}


@pytest.mark.parametrize("users", USERS.values(), ids=USERS)
@pytest.mark.parametrize(
    "jumps",
    [
        pytest.param([HOUR], id="ahead"),
        pytest.param([-HOUR], id="back"),
        pytest.param([HOUR, 0.0, HOUR, 0.0], id="to and fro"),
    ],
)
@settings(max_examples=2, derandomize=True)
@given(seed=st.integers(0, 10_000))
async def test_nothing_moves_for_a_clock(users: dict[str, Any], jumps: list[float], seed: int) -> None:
    moves = {"coolDownSeconds": 10, "maxPerHour": 12}
    history = History(
        seed, REPLICAS, {"targetRef": {"name": "web"}, "hardMaxLatency": 60, "moves": moves, "users": users}
    )
    await history.run(150, step=2.0)
    while any(move["outcome"] in OPEN for move in history.moves):
        await history.run(10)
    began, places = len(history.moves), sorted(web.node for web in history.pods.values())
    for ahead in jumps:
        history.ahead = ahead
        await history.run(150, step=2.0)
        assert history.scale == REPLICAS
    assert sorted(web.node for web in history.pods.values()) == places
    assert len(history.moves) == began
    associations = history.policy["status"].get("associations", [])
    assert len(associations) == (len(history.far) if len(history.far) > 1 else 0)


@pytest.mark.parametrize("users", USERS.values(), ids=USERS)
@settings(max_examples=2, derandomize=True)
@given(seed=st.integers(0, 10_000))
async def test_pods_follow_users_one_at_a_time_while_it_jumps(users: dict[str, Any], seed: int) -> None:
    """What holds at any time is looked at all the while: as many serve as before, and one more is there at most."""
    moves = {"coolDownSeconds": 10}
    history = History(
        seed, REPLICAS, {"targetRef": {"name": "web"}, "hardMaxLatency": 60, "moves": moves, "users": users}
    )
    history.jumps = 0.02
    for _ in range(3):
        await history.run(60, step=1.0)
        history.go_elsewhere()
    history.jumps = 0.0
    await history.run(60, step=1.0)
    quiet = len(history.moves)
    await history.run(300, step=3.0)
    assert len(history.moves) - quiet <= REPLICAS + 1, "moves come to an end"
    while any(move["outcome"] in OPEN for move in history.moves):
        await history.run(10)
    await history.run(30)
    assert history.scale == REPLICAS
    assert sum(web.serves for web in history.pods.values()) == REPLICAS
