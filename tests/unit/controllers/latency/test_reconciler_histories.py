"""Histories by chance, with views that are late and controllers that crash at any write."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.latency_histories import OPEN, History

MOST = 12
"""Moves an hour."""
SPEC: dict[str, Any] = {
    "targetRef": {"name": "web"},
    "hardMaxLatency": 60,
    "moves": {"coolDownSeconds": 10, "maxPerHour": MOST},
}


@pytest.mark.parametrize("mode", ["Single", "PerUser"])
@pytest.mark.parametrize(
    ("restarts", "failures"),
    [
        pytest.param(0.0, 0.0, id="late views alone"),
        pytest.param(0.05, 0.0, id="the controller crashes"),
        pytest.param(0.02, 0.01, id="pods fail, too"),
    ],
)
@settings(max_examples=3, derandomize=True)
@given(seed=st.integers(0, 10_000), replicas=st.integers(1, 3))
async def test_as_many_pods_serve_as_before_and_all_is_as_it_was_at_last(
    mode: str, restarts: float, failures: float, seed: int, replicas: int
) -> None:
    history = History(seed, replicas, SPEC | {"users": {"mode": mode}}, restarts, failures)
    for _ in range(3):
        await history.run(40)
        history.go_elsewhere()
    history.restarts = 0.0
    await history.run(60)
    quiet, history.failures = len(history.began), 0.0
    await history.run(300, step=3.0)
    assert len(history.began) <= MOST
    assert len(history.began) - quiet <= replicas + 1, "moves come to an end"
    while any(move["outcome"] in OPEN for move in history.moves):
        await history.run(10)
    await history.run(30)
    assert history.scale == replicas
    assert sum(web.serves for web in history.pods.values()) == replicas
