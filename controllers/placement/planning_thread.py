"""Planning in a thread of its own, so that the event loop renews the Lease, serves health and reads watches meanwhile.

Cache and queue have no locks. While a plan is made they belong to the planning thread, at all other times to the event
loop: what would touch them in between is deferred, in its order, until the plan is made.

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
TURN = 0.01
"""Seconds of deferred calls after which the event loop gets a turn."""


class PlanningThread:
    """One plan at a time, beside the event loop."""

    def __init__(self) -> None:
        """Start no thread yet."""
        self._jobs: SimpleQueue[_Job | None] | None = None
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
            await self._in_thread(plan)
        except asyncio.CancelledError:
            self._deferred.clear()  # the thread may plan on, so nobody else may touch cache and queue any more
            raise
        except BaseException:
            await self._end()
            raise
        await self._end()

    def _in_thread(self, plan: Callable[[], None]) -> asyncio.Future[None]:
        if self._jobs is None:
            self._jobs = SimpleQueue()
            threading.Thread(target=_work, args=(self._jobs,), name="planning", daemon=True).start()
            weakref.finalize(self, self._jobs.put, None)
        loop = asyncio.get_running_loop()
        made: asyncio.Future[None] = loop.create_future()
        self._jobs.put((plan, loop, made))
        return made

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


_Job = tuple[Callable[[], None], asyncio.AbstractEventLoop, "asyncio.Future[None]"]


def _work(jobs: SimpleQueue[_Job | None]) -> None:
    """Make one plan after another."""
    while (job := jobs.get()) is not None:
        plan, loop, made = job
        problem: BaseException | None = None
        try:
            plan()
        except BaseException as error:
            problem = error
        with suppress(RuntimeError):  # the event loop has ended meanwhile, and nobody waits any more
            loop.call_soon_threadsafe(_settle, made, problem)
        del job, plan, made, problem  # nothing of a plan is kept while the next is waited for


def _settle(made: asyncio.Future[None], problem: BaseException | None) -> None:
    if made.cancelled():
        return
    if problem is None:
        made.set_result(None)
    else:
        # A future takes no StopIteration, and whoever waits for one that is never done waits for ever.
        made.set_exception(RuntimeError(repr(problem)) if isinstance(problem, StopIteration) else problem)


class _Deferring:
    """Stands for an object whose methods return nothing."""

    def __init__(self, thread: PlanningThread, target: object) -> None:
        self._thread = thread
        self._target = target

    def __getattr__(self, name: str) -> Callable[..., None]:
        return self._thread.deferring(getattr(self._target, name))
