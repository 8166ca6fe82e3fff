"""Orders for node agents: each for one node, answered once by that node; and when users count as silent."""

from __future__ import annotations

import asyncio

import pytest

from berth.api.latency_exchange import ProbeAnswer
from controllers.latency.orders import MOST_WAITING, PATIENCE, SHARE, SHARE_AT_ONCE, Orders, Sent
from tests.support.placement import Clock

POLICY = "shop/web"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def orders(clock: Clock) -> Orders:
    return Orders(clock)


async def test_each_node_gets_its_own(orders: Orders) -> None:
    orders.ask(POLICY, ["a", "b"], ["203.0.113.7", "203.0.113.8"])
    found = {node: await orders.wait(node, 0) for node in ("a", "b", "c")}
    assert [[order.address for order in found[node]] for node in found] == [["203.0.113.7", "203.0.113.8"]] * 2 + [[]]
    assert len({order.id for node in found for order in found[node]}) == 4
    assert await orders.wait("a", 0) == (), "they are told once"


async def test_who_waits_is_told_at_once(orders: Orders) -> None:
    waiting = asyncio.create_task(orders.wait("a", 60))
    await asyncio.sleep(0)
    orders.ask(POLICY, ["a"], ["203.0.113.7"])
    assert [order.address for order in await waiting] == ["203.0.113.7"]


async def test_what_is_asked_anew_takes_the_place_of_what_was_asked(orders: Orders) -> None:
    orders.ask(POLICY, ["a"], ["203.0.113.7"])
    orders.ask(POLICY, ["a"], ["203.0.113.8"])
    assert [order.address for order in await orders.wait("a", 0)] == ["203.0.113.8"]


async def test_a_node_without_agent_collects_no_more_than_so_many(orders: Orders) -> None:
    for at in range(MOST_WAITING + 5):
        orders.ask(f"shop/{at}", ["a"], ["203.0.113.7"])
    assert len(await orders.wait("a", 0)) == MOST_WAITING


async def test_another_node_cannot_answer_nor_the_same_one_twice(orders: Orders) -> None:
    orders.ask(POLICY, ["a"], ["203.0.113.7"])
    [order] = await orders.wait("a", 0)
    answer = ProbeAnswer(order.id, (9_000,))
    assert orders.answer("b", answer) is None
    assert orders.answer("a", answer) == Sent(POLICY, "a", "203.0.113.7")
    assert orders.answer("a", answer) is None
    assert orders.answer("a", ProbeAnswer("made up", (1,))) is None


@pytest.mark.parametrize(
    ("answers", "passed", "silent"),
    [
        pytest.param([(), (9_000,)], 0.0, False, id="one node got an answer"),
        pytest.param([(), ()], 0.0, True, id="none did"),
        pytest.param([()], 0.0, False, id="one may still"),
        pytest.param([()], PATIENCE, True, id="it took too long"),
        pytest.param([(9_000,)], PATIENCE, False, id="one took too long, another got an answer"),
    ],
)
async def test_users_are_silent(
    orders: Orders, clock: Clock, answers: list[tuple[int, ...]], passed: float, silent: bool
) -> None:
    orders.ask(POLICY, ["a", "b"], ["203.0.113.7"])
    for node, microseconds in zip(("a", "b"), answers, strict=False):
        [order] = await orders.wait(node, 0)
        assert orders.answer(node, ProbeAnswer(order.id, microseconds)) == Sent(POLICY, node, "203.0.113.7")
    clock.advance(passed)
    assert orders.silent(POLICY) is silent
    assert not orders.silent(POLICY), "it is told once"


@pytest.mark.parametrize(
    ("comes", "again"),
    [
        pytest.param("a", True, id="of a node that was asked"),
        pytest.param("c", False, id="of another"),
    ],
)
async def test_what_nobody_fetched_is_asked_again_once_an_agent_comes(
    orders: Orders, clock: Clock, comes: str, again: bool
) -> None:
    orders.ask(POLICY, ["a", "b"], ["203.0.113.7"])
    clock.advance(PATIENCE)
    assert orders.silent(POLICY)
    assert not orders.agents_came(POLICY)
    assert await orders.wait(comes, 0) == ()
    assert orders.agents_came(POLICY) is again
    assert not orders.agents_came(POLICY), "it is told once"


async def test_an_agent_that_has_measured_changes_nothing_by_coming_again(orders: Orders, clock: Clock) -> None:
    orders.ask(POLICY, ["a", "b"], ["203.0.113.7"])
    [order] = await orders.wait("a", 0)
    orders.answer("a", ProbeAnswer(order.id))
    clock.advance(PATIENCE)
    assert orders.silent(POLICY)
    assert await orders.wait("b", 0) == ()
    assert not orders.agents_came(POLICY)


