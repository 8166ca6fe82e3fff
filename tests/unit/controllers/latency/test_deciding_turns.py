"""Users whom agents have no turn to measure, as others have the share: they do not count as users who do not answer."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.latency_exchange import ProbeAnswer, UserRoundTrips
from berth.api.latencypolicy import Exploration, LatencyPolicySpec
from berth.scheduling.latency.situation import Create
from controllers.latency.orders import SHARE_AT_ONCE, TURN_AWAITED
from tests.support.latency import later
from tests.unit.controllers.latency.test_deciding import KEY, Room

FLOOD = [f"203.0.113.{at}" for at in range(1, 4 * int(SHARE_AT_ONCE) + 1)]


class Waiting(Room):
    """A user beyond the limit, who counts as one with all others."""

    def __init__(self, **spec: Any) -> None:
        super().__init__(mode="Single")
        fields = self.policy.spec.to_api() | spec
        self.policy = self.policy.model_copy(update={"spec": LatencyPolicySpec.model_validate(fields)})

    async def look(self, at: float) -> tuple[list[str], bool]:
        """What a pass does at a time: the nodes whose agents are asked, and whether a pod goes to explore."""
        self.clock.now = 1000.0 + at
        self.observations.served(KEY, "a", [UserRoundTrips("u", (90_000,), 0.0, "203.0.113.1")], later(at))
        found = await self.choose(at)
        explores = any(isinstance(action, Create) for action in found.actions)
        asked = [] if explores else await self.probes(at)
        return asked, explores

    async def answered(self, **fields: Any) -> None:
        """Have all agents answer what they were asked."""
        for node in self.nodes:
            for order in await self.orders.wait(node, 0):
                self.orders.answer(node, ProbeAnswer(order.id, **fields))


@pytest.mark.parametrize(
    "spec", [pytest.param({}, id="for a limit"), pytest.param({"objective": "Minimum"}, id="for the minimum")]
)
async def test_no_pod_explores_while_its_namespace_has_had_its_share(spec: dict[str, Any]) -> None:
    room = Waiting(exploration=[Exploration.REVERSE_PROBE, Exploration.MIGRATE], **spec)
    room.orders.ask("shop/other", ["a"], FLOOD[: int(SHARE_AT_ONCE) + 40])
    for at in (0, 4, 8, 12):
        assert await room.look(at) == ([], False)
    turn = 12 + room.orders.pause(KEY)
    assert await room.look(turn) == (["a", "b", "c"], False), "as soon as it has a turn"
    await room.answered()
    assert await room.look(turn + 1) == ([], True), "nobody answered"


async def test_a_turn_is_not_awaited_for_ever() -> None:
    room = Waiting()
    room.orders.ask("shop/other", ["a"], FLOOD)
    assert await room.look(0) == ([], False)
    assert await room.look(TURN_AWAITED - 1) == ([], False)
    assert await room.look(TURN_AWAITED) == ([], True)


async def test_users_who_come_after_a_time_without_any_are_awaited_as_the_first_were() -> None:
    """Nobody was measured in between: that they had no turn then is no reason for a pod to explore at once now."""
    room = Waiting()
    room.orders.ask("shop/other", ["a"], FLOOD)
    assert await room.look(0) == ([], False)
    room.clock.now = 1000.0 + 2000
    assert not (await room.choose(2000)).view.active
    room.clock.now = 1000.0 + 4000
    room.orders.ask("shop/other", ["a"], FLOOD)
    assert await room.look(4000) == ([], False)
    assert await room.look(4000 + TURN_AWAITED) == ([], True)


async def test_who_had_no_turn_at_the_agents_is_asked_again() -> None:
    room = Waiting()
    assert await room.look(0) == (["a", "b", "c"], False)
    await room.answered(refused="its turn did not come", no_turn=True)
    assert await room.look(6) == ([], False)
    assert (await room.choose(6)).status.unreachable_time is None
    assert await room.look(15) == (["a", "b", "c"], False)
    await room.answered()
    assert await room.look(16) == ([], True), "nobody answered"


async def test_an_agent_that_may_not_measure_at_all_is_not_awaited() -> None:
    room = Waiting()
    assert await room.look(0) == (["a", "b", "c"], False)
    await room.answered(refused="the kernel does not let the agent send ICMP")
    assert await room.look(1) == ([], True)
