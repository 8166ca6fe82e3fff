"""A namespace whose policies have had their share of the node agents waits, so that others' users are measured, too."""

from __future__ import annotations

from datetime import timedelta

import pytest

from berth.api.latency_exchange import UserRoundTrips
from controllers.latency.orders import SHARE_AT_ONCE
from tests.support.latency import NOW, later
from tests.unit.controllers.latency.test_deciding import KEY, Room

ADDRESSES = [f"203.0.113.{at}" for at in range(1, int(SHARE_AT_ONCE) + 1)]


@pytest.mark.parametrize("mode", ["Single", "PerUser"])
@pytest.mark.parametrize(
    ("other", "probed"),
    [pytest.param("shop/other", [], id="of its namespace"), pytest.param("else/web", ["a", "b", "c"], id="of another")],
)
async def test_a_policy_waits_while_others_have_the_share(mode: str, other: str, probed: list[str]) -> None:
    room = Room(mode=mode)
    users = [UserRoundTrips("u", (90_000,), 0.0, "203.0.113.1")]
    room.observations.served(KEY, "a", users, NOW, each=mode == "PerUser")
    room.orders.ask(other, ["a"], ADDRESSES)
    found = await room.choose()
    assert await room.probes(0) == probed
    if probed:
        return
    pause = room.orders.pause(KEY)
    wait = min(each for each in found.times if each is not None and each > NOW) - NOW
    assert wait >= timedelta(seconds=pause), "it is not looked at all the while"
    room.clock.advance(pause)
    seconds = max(pause, 15.0)
    room.observations.served(KEY, "a", users, later(seconds), each=mode == "PerUser")
    assert await room.probes(seconds) == ["a", "b", "c"]
