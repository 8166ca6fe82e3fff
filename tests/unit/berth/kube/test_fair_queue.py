"""Whose item is next, what slow work leaves to others, and what is dropped of a full queue."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube import fair_queue
from berth.kube.fair_queue import FairQueue, Turn
from tests.support.kube import running, until


def filled(*items: str, workers: int = 100, capacity: int | None = None) -> FairQueue[str]:
    """A queue of items such as ``a1``, whose first letter is the namespace."""
    queue: FairQueue[str] = FairQueue(workers, capacity=capacity)
    for item in items:
        queue.put(item[0], item)
    return queue


async def drained(queue: FairQueue[str], *, keep: str = "") -> list[str]:
    """All items in their order; work on those of the namespaces in `keep` never ends."""
    found = []
    while len(queue):
        turn = await queue.get()
        found.append(turn.item)
        if turn.namespace not in keep:
            queue.done(turn)
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


async def test_whoever_has_fewest_at_work_is_next() -> None:
    queue = filled("a1", "a2", "a3", "a4", "b1", "b2", "b3")
    assert await drained(queue, keep="a") == ["a1", "b1", "b2", "b3", "a2", "a3", "a4"]


@pytest.mark.parametrize(
    ("workers", "prompt", "at_work"),
    [
        pytest.param(1, "abc", [1, 0, 0], id="one"),
        pytest.param(4, "abc", [3, 1, 0], id="four"),
        pytest.param(48, "abc", [36, 9, 3], id="as-by-default"),
        pytest.param(1, "", [1, 0, 0], id="one-for-unknown-ones"),
        pytest.param(4, "c", [3, 0, 1], id="one-of-four-is-for-prompt-ones"),
        pytest.param(48, "c", [27, 7, 11], id="a-quarter-is-for-prompt-ones"),
        pytest.param(48, "", [27, 7, 2], id="unknown"),
    ],
)
async def test_a_namespace_leaves_workers_to_others(workers: int, prompt: str, at_work: list[int]) -> None:
    queue, taken = filled(workers=workers), Counter[str]()
    for namespace in prompt:
        queue._note_prompt(namespace)
    for namespace in "abc":
        for number in range(workers):
            queue.put(namespace, f"{namespace}{number}")
        while (turn := queue.take()) is not None:
            taken[turn.namespace] += 1
    assert [taken[namespace] for namespace in "abc"] == at_work


async def test_work_that_ends_lets_others_of_its_namespace_be_next() -> None:
    queue = filled("a1", "a2", "a3", "a4", workers=4)
    waiters = [asyncio.create_task(queue.get()) for _ in range(4)]
    await asyncio.sleep(0)
    assert [waiter.done() for waiter in waiters] == [True, True, True, False]
    queue.done(waiters[0].result())
    assert (await waiters[-1]).item == "a4"


class Counting(FairQueue[str]):
    """Counts how often a worker looks for an item."""

    looks = 0

    def take(self) -> Turn[str] | None:
        self.looks += 1
        return super().take()


async def test_an_item_wakes_one_worker_and_not_all() -> None:
    queue = Counting(32)
    async with running(*(queue.get() for _ in range(32))):
        await asyncio.sleep(0)
        queue.looks = 0
        for number in range(3):
            queue.put("a", f"a{number}")
        await until(lambda: not len(queue), what="all items are taken")
        assert queue.looks == 3


async def test_a_worker_that_ends_when_it_is_woken_leaves_the_item_to_another() -> None:
    queue = filled(workers=4)
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    queue.put("a", "a1")
    first.cancel()
    assert (await second).item == "a1"


async def test_workers_that_ended_while_they_waited_are_not_woken() -> None:
    queue = filled(workers=4)
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    queue.put("a", "a1")
    assert (await second).item == "a1"


async def test_an_item_wakes_whoever_waits() -> None:
    queue = filled()
    waiters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    for item in ("a1", "b1", "a2"):
        queue.put(item[0], item)
    assert sorted(turn.item for turn in await asyncio.gather(*waiters)) == ["a1", "a2", "b1"]


async def test_a_cancelled_waiter_takes_nothing() -> None:
    queue = filled()
    waiter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    queue.put("a", "a1")
    assert (await queue.get()).item == "a1"


async def test_join_waits_for_what_waits_and_for_what_is_at_work() -> None:
    queue = filled("a1", "a2")
    joined = asyncio.create_task(queue.join())
    for _ in range(2):
        turn = await queue.get()
        await asyncio.sleep(0)
        assert not joined.done()
        queue.done(turn)
    await joined


class TestSlow:
    """Work that takes long: with eight workers, four of them may do it."""

    @pytest.fixture(autouse=True)
    def _short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fair_queue, "SLOW_SECONDS", 0.02)

    async def work(self, queue: FairQueue[str], ended: list[str], given_up: list[str]) -> None:
        """What a worker does; items of namespaces in capitals hang."""
        while True:
            turn = await queue.get()
            try:
                async with queue.patience(turn):
                    if turn.namespace.isupper():
                        await asyncio.Event().wait()
                ended.append(turn.item)
            except TimeoutError:
                given_up.append(turn.item)
            finally:
                queue.done(turn)

    async def after(self, items: Iterable[str], *, prompt: int) -> tuple[FairQueue[str], list[str]]:
        """The queue once so many prompt items have ended, and what was given up until then."""
        queue, ended, given_up = filled(*items, workers=8), list[str](), list[str]()
        async with running(*(self.work(queue, ended, given_up) for _ in range(8))):
            await until(lambda: len(ended) == prompt, what="all that is prompt has ended", seconds=5.0)
            # What is prompt comes to an end without a wait once the others are known.
            for number in range(50):
                queue.put("z", f"z{number}")
            await until(lambda: len(ended) == prompt + 50, what="the late ones too", seconds=5.0)
        return queue, given_up

    async def test_many_namespaces_that_hang_have_half_of_the_workers(self) -> None:
        hang = [chr(letter) for letter in range(ord("A"), ord("Z") + 1)]
        queue, given_up = await self.after([f"{one}{n}" for n in range(9) for one in hang] + ["a1"], prompt=1)
        assert 0 < len(given_up) < 3 * 26, "what is known to be slow is not begun beyond the half"
        assert queue.waiting("Z") > 0

    async def test_one_that_hangs_is_given_up_beyond_the_half(self) -> None:
        queue, given_up = await self.after([f"A{n}" for n in range(9)] + ["a1"], prompt=1)
        assert len(given_up) <= 2, "six of eight were begun, four may go on"
        assert queue.waiting("A") >= 2

    async def test_a_prompt_namespace_does_not_wait_until_others_are_known_to_be_slow(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(fair_queue, "SLOW_SECONDS", 60.0)
        queue, ended = filled("a1", workers=8), list[str]()
        async with running(*(self.work(queue, ended, []) for _ in range(8))):
            await until(lambda: ended == ["a1"], what="it is prompt")
            for letter in range(ord("A"), ord("Z") + 1):
                queue.put(chr(letter), "hangs")
            queue.put("a", "a2")
            queue.put("b", "b1")
            await until(lambda: ended == ["a1", "a2"], what="it is prompt again", seconds=2.0)
            await until(lambda: sum(queue._at_work.values()) == 6, what="two workers are kept free")
            assert queue.waiting("b") == 1, "nothing tells it from those that hang"

    async def test_slow_work_with_a_free_worker_is_not_given_up(self) -> None:
        queue = filled("a1", workers=2)
        async with queue.patience(turn := await queue.get()):
            await until(lambda: turn.slow, what="it is slow")
        queue.done(turn)
        assert not turn.slow or queue.take() is None

    @pytest.mark.parametrize(
        ("workers", "slow"),
        [
            pytest.param(1, 1, id="one"),
            pytest.param(5, 2, id="five"),
            pytest.param(32, 16, id="half"),
            pytest.param(1024, 16, id="fewer-than-connections"),
        ],
    )
    async def test_workers_for_slow_work(self, workers: int, slow: int) -> None:
        queue: FairQueue[str] = FairQueue(workers)
        for number in range(workers):
            queue._note_prompt(f"n{number}")
            queue.put(f"n{number}", "item")
        turns = [turn for _ in range(workers) if (turn := queue.take()) is not None]
        given_up: list[Turn[str]] = []

        async def hang(turn: Turn[str]) -> None:
            try:
                async with queue.patience(turn):
                    await asyncio.Event().wait()
            except TimeoutError:
                given_up.append(turn)

        async with running(*map(hang, turns)):
            await until(lambda: len(given_up) + sum(turn.slow for turn in turns) == workers, what="all are overdue")
        assert len(given_up) == workers - slow

    async def test_work_that_is_cancelled_ends_and_is_not_taken_for_given_up(self) -> None:
        queue = filled("a1")
        turn = await queue.get()

        async def hang() -> None:
            async with queue.patience(turn):
                await asyncio.Event().wait()

        task = asyncio.create_task(hang())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


class TestCapacity:
    @pytest.mark.parametrize(
        ("items", "dropped", "left"),
        [
            pytest.param("a1 a2 a3", [], "a1 a2 a3", id="full"),
            pytest.param("a1 a2 a3 a4", ["a1"], "a2 a3 a4", id="the-oldest"),
            pytest.param("a1 b1 b2 a2", ["b1"], "a1 b2 a2", id="of-the-one-with-most"),
            pytest.param("a1 a2 a3 b1 b2", ["a1", "a2"], "a3 b1 b2", id="until-another-has-most"),
            pytest.param("a1 b1 c1 d1", ["a1"], "b1 c1 d1", id="all-alike"),
        ],
    )
    def test_what_is_dropped(self, items: str, dropped: list[str], left: str) -> None:
        queue = filled(capacity=3)
        assert [found for item in items.split() if (found := queue.put(item[0], item)) is not None] == dropped
        assert len(queue) == 3
        assert sorted(asyncio.run(drained(queue))) == sorted(left.split())

    @given(st.lists(st.one_of(st.sampled_from("abcdef"), st.just("-")), max_size=80))
    def test_a_namespace_with_few_items_loses_none(self, steps: list[str]) -> None:
        """At any time, whoever loses an item had at least as many as everybody else."""
        queue, counts = filled(capacity=6), Counter[str]()
        for step in steps:
            if step == "-":
                turn = queue.take()
                assert (turn is None) == (not counts.total())
                if turn is not None:
                    counts[turn.namespace] -= 1
                    queue.done(turn)
                continue
            counts[step] += 1
            dropped = queue.put(step, step)
            assert (dropped is not None) == (counts.total() > 6)
            if dropped is not None:
                assert counts[dropped] == max(counts.values())
                counts[dropped] -= 1
            assert len(queue) == counts.total()


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
