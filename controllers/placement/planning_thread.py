"""Planning in a thread of its own, so that the event loop renews the Lease, serves health and reads watches meanwhile.

Cache and queue have no locks. While a plan is made they belong to the planning thread, at all other times to the event
loop: what would touch them in between is deferred, in its order, until the plan is made.

The event loop stands still for short plans (PATIENCE), and goes on beside those that take longer.

The thread is a daemon. Whoever stops the process need not wait for a plan: nobody would carry it out.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import ParamSpec, TypeVar, cast

import structlog

from berth.kube.metrics import HANDLER_FAILURES

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger(__name__)

SWITCH_INTERVAL = 0.0005
"""Seconds until a thread that computes lets another one in. With Python's own 5 ms every request that the event loop
sends while a plan is made would wait as long."""
PATIENCE = 0.02
"""Seconds for which the event loop stands still for a plan. Most plans are made by then, and two threads that compute
at a time hand the interpreter to and fro."""
TURN = 0.01
"""Seconds of deferred calls after which the event loop gets a turn."""


class PlanningThread:
    """One plan at a time, beside the event loop."""

    def __init__(self) -> None:
        """Start no thread yet."""
        self._plans: SimpleQueue[_Plan | None] | None = None
        self._planning = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._deferred: deque[tuple[str, Callable[[], None]]] = deque()

    def deferring(self, call: Callable[P, None], what: str = "decisions") -> Callable[P, None]:
        """Make a function that does the same, but after the plan when one is being made.

        It may be called on the event loop and in the planning thread; it does its work on the event loop. If it raises
        there, that is logged and counted for `what`, such as the resource that it handles.
        """

        def deferred(*args: P.args, **kwargs: P.kwargs) -> None:
            if self._planning:
                self._deferred.append((what, partial(call, *args, **kwargs)))
            else:
                call(*args, **kwargs)

        return deferred

    def listener(self, listener: T) -> T:
        """Make an object all of whose methods defer, for whoever is called in the planning thread."""
        return cast("T", _Deferring(self, listener))

    async def run(self, plan: Callable[[], None]) -> None:
        """Make a plan, then do what was deferred.

        Raises:
            Exception: the plan did.
        """
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._planning = True
        self._idle.clear()
        try:
            await self._in_thread(plan).made()
        except asyncio.CancelledError:
            self._deferred.clear()  # the thread may plan on, so nobody else may touch cache and queue any more
            raise
        except BaseException:
            await self._end()
            raise
        await self._end()

    def _in_thread(self, make: Callable[[], None]) -> _Plan:
        if self._plans is None:
            self._plans = SimpleQueue()
            threading.Thread(target=_work, args=(self._plans,), name="planning", daemon=True).start()
            weakref.finalize(self, self._plans.put, None)
        plan = _Plan(make)
        self._plans.put(plan)
        return plan

    async def _end(self) -> None:
        await self._catch_up()
        self._planning = False
        self._idle.set()

    async def idle(self) -> None:
        """Wait until cache and queue belong to the event loop: up to the next ``await`` of the caller."""
        while self._planning:
            await self._idle.wait()

    async def _catch_up(self) -> None:
        turn = time.perf_counter()
        while self._deferred:
            what, call = self._deferred.popleft()
            try:
                call()
            except Exception:
                # One odd object must not keep what comes after it.
                HANDLER_FAILURES.labels(what).inc()
                log.exception("deferred call failed", resource=what)
            if time.perf_counter() - turn > TURN:
                await asyncio.sleep(0)
                turn = time.perf_counter()


class _Plan:
    """A plan on its way from the event loop to the thread and back."""

    def __init__(self, make: Callable[[], None]) -> None:
        self._make: Callable[[], None] | None = make
        self._problem: BaseException | None = None
        self._under_way = threading.Lock()
        self._under_way.acquire()
        self._waiting: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None

    def make(self) -> None:
        """Make the plan, in the thread."""
        assert self._make is not None  # noqa: S101 - made once
        try:
            self._make()
        except BaseException as error:
            self._problem = error
        self._make = None  # nothing of a plan is kept while the next is waited for
        self._under_way.release()
        if self._waiting is not None:
            loop, ended = self._waiting
            with suppress(RuntimeError):  # the event loop has ended meanwhile, and nobody waits any more
                loop.call_soon_threadsafe(_end, ended)

    async def made(self) -> None:
        """Wait for the plan, on the event loop: with the loop while that is cheaper than to let it go on.

        Raises:
            Exception: the plan did.
        """
        if not self._under_way.acquire(timeout=PATIENCE):
            loop = asyncio.get_running_loop()
            ended: asyncio.Future[None] = loop.create_future()
            self._waiting = loop, ended
            # The plan may have ended before it could see who waits.
            if not self._under_way.acquire(blocking=False):
                await ended
        if self._problem is not None:
            raise self._problem


def _end(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


def _work(plans: SimpleQueue[_Plan | None]) -> None:
    """Make one plan after another."""
    while (plan := plans.get()) is not None:
        plan.make()
        del plan


class _Deferring:
    """Stands for an object whose methods return nothing."""

    def __init__(self, thread: PlanningThread, target: object) -> None:
        self._thread = thread
        self._target = target

    def __getattr__(self, name: str) -> Callable[..., None]:
        return self._thread.deferring(getattr(self._target, name))
