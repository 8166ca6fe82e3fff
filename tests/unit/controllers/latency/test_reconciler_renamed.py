"""A policy that is deleted while a pod moves, and another of the same workload that comes at once: it was renamed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from berth.api.latency_exchange import UserRoundTrips
from berth.api.latencypolicy import API_VERSION, KIND
from berth.kube.errors import ApiError
from controllers.latency.raised import SETTLED_AFTER
from controllers.latency.reconciler import CONFLICT_DELAY
from controllers.latency.scaler import AGAIN
from tests.support.api_server import Answer, refusal
from tests.unit.controllers.latency.test_reconciler import FAR, KEY, NEAR, Stand, moving, pod, refused, running, stand
from tests.unit.controllers.latency.test_workloads import policy

__all__ = ["refused", "stand"]
RENAMED = "shop/near"


@pytest.fixture
def delays(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """When which policy is due again."""
    found: list[tuple[str, float]] = []

    def add(key: str, *, delay: float = 0.0) -> None:
        found.append((key, delay))

    monkeypatch.setattr(stand.queue, "add", add)
    return found


def rename(stand: Stand, **spec: Any) -> None:
    stand.policies.remove(KEY)
    stand.policies.written(policy("near", **spec).document(api_version=API_VERSION, kind=KIND))
    for node, far in {"a": FAR, "b": NEAR}.items():
        stand.observations.served(RENAMED, node, [UserRoundTrips("u", (far,) * 15)], datetime.now(UTC))


async def test_it_waits_until_what_the_one_before_raised_is_let_down(
    stand: Stand, delays: list[tuple[str, float]]
) -> None:
    """It would take one replica more for as many as there should be, and raise that in turn, for ever."""
    stand.wants(moving(seen=True))
    stand.workloads.deployment_changed(None, running(2))
    stand.appears(pod("web-2", "u2", "b"))
    stand.measured(a=FAR, b=NEAR)
    await stand.reconciler.reconcile(KEY)
    rename(stand)
    assert await stand.reconciler.reconcile(KEY)
    assert await stand.reconciler.reconcile(RENAMED)
    assert [kind for kind, _ in stand.writes] == ["status", "eviction"]
    assert (RENAMED, CONFLICT_DELAY) in delays
    stand.clock.advance(SETTLED_AFTER.total_seconds())
    assert not await stand.reconciler.reconcile(KEY)
    assert await stand.reconciler.reconcile(RENAMED)
    assert [kind for kind, _ in stand.writes] == ["status", "eviction", "scale", "status"]


async def test_it_waits_for_no_policy_of_another_workload(stand: Stand, delays: list[tuple[str, float]]) -> None:
    stand.wants(moving(seen=True))
    rename(stand, targetRef={"name": "db"})
    assert await stand.reconciler.reconcile(RENAMED)
    assert [kind for kind, _ in stand.writes] == ["status"]


async def test_who_wonders_is_told_where_nothing_may_be_let_down(
    stand: Stand, refused: dict[str, Answer], delays: list[tuple[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would wait for ever without a word."""
    monkeypatch.setattr(stand.reconciler._scaler, "_clock", stand.clock)
    refused["scale"] = refusal(403, "Forbidden")
    stand.wants(moving(seen=True))
    stand.workloads.deployment_changed(None, running(2))
    rename(stand)
    with pytest.raises(ApiError):
        await stand.reconciler.reconcile(KEY)
    assert await stand.reconciler.reconcile(RENAMED)
    found = stand.policies.get(RENAMED)
    assert found is not None
    [told] = [each for each in found.status.conditions if each.type == "Working"]
    assert (told.reason, found.status.surge) == ("ReplicasLeft", None)
    assert "the number of replicas may not be set: words" in told.message
    [(key, delay)] = delays
    assert (key, delay) == (RENAMED, pytest.approx(AGAIN, abs=1))
    refused.clear()
    stand.clock.advance(AGAIN)
    assert not await stand.reconciler.reconcile(KEY)
    assert await stand.reconciler.reconcile(RENAMED)
    assert [kind for kind, _ in stand.writes] == ["scale", "status", "scale", "status", "scale"], "it goes on"
