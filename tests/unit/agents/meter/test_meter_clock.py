"""A meter whose machine's clock is set while it runs."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

from tests.support.proxying import answering, application
from tests.unit.agents.meter.test_meter import OK, Stand, metering, rejected, stated


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    async with application(answering(OK)) as app, metering(app) as found:
        yield found


@pytest.mark.parametrize("seconds", [3600.0, -3600.0], ids=["ahead", "back"])
async def test_users_are_as_far_as_before(stand: Stand, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    real, before = time.time, [rejected(reason) for reason in ("absurd", "negative")]
    async with stand.client() as client:
        await client.ask(f"X-Timestamp: {stated()}")
        [user] = stand.table
        [connection] = stand.meter._connections.values()
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: real() + seconds)
            found = stand.meter._stated(user, connection, f"{1000 * (real() - 5):.3f}", None, time.monotonic())
    assert isinstance(found, int)
    # Twice 5 s and, on a busy machine, what one of both requests took: far from twice an hour.
    assert 5_000_000 <= found < 60_000_000
    assert [rejected(reason) for reason in ("absurd", "negative")] == before
