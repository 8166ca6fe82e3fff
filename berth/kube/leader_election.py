"""Runs work while a Lease is held, and keeps the Lease apart from the work.

The Lease is renewed in a thread of its own, over a connection of its own: an event loop that plans for long, or has a
thousand requests in flight, does not lose it. Conversely nothing is written by virtue of a Lease that has run out:
:meth:`LeaderElection.check` is asked before every write, so a process that stood still writes nothing when it wakes,
and no write outlasts the Lease that it was sent under.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

import structlog

from berth.kube.client import ApiClient
from berth.kube.connection import Connection
from berth.kube.lease import LeadershipLost, LeaseLock, LeaseTiming
from berth.kube.metrics import LEADER

log = structlog.get_logger(__name__)

T = TypeVar("T")


class _LoopThread:
    """An event loop in a thread, for as long as the context lasts; a daemon, so that it cannot hold up the process."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, name="lease", daemon=True).start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Run a coroutine in the thread; cancelling the future cancels the coroutine."""
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))


class LeaderElection:
    """Competes for one Lease and runs work while holding it."""

    def __init__(
        self, connection: Connection, *, name: str, namespace: str, identity: str, timing: LeaseTiming | None = None
    ) -> None:
        """Prepare.

        Args:
            connection: server and credentials; they are read anew for the Lease.
            name: the Lease's name, one per component.
            namespace: where the Lease lives.
            identity: unique name of this process, e.g. pod name plus a random part.
            timing: durations.
        """
        self._connection = connection
        self._name = name
        self._namespace = namespace
        self._identity = identity
        self._timing = timing or LeaseTiming()
        self._lock: LeaseLock | None = None
        LEADER.labels(name).set_function(lambda: float(self.is_leader))

    @property
    def is_leader(self) -> bool:
        """True while the Lease is held, by the boot clock."""
        return self._lock is not None and self._lock.held

    def problem(self) -> str | None:
        """Say why this process cannot lead, whoever else does, and what to do; None while nothing is in its way.

        An API server that is away is in everybody's, and no reason to call one that waits unready.
        """
        refusal = self._lock.refusal if self._lock is not None else None
        if refusal is None:
            return None
        remedy = (
            f"create the namespace {self._namespace}, or name another one"  # else a missing Lease is made
            if refusal.not_found
            else f"allow this account to get, create and update leases in {self._namespace}"
        )
        return f"lease {self._namespace}/{self._name} cannot be had ({refusal}); {remedy}"

    def check(self) -> float:
        """Allow a write that only the leader may make, and say how many seconds it may take: then others may lead.

        Raises:
            LeadershipLost: the Lease is not held, or not any more.
        """
        left = self._lock.left if self._lock is not None else 0.0
        if left <= 0:
            raise LeadershipLost(f"lease {self._namespace}/{self._name} is not held, nothing is written")
        return left

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for leadership, run `work`, and return when `work` ends or leadership is lost.

        Leadership is kept until `work` has ended, also when that takes a while after cancellation, and is
        then released, so that a clean shutdown hands over at once. After a loss `work` is cancelled, and
        waited for no longer than until others may start.

        Raises:
            LeadershipLost: see there; the process should exit at once and start anew.
            ConnectionConfigError: the credentials cannot be read.
        """
        # Two event loops cannot share a connection. A request gets half of the deadline, so that one that hangs
        # leaves time for another.
        client = ApiClient(
            await self._connection.another(),
            user_agent=f"{self._name}-lease",
            max_connections=1,
            timeout=self._timing.renew_deadline / 2,
            retries=0,
        )
        lock = LeaseLock(
            client, name=self._name, namespace=self._namespace, identity=self._identity, timing=self._timing
        )
        with _LoopThread() as thread:
            await thread.submit(client.__aenter__())
            self._lock = lock
            try:
                await thread.submit(lock.acquire())
                log.info("became leader", lease=f"{self._namespace}/{self._name}", identity=self._identity)
                await self._lead(work, lock, thread)
            finally:
                await thread.submit(lock.release())
                await thread.submit(client.__aexit__(None, None, None))

    async def _lead(self, work: Callable[[], Awaitable[None]], lock: LeaseLock, thread: _LoopThread) -> None:
        worker = asyncio.ensure_future(work())
        keeper = thread.submit(lock.keep())
        stopping = True
        try:
            await asyncio.wait({worker, keeper}, return_when=asyncio.FIRST_COMPLETED)
            stopping = keeper.done()
        finally:
            if not worker.done():
                worker.cancel()
                # While the work cleans up, the keeper goes on renewing, unless it is what has failed.
                if not keeper.done():
                    await asyncio.wait({worker, keeper}, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.wait({worker}, timeout=self._timing.duration - self._timing.renew_deadline)
            held = lock.held
            keeper.cancel()
            await asyncio.wait({keeper})
            lost = None if keeper.cancelled() else keeper.exception()
            failure = worker.exception() if worker.done() and not worker.cancelled() else None
            if not worker.done():
                lock.abandon()  # nothing is handed over while the work goes on
                log.critical("work goes on although its leadership is lost", lease=self._name)
            elif stopping and failure is not None:
                log.error("work failed while it was stopped", lease=self._name, exc_info=failure)
        if lost is None and failure is not None and not held:
            lost = LeadershipLost(f"lease {self._namespace}/{self._name} ran out")  # which is why a write was refused
            lost.__cause__ = failure
        error = lost or failure
        if error is not None:
            raise error
