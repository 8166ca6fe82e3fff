"""A meter whose machine's clock is set while it runs, or was wrong when it began; and one that was suspended."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

from berth.kube.lease import boot_clock
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
            found = stand.meter._stated(user, connection, f"{1000 * (real() - 5):.3f}", None, boot_clock())
    assert isinstance(found, int)
    # Twice 5 s and, on a busy machine, what one of both requests took: far from twice an hour.
    assert 5_000_000 <= found < 60_000_000
    assert [rejected(reason) for reason in ("absurd", "negative")] == before


@pytest.mark.parametrize("days", [400, -400], ids=["behind", "ahead"])
async def test_stated_times_count_once_a_clock_is_right_that_was_days_off(
    days: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a machine without a battery until it has heard of the time."""
    real, before = time.time, rejected("absurd")
    monkeypatch.setattr(time, "time", lambda: real() - 86_400 * days)
    async with application(answering(OK)) as app, metering(app) as stand, stand.client() as client:
        monkeypatch.setattr(time, "time", real)
        await client.ask(f"X-Timestamp: {stated()}")
        assert rejected("absurd") == before + 1
        stand.meter.look()
        [user], [connection] = stand.table, stand.meter._connections.values()
        found = stand.meter._stated(user, connection, stated(), 1000, boot_clock())
        assert found is None, "it is believed, and compared with what the kernel says"
        found = stand.meter._stated(user, connection, stated(-5), None, boot_clock())
    assert isinstance(found, int)
    assert 9_000_000 <= found < 60_000_000, "twice 5 s"
    assert rejected("absurd") == before + 1


async def test_offsets_of_clients_do_not_outlive_the_clock_that_they_are_of(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    async with stand.client() as client:
        await client.ask(f"X-Timestamp: {stated()}")
        [user], [connection] = stand.table, stand.meter._connections.values()
        monkeypatch.setattr(time, "time", lambda: real() + 86_400 * 400)
        stand.meter.look()
        assert stand.meter._stated(user, connection, stated(-5), None, boot_clock()) is None


async def test_who_came_before_the_machine_was_suspended_is_forgotten(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stand.client() as client:
        await client.ask()
    assert len(stand.table) == 1
    real = time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda which: real(which) + 3600 * (which == time.CLOCK_BOOTTIME))
    stand.meter.look()
    assert len(stand.table) == 0