async def test_who_fetches_late_has_time_to_measure(orders: Orders, clock: Clock) -> None:
    orders.ask(POLICY, ["a"], ["203.0.113.7"])
    clock.advance(PATIENCE - 1)
    [order] = await orders.wait("a", 0)
    clock.advance(PATIENCE - 1)
    assert (orders.silent(POLICY), orders.awaited(POLICY)) == (False, True)
    orders.answer("a", ProbeAnswer(order.id, (9_000,)))
    clock.advance(1)
    assert not orders.silent(POLICY)


async def test_who_fetches_too_late_is_asked_again(orders: Orders, clock: Clock) -> None:
    orders.ask(POLICY, ["a"], ["203.0.113.7"])
    clock.advance(PATIENCE)
    assert len(await orders.wait("a", 0)) == 1
    assert orders.silent(POLICY)
    assert await orders.wait("a", 0) == ()
    assert orders.agents_came(POLICY)


async def test_what_is_answered_before_it_was_fetched_does_no_harm(orders: Orders) -> None:
    orders.ask(POLICY, ["a"], ["203.0.113.7"])
    [number] = orders._sent
    assert orders.answer("a", ProbeAnswer(number)) is not None
    assert len(await orders.wait("a", 0)) == 1


def test_users_of_no_address_are_silent_at_once(orders: Orders) -> None:
    assert not orders.silent(POLICY)
    orders.ask(POLICY, ["a"], [])
    assert orders.silent(POLICY)


async def test_nothing_is_kept_of_nodes_and_policies_that_are_gone(orders: Orders, clock: Clock) -> None:
    for at in range(100):
        node = f"n{at}"
        assert await orders.wait(node, 0) == ()
        orders.ask(f"shop/{at}", [node], ["203.0.113.7"])
        clock.advance(PATIENCE)
        assert orders.silent(f"shop/{at}")
        assert await orders.wait(node, 0) == ()
        orders.ask(f"shop/{at}", [node], ["203.0.113.7"])
        orders.forget(f"shop/{at}")
    kept = (orders._waiting, orders._news, orders._sent, orders._rounds, orders._missed, orders._come)
    assert [len(each) for each in kept] == [0] * len(kept)


async def test_one_that_goes_away_leaves_the_other_waiting_who_came_in_its_place(orders: Orders) -> None:
    old, new = (asyncio.create_task(orders.wait("a", 60)) for _ in range(2))
    await asyncio.sleep(0)
    old.cancel()
    await asyncio.wait({old})
    orders.ask(POLICY, ["a"], ["203.0.113.7"])
    assert len(await new) == 1


async def test_two_that_wait_for_one_node_are_both_woken(orders: Orders) -> None:
    waiting = [asyncio.create_task(orders.wait("a", 60)) for _ in range(2)]
    await asyncio.sleep(0)
    orders.ask(POLICY, ["a"], ["203.0.113.7"])
    found = await asyncio.gather(*waiting)
    assert sorted(len(each) for each in found) == [0, 1]


async def test_what_another_controller_asked_for_is_no_answer(orders: Orders, clock: Clock) -> None:
    """An agent tells it to whoever leads next, whose first order is about somebody else."""
    before = Orders(clock)
    before.ask(POLICY, ["a"], ["203.0.113.7"])
    [order] = await before.wait("a", 0)
    orders.ask(POLICY, ["a"], ["203.0.113.8"])
    assert orders.answer("a", ProbeAnswer(order.id, (9_000,))) is None


def test_a_namespace_has_its_share_of_agents_however_many_policies_it_has(orders: Orders, clock: Clock) -> None:
    """Agents measure one order after another: others' would not have their turn before they are given up."""
    addresses = [f"203.0.113.{at}" for at in range(5)]
    asked, seconds = 0, 120
    for _ in range(seconds):
        for at in range(100):
            if not orders.pause(f"shop/{at}"):
                orders.ask(f"shop/{at}", ["a"], addresses)
                asked += len(addresses)
        assert orders.pause("others/web") == 0
        clock.advance(1)
    assert SHARE * seconds <= asked <= SHARE_AT_ONCE + SHARE * seconds + len(addresses)
    pause = orders.pause("shop/0")
    clock.advance(pause - 0.1)
    assert orders.pause("shop/0") > 0
    clock.advance(0.1)
    assert orders.pause("shop/0") == 0


def test_who_asks_nobody_about_anybody_takes_no_share(orders: Orders) -> None:
    for _ in range(1000):
        orders.ask(POLICY, ["a", "b"], [])
        orders.ask(POLICY, [], ["203.0.113.7"])
    assert orders.pause(POLICY) == 0
