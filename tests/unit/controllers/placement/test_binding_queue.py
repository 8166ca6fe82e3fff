"""Whose decision is bound next."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.placement.binding_queue import BindingQueue


def filled(*items: str, workers: int = 100) -> BindingQueue[str]:
    """A queue of items such as ``a1``, whose first letter is the namespace."""
    queue: BindingQueue[str] = BindingQueue(workers)
    for item in items:
        queue.put(item[0], item)
    return queue


async def drained(queue: BindingQueue[str], *, keep: str = "") -> list[str]:
    """All items in their order; work on those of the namespaces in `keep` never ends."""
    found = []
    while len(queue):
        namespace, item = await queue.get()
        found.append(item)
        if namespace not in keep:
            queue.done(namespace)
    return found


@pytest.mark.parametrize(
    ("items", "order"),
    [
        pytest.param("a1 a2 a3", "a1 a2 a3", id="one-namespace-in-order"),
        pytest.param("a1 a2 a3 b1", "a1 b1 a2 a3", id="the-other-is-next"),
        pytest.param("a1 a2 b1 b2 c1", "a1 b1 c1 a2 b2", id="turns"),
        pytest.param("b1 a1", "b1 a1", id="turns-by-arrival-not-by-name"),
    ],
)
async def test_order(items: str, order: str) -> None:
    assert await drained(filled(*items.split())) == order.split()


async def test_whoever_has_fewest_in_work_is_next() -> None:
    queue = filled("a1", "a2", "a3", "a4", "b1", "b2", "b3")
    assert await drained(queue, keep="a") == ["a1", "b1", "b2", "b3", "a2", "a3", "a4"]


@pytest.mark.parametrize(
    ("workers", "at_work"),
    [
        pytest.param(1, [1, 0, 0], id="one"),
        pytest.param(4, [3, 1, 0], id="four"),
        pytest.param(32, [24, 6, 2], id="as-by-default"),
    ],
)
async def test_bindings_that_hang_leave_workers_to_others(workers: int, at_work: list[int]) -> None:
    queue, taken = filled(workers=workers), Counter[str]()

    async def hang() -> None:
        namespace, _ = await queue.get()
        taken[namespace] += 1

    waiters = [asyncio.create_task(hang()) for _ in range(workers)]
    for namespace in "abc":
        for number in range(workers):
            queue.put(namespace, f"{namespace}{number}")
        for _ in range(3):
            await asyncio.sleep(0)
    assert [taken[namespace] for namespace in "abc"] == at_work
    assert all(waiter.done() for waiter in waiters)


async def test_work_that_ends_lets_others_of_its_namespace_be_next() -> None:
    queue = filled("a1", "a2", "a3", "a4", workers=4)
    waiters = [asyncio.create_task(queue.get()) for _ in range(4)]
    await asyncio.sleep(0)
    assert [waiter.done() for waiter in waiters] == [True, True, True, False]
    queue.done("a")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert waiters[-1].result() == ("a", "a4")


async def test_an_item_wakes_whoever_waits() -> None:
    queue = filled()
    waiters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    for item in ("a1", "b1", "a2"):
        queue.put(item[0], item)
    assert sorted(await asyncio.gather(*waiters)) == [("a", "a1"), ("a", "a2"), ("b", "b1")]


async def test_a_cancelled_waiter_takes_nothing() -> None:
    queue = filled()
    waiter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    queue.put("a", "a1")
    assert await queue.get() == ("a", "a1")


@given(st.lists(st.sampled_from("abc"), max_size=40))
def test_nothing_is_lost_and_turns_are_fair(namespaces: list[str]) -> None:
    items = [f"{namespace}{number:02}" for number, namespace in enumerate(namespaces)]
    queue = filled(*items)
    total = Counter(namespaces)
    assert {name: queue.waiting(name) for name in "abc"} == {name: total[name] for name in "abc"}
    order = asyncio.run(drained(queue))
    assert sorted(order) == sorted(items)
    for name in "abc":
        own = [item for item in order if item[0] == name]
        assert own == sorted(own)
        # Whoever has the k-th turn of a namespace waited for at most k turns of each other one.
        for turn, item in enumerate(own):
            before = Counter(each[0] for each in order[: order.index(item)])
            assert all(before[other] <= turn + 1 for other in "abc" if other != name)
