"""A pass over a policy during whose decision, in a thread, something changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from berth.api.latency_exchange import UserRoundTrips
from controllers.latency.reconciler import CONFLICT_DELAY
from tests.unit.controllers.latency.test_reconciler import FAR, KEY, Stand, refused, running, stand
from tests.unit.controllers.latency.test_workloads import autoscaler

__all__ = ["refused", "stand"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda stand: stand.workloads.deployment_changed(None, running(3)), id="the number of replicas"),
        pytest.param(lambda stand: stand.workloads.deployment_changed(running(1), None), id="the Deployment is gone"),
        pytest.param(lambda stand: stand.workloads.autoscaler_changed(None, autoscaler()), id="an autoscaler came"),
        pytest.param(lambda stand: stand.policies.remove(KEY), id="the policy is gone"),
        pytest.param(lambda stand: stand.wants(version="2", users={"mode": "Single"}), id="the policy says otherwise"),
    ],
)
async def test_nothing_follows_from_a_decision_about_what_has_changed_meanwhile(
    stand: Stand,
    change: Callable[[Stand], object],
) -> None:
    stand.wants(users={"mode": "PerUser", "minReplicas": 2, "maxReplicas": 4}, hardMaxLatency=40)
    users = [UserRoundTrips("u", (FAR,) * 3)]
    stand.observations.served(KEY, "a", users, datetime.now(UTC), each=True)
    deciding = asyncio.create_task(stand.reconciler.reconcile(KEY))
    await asyncio.sleep(0)
    change(stand)
    await deciding
    assert stand.writes == []
    assert CONFLICT_DELAY in stand.queue.delays
