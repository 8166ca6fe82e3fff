"""A queue for several workers that serves namespaces in turns, so that none of them keeps another waiting.

What namespaces can take from the others is bounded in four ways:

- Turns: the next item is of the namespace with the fewest at work, among those of the one whose last turn is longest
  ago. At work are at most :data:`SHARE` times as many as there are free workers.
- Slow work: namespaces whose work takes longer than :data:`SLOW_SECONDS` have half of the workers together, at most
  :data:`MAX_SLOW`, whatever their number. What is found to be slow beyond that is given up. A namespace is slow for
  :data:`REMEMBER_SLOW` seconds, or for :data:`ROUNDS` rounds of all that are slow where that is longer, and as long as
  its items wait: only prompt work shows that it no longer is.
- Unproven work: a quarter of the workers is kept for namespaces whose last work was prompt. Those that are slow or not
  known yet share the others.
- Capacity: when the queue is full, the oldest item of the namespace with the most is dropped.

So a namespace whose work has been prompt does not wait for those that are slow from the start, and one that is not
known waits only until those before it are: at most SLOW_SECONDS for each quarter of the workers that they fill. Those
that were prompt and become slow all at once hold up the others for SLOW_SECONDS for each half that they fill. Slow ones
that are forgotten and come again take one :data:`ROUNDS`-th as many workers as slow work has, whatever their number.

Nothing here takes longer the more namespaces there are.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

SHARE = 3
"""A namespace has at most this many times as many workers as it leaves free: three quarters when it is alone."""
SLOW_SECONDS = 2.0
"""Work that takes longer is slow, and so is its namespace."""
MAX_SLOW = 16
"""Workers that slow work has at the most; a client has 64 connections or a few more, which it must not fill either."""
REMEMBER_SLOW = 30.0
"""Seconds for which a namespace is slow after slow work, at the least."""
ROUNDS = 2
"""Turns that all slow namespaces have had until one is forgotten."""
MAX_REMEMBERED = 10_000
"""Namespaces that are remembered as slow, and as prompt; of more, those that were so longest ago are forgotten."""


@dataclass(slots=True, eq=False)
class Turn(Generic[T]):
    """An item at work."""

    namespace: str
    """whose it is"""
    item: T
    """what was put into the queue"""
    slow: bool = False
    """whether its worker is one of those for slow work"""
    unproven: bool = False
    """whether its worker is none of those that are kept for namespaces known to be prompt"""


class FairQueue(Generic[T]):
    """Items by namespace; inside a namespace the order is that of arrival."""

    def __init__(self, workers: int, *, capacity: int | None = None) -> None:
        """Start empty; so many items may be at work at a time, and so many may wait."""
        self._free = workers
        self._workers_for_slow = self._free_for_slow = max(1, min(workers // 2, MAX_SLOW))
        self._free_for_unproven = workers - workers // 4
        self._capacity = capacity
        self._size = 0
        self._waiting: dict[str, deque[T]] = {}
        # Namespaces that wait, whose turn is longest ago first, with the numbers that order them.
        self._prompt_line: OrderedDict[str, int] = OrderedDict()
        self._unknown_line: OrderedDict[str, int] = OrderedDict()
        self._slow_line: OrderedDict[str, int] = OrderedDict()
        self._numbers = itertools.count()
        self._by_size: dict[int, dict[str, None]] = {}  # namespaces by the number of items that wait
        self._largest = 0
        self._at_work: Counter[str] = Counter()
        self._slow_since: OrderedDict[str, float] = OrderedDict()  # the longest ago first
        self._prompt: OrderedDict[str, None] = OrderedDict()  # the longest ago first
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._woken = 0  # workers that have been woken and did not look yet
        self._ended = asyncio.Event()

    def __len__(self) -> int:
        """Number of items that wait."""
        return self._size

    def waiting(self, namespace: str) -> int:
        """Number of items of a namespace that wait."""
        return len(self._waiting.get(namespace, ()))

    def put(self, namespace: str, item: T) -> T | None:
        """Add an item behind those of its namespace; returns the one that is dropped for it, if the queue is full."""
        items = self._waiting.get(namespace)
        if items is None:
            if not self._at_work[namespace]:
                self._forgive(namespace)
            items = self._waiting[namespace] = deque()
            self._line_up(namespace)
        items.append(item)
        self._resized(namespace, len(items) - 1, len(items))
        self._wake()
        if self._capacity is None or self._size <= self._capacity:
            return None
        return self._pop(next(iter(self._by_size[self._largest])))

    async def get(self) -> Turn[T]:
        """Wait for an item and take it to work on; :meth:`done` must follow."""
        while (turn := self.take()) is None:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
                self._woken -= 1
            except asyncio.CancelledError:
                if not waiter.cancelled():
                    self._woken -= 1
                    self._wake()  # it was our turn, and is another's now
                raise
        if not self._woken:
            self._wake()
        return turn

    def _wake(self) -> None:
        """Wake one worker if there is an item for it: of all that wait, most would find nothing."""
        while self._waiters and self._next() is not None:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._woken += 1
                return

    def take(self) -> Turn[T] | None:
        """Take the next item to work on; :meth:`done` must follow. None while nothing waits that may have a worker."""
        namespace = self._next()
        if namespace is None:
            return None
        item = self._pop(namespace)
        turn = Turn(namespace, item, namespace in self._slow_since, namespace not in self._prompt)
        if namespace in self._waiting:
            self._line_up(namespace)  # behind the others
        self._free -= 1
        self._free_for_slow -= turn.slow
        self._free_for_unproven -= turn.unproven
        self._at_work[namespace] += 1
        return turn

    def done(self, turn: Turn[T]) -> None:
        """Work on an item has ended."""
        self._free += 1
        self._free_for_slow += turn.slow
        self._free_for_unproven += turn.unproven
        self._at_work[turn.namespace] -= 1
        if not self._at_work[turn.namespace]:
            del self._at_work[turn.namespace]
        self._forgive(turn.namespace)
        self._wake()
        self._ended.set()

    async def join(self) -> None:
        """Wait until nothing waits and nothing is at work."""
        while self._size or self._at_work:
            self._ended.clear()
            await self._ended.wait()

    @asynccontextmanager
    async def patience(self, turn: Turn[T]) -> AsyncIterator[None]:
        """Have the part of the work inside count as slow when it takes long, and as prompt when it does not.

        Raises:
            TimeoutError: it was given up after SLOW_SECONDS, since too much other work is slow.
        """
        loop, limit = asyncio.get_running_loop(), asyncio.timeout(None)
        timer = loop.call_later(SLOW_SECONDS, self._overdue, turn, limit)
        try:
            async with limit:
                yield
        finally:
            timer.cancel()
            if loop.time() >= timer.when():
                self._note_slow(turn.namespace)
            else:
                self._note_prompt(turn.namespace)

    def _overdue(self, turn: Turn[T], limit: asyncio.Timeout) -> None:
        self._note_slow(turn.namespace)
        if turn.slow:
            return
        if self._free_for_slow:
            self._free_for_slow -= 1
            self._free_for_unproven -= not turn.unproven
            turn.slow = turn.unproven = True
        else:
            limit.reschedule(asyncio.get_running_loop().time())

    def _note_prompt(self, namespace: str) -> None:
        if namespace in self._slow_since:
            return
        self._prompt[namespace] = None
        self._prompt.move_to_end(namespace)
        if namespace in self._unknown_line:
            self._line_up(namespace)
        if len(self._prompt) > MAX_REMEMBERED:
            oldest, _ = self._prompt.popitem(last=False)
            if oldest in self._prompt_line:
                self._line_up(oldest)

    def _note_slow(self, namespace: str) -> None:
        now = asyncio.get_running_loop().time()
        self._slow_since[namespace] = now
        self._slow_since.move_to_end(namespace)
        self._prompt.pop(namespace, None)
        if namespace in self._waiting and namespace not in self._slow_line:
            self._line_up(namespace)
        for _ in range(2):  # one more than was added, so that they become fewer
            oldest = next(iter(self._slow_since))
            if oldest == namespace:
                break
            if len(self._slow_since) <= MAX_REMEMBERED:
                if now < self._slow_since[oldest] + self._remembered():
                    break
                if oldest in self._waiting or oldest in self._at_work:
                    self._slow_since.move_to_end(oldest)
                    continue
            self._forget(oldest)

    def _remembered(self) -> float:
        """Seconds for which namespaces are slow, by how many are."""
        return max(REMEMBER_SLOW, ROUNDS * SLOW_SECONDS * len(self._slow_since) / self._workers_for_slow)

    def _forgive(self, namespace: str) -> None:
        """Have a namespace be slow no longer if it has not been for long enough."""
        since = self._slow_since.get(namespace)
        if since is not None and since + self._remembered() <= asyncio.get_running_loop().time():
            self._forget(namespace)

    def _forget(self, namespace: str) -> None:
        del self._slow_since[namespace]
        if namespace in self._slow_line:
            self._line_up(namespace)

    def _line_up(self, namespace: str) -> None:
        """Put a namespace that waits behind the others of its line."""
        self._leave(namespace)
        if namespace in self._slow_since:
            line = self._slow_line
        else:
            line = self._prompt_line if namespace in self._prompt else self._unknown_line
        line[namespace] = next(self._numbers)

    def _leave(self, namespace: str) -> None:
        self._prompt_line.pop(namespace, None)
        self._unknown_line.pop(namespace, None)
        self._slow_line.pop(namespace, None)

    def _next(self) -> str | None:
        """The namespace whose turn it is."""
        unproven = max(0, min(self._free, self._free_for_unproven))
        prompt = self._first(self._prompt_line, SHARE * self._free)
        unknown = self._first(self._unknown_line, SHARE * unproven)
        slow = self._first(self._slow_line, SHARE * min(unproven, self._free_for_slow))
        found = min(filter(None, (prompt, unknown, slow)), default=None)
        return found[-1] if found is not None else None

    def _first(self, line: Mapping[str, int], limit: int) -> tuple[int, int, str] | None:
        """Items at work, number and name of the namespace of a line with fewest at work, if those are below a limit.

        Only namespaces with items at work are passed over, of which there are as many as workers.
        """
        found, fewest = None, limit
        if fewest:
            for namespace, number in line.items():
                at_work = self._at_work.get(namespace, 0)
                if at_work < fewest:
                    found, fewest = (at_work, number, namespace), at_work
                    if not at_work:
                        break
        return found

    def _pop(self, namespace: str) -> T:
        """Take out the oldest item of a namespace."""
        items = self._waiting[namespace]
        item = items.popleft()
        if not items:
            del self._waiting[namespace]
            self._leave(namespace)
        self._resized(namespace, len(items) + 1, len(items))
        return item

    def _resized(self, namespace: str, before: int, now: int) -> None:
        self._size += now - before
        if before:
            del self._by_size[before][namespace]
            if not self._by_size[before]:
                del self._by_size[before]
        if now:
            self._by_size.setdefault(now, {})[namespace] = None
        # The numbers change one by one, and so does the largest.
        self._largest = max(self._largest, now)
        if self._largest not in self._by_size:
            self._largest -= 1
