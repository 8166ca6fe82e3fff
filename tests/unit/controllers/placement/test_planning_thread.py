"""While a plan is made the event loop goes on, and nobody else touches cache and queue."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from functools import partial

import pytest

from berth.kube.metrics import HANDLER_FAILURES
from controllers.placement import planning_thread
from controllers.placement.planning_thread import PlanningThread
from tests.support.desk import Desk
from tests.support.placement import lone


class Plan:
    """A plan that is made until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.thread = 0

    def __call__(self) -> None:
        self.thread = threading.get_ident()
        self.begun.set()
        assert self.go_on.wait(10)


async def begun(thread: PlanningThread, plan: Plan) -> asyncio.Task[None]:
    """The task of a plan that is being made."""
    task = asyncio.create_task(thread.run(plan))
    while not plan.begun.is_set():
        await asyncio.sleep(0)
    return task


def test_the_loop_goes_on_and_calls_wait_in_their_order() -> None:
    async def scenario() -> None:
        thread, plan, calls = PlanningThread(), Plan(), list[int]()
        note = thread.deferring(calls.append)
        note(0)
        assert calls == [0]
        task = await begun(thread, plan)
        waiting = asyncio.create_task(thread.idle())
        for number in range(1, 50):
            note(number)
            await asyncio.sleep(0)
        assert calls == [0]
        assert not waiting.done()
        plan.go_on.set()
        await task
        await waiting
        assert calls == list(range(50))
        assert plan.thread != threading.get_ident()
        note(50)
        assert calls[-1] == 50

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("patience", "turns"), [pytest.param(30.0, False, id="short-plan"), pytest.param(0.0, True, id="long-plan")]
)
def test_the_loop_goes_on_beside_long_plans_only(patience: float, turns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads that compute at a time cost more than one after the other."""
    monkeypatch.setattr(planning_thread, "PATIENCE", patience)

    async def scenario() -> None:
        thread, others = PlanningThread(), list[int]()
        at_the_end = list[int]()

        def plan() -> None:
            # A long plan lasts until the loop has had turns, a short one does not wait for any.
            while turns and len(others) < 3:
                pass
            at_the_end.append(len(others))

        async def other() -> None:
            while True:
                others.append(1)
                await asyncio.sleep(0)

        task = asyncio.create_task(thread.run(plan))
        ticking = asyncio.create_task(other())
        await task
        ticking.cancel()
        assert (at_the_end[0] > 0) is turns

    asyncio.run(scenario())


@pytest.mark.parametrize("patience", [0.0, 1e-5, 1e-4], ids=str)
def test_no_plan_is_lost_however_short(patience: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan may end at the very moment at which the loop begins to wait for it."""
    monkeypatch.setattr(planning_thread, "PATIENCE", patience)

    async def scenario() -> None:
        thread, made = PlanningThread(), list[int]()
        async with asyncio.timeout(60):
            for number in range(1000):
                await thread.run(partial(made.append, number))
        assert made == list(range(1000))

    asyncio.run(scenario())


def test_what_the_plan_tells_is_told_on_the_loop() -> None:
    class Listener:
        def __init__(self) -> None:
            self.heard: list[tuple[str, int, int]] = []

        def decided(self, pod: str, *, number: int) -> None:
            self.heard.append((pod, number, threading.get_ident()))

    async def scenario() -> None:
        thread, listener = PlanningThread(), Listener()
        await thread.run(partial(thread.listener(listener).decided, "p", number=1))
        assert listener.heard == [("p", 1, threading.get_ident())]

    asyncio.run(scenario())


def test_after_a_cancellation_nobody_touches_the_cache_any_more() -> None:
    async def scenario() -> None:
        thread, plan, calls = PlanningThread(), Plan(), list[int]()
        task = await begun(thread, plan)
        thread.deferring(calls.append)(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        thread.deferring(calls.append)(2)
        assert calls == []
        assert task.cancelled()
        plan.go_on.set()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(ValueError("odd pod"), "odd pod", id="an-error"),
        pytest.param(StopIteration(), "raised StopIteration", id="no-next"),
    ],
)
def test_a_plan_that_fails_gives_the_cache_back(error: Exception, told: str) -> None:
    async def scenario() -> None:
        thread, calls = PlanningThread(), list[str]()

        def plan() -> None:
            thread.deferring(calls.append)("said before")
            raise error

        with pytest.raises((ValueError, RuntimeError), match=told):
            await thread.run(plan)
        assert calls == ["said before"]
        await thread.idle()

    asyncio.run(scenario())


def test_one_odd_call_does_not_keep_the_others() -> None:
    async def scenario() -> None:
        thread, calls = PlanningThread(), list[int]()

        def plan() -> None:
            thread.deferring(lambda: 1 / 0, "pods")()  # type: ignore[arg-type]
            thread.deferring(calls.append)(1)

        failures = HANDLER_FAILURES.labels("pods")
        before = failures._value.get()
        await thread.run(plan)
        assert calls == [1]
        assert failures._value.get() == before + 1

    asyncio.run(scenario())


def test_the_controllers_handlers_and_bindings_keep_off_while_it_plans(desk: Desk) -> None:
    async def scenario() -> None:
        controller, plan = desk.controller, Plan()
        desk.pods(lone("first", cpu="1"))
        (assumed,) = desk.decide()
        task = await begun(controller.planning, plan)
        desk.pods(lone("second", cpu="1"))
        desk.lose("pods", assumed.decision.pod)
        binding = asyncio.create_task(desk.bind(assumed))
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(desk.queue) == 0
        assert desk.cache.state.pod_count == 1
        assert not binding.done()
        plan.go_on.set()
        await task
        await binding
        assert len(desk.queue) == 1
        assert desk.cache.state.pod_count == 0

    asyncio.run(scenario())


def test_a_plan_in_the_thread_is_handed_to_binding(desk: Desk) -> None:
    async def scenario() -> None:
        desk.pods(lone("p", cpu="1"))
        entry = desk.queue.pop()
        assert entry is not None
        await desk.controller.planning.run(partial(desk.controller.cycle.schedule_one, entry))
        assert desk.controller.binding._unbound.waiting("default") == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("plan", ["threading.Event().wait()", "(lambda: [0 for _ in iter(int, 1)])()"])
def test_a_plan_under_way_does_not_keep_the_process(plan: str) -> None:
    script = f"""
import asyncio, threading
from controllers.placement.planning_thread import PlanningThread

async def scenario():
    begun = threading.Event()
    def plan():
        begun.set()
        {plan}
    task = asyncio.create_task(PlanningThread().run(plan))
    while not begun.is_set():
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({{task}})
    assert task.cancelled()

asyncio.run(scenario())
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0


def test_the_thread_ends_with_its_object() -> None:
    async def scenario() -> threading.Thread:
        thread, found = PlanningThread(), list[threading.Thread]()
        await thread.run(lambda: found.append(threading.current_thread()))
        await thread.run(lambda: found.append(threading.current_thread()))
        assert found[0] is found[1]
        assert found[0].daemon
        return found[0]

    thread = asyncio.run(scenario())
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()
