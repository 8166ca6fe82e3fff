"""A queue of keys to work on: each key once, not before its time, never by two workers at once, namespaces in turns.

A key is the name of something whose whole state is looked at when its turn comes, so it does not matter
how often it was added. The states of a key::

    absent --add--> due at a time --its turn--> active --done--> absent
                      ^  add: the earlier time counts    |  added meanwhile: due again
                      +------------- failed: due after a backoff -+

An earlier time wins, so a delay is a window that the first change opens: later changes inside it are
gathered, none of them extends it, and an urgent one (delay 0) closes it at once.

Keys that are due have their turns by namespace, and no namespace has all of the workers: thousands of objects of one
tenant, or a few that take long, make nobody else's wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import structlog

from berth.kube.client import backoff

log = structlog.get_logger(__name__)

K = TypeVar("K", bound=Hashable)

FIRST_RETRY = 0.2
"""Seconds after which a key is tried again after its first failure, at most; doubled each time."""
LAST_RETRY = 60.0
"""Upper bound of the same, where nobody says otherwise."""
SHARE = 4
"""One namespace has at most one in so many workers."""


class DueKeys(Generic[K]):
    """Which keys are due when: the queue's state, without tasks and without a clock of its own.

    Times are seconds of any one monotonic clock.
    """

    def __init__(self, namespace_of: Callable[[K], str]) -> None:
        """Start empty; whose a key is decides whose turn it is."""
        self._namespace_of = namespace_of
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._ready: dict[str, dict[K, None]] = {}  # keys whose time has come; the namespace first whose turn is next
        self._active: set[K] = set()
        self._at_work: Counter[str] = Counter()
        self._again: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._serial = 0

    def __len__(self) -> int:
        """Return the number of keys that wait; active ones count only if they were added again."""
        return len(self._due) + len(self._again)

    def add(self, key: K, when: float) -> None:
        """Have ``key`` worked on at ``when``, or earlier if it is already due earlier."""
        if key in self._active:
            self._again[key] = min(when, self._again.get(key, when))
            return
        known = self._due.get(key)
        if known is not None and known <= when:
            return
        self._due[key] = when
        self._serial += 1
        heapq.heappush(self._heap, (when, self._serial, key))

    def pop(self, now: float, share: int = 1) -> K | None:
        """Return the key whose turn it is and mark it active; None when there is none.

        That is the key which has been due the longest, of the namespace whose turn is next; one with `share` active
        keys has no turn.
        """
        self._gather(now)
        namespace = next((name for name in self._ready if self._at_work[name] < share), None)
        if namespace is None:
            return None
        keys = self._ready.pop(namespace)
        key = next(iter(keys))
        del keys[key], self._due[key]
        if keys:
            self._ready[namespace] = keys
        self._active.add(key)
        self._at_work[namespace] += 1
        return key

    def _gather(self, now: float) -> None:
        """Have the keys that are due take their places."""
        self._prune()
        while self._heap and self._heap[0][0] <= now:
            _, _, key = heapq.heappop(self._heap)
            self._due[key] = -math.inf  # no time is earlier
            self._ready.setdefault(self._namespace_of(key), {})[key] = None
            self._prune()

    def next_due(self) -> float | None:
        """Return the time at which the next key is due, of those that were not at the last pop; None without any."""
        self._prune()
        return self._heap[0][0] if self._heap else None

    def done(self, key: K) -> None:
        """Take ``key`` as worked on with success; if it was added meanwhile it is due again."""
        self._failures.pop(key, None)
        self._release(key)

    def failed(self, key: K, retry: Callable[[int], float]) -> int:
        """Take ``key`` as failed and return how often it has failed in a row.

        It is due at ``retry(n)`` after ``n`` earlier failures, even if it was added meanwhile: whatever
        made it fail would fail again at once.
        """
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        self._again.pop(key, None)
        self._release(key)
        self.add(key, retry(count))
        return count + 1

    def _release(self, key: K) -> None:
        if key in self._active:
            self._active.discard(key)
            namespace = self._namespace_of(key)
            self._at_work[namespace] -= 1
            if not self._at_work[namespace]:
                del self._at_work[namespace]
        again = self._again.pop(key, None)
        if again is not None:
            self.add(key, again)

    def _prune(self) -> None:
        """Drop heap entries that an earlier time or an earlier turn has made void."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)


class WorkQueue(Generic[K]):
    """Runs a coroutine for every key that is due, several keys at a time."""

    def __init__(self, namespace_of: Callable[[K], str], *, last_retry: float = LAST_RETRY) -> None:
        """Start empty.

        Args:
            namespace_of: whose a key is, which decides whose turn it is.
            last_retry: seconds after which a key that has failed is tried again at the latest.
        """
        self._last_retry = last_retry
        self.known: set[K] = set()
        """Keys that were added, without those whose object turned out not to exist."""
        self._keys: DueKeys[K] = DueKeys(namespace_of)
        self._share = 1
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """Return the number of keys that wait."""
        return len(self._keys)

    def add(self, key: K, *, delay: float = 0.0) -> None:
        """Have ``key`` worked on in ``delay`` seconds, or earlier if it is already due earlier.

        To be called in the event loop's thread; never blocks.
        """
        self.known.add(key)
        self._keys.add(key, asyncio.get_running_loop().time() + delay)
        self._changed.set()

    def add_known(self, *, delay: float = 0.0) -> None:
        """Have every known key worked on, as :meth:`add` does."""
        for key in tuple(self.known):
            self.add(key, delay=delay)

    async def run(self, work: Callable[[K], Awaitable[bool]], *, workers: int) -> None:
        """Call ``work`` for every key that is due, for ever; ends by cancellation only.

        Args:
            work: returns whether the object of the key exists. An exception is logged and the key tried again after
                a backoff; other keys go on.
            workers: keys worked on at once; of one namespace, a :data:`SHARE`-th of them at the most.
        """
        self._share = max(1, workers // SHARE)
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._worker(work))

    async def _worker(self, work: Callable[[K], Awaitable[bool]]) -> None:
        while True:
            key = await self._next()
            try:
                exists = await work(key)
            except asyncio.CancelledError:
                self._keys.done(key)
                raise
            except Exception as error:
                failures = self._keys.failed(key, self._retry_at)
                log.warning("work failed, will be tried again", key=str(key), failures=failures, error=repr(error))
            else:
                (self.known.add if exists else self.known.discard)(key)
                self._keys.done(key)
            self._changed.set()

    def _retry_at(self, failures: int) -> float:
        return asyncio.get_running_loop().time() + backoff(failures, base=FIRST_RETRY, cap=self._last_retry)

    async def _next(self) -> K:
        loop = asyncio.get_running_loop()
        while True:
            # Cleared before looking: a key added after the look sets it again, so that none is overslept.
            self._changed.clear()
            key = self._keys.pop(loop.time(), self._share)
            if key is not None:
                return key
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(self._keys.next_due()):
                    await self._changed.wait()
