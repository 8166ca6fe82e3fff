"""Decisions that wait for their binding, in turns by namespace: a large application of one keeps no other waiting."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import Generic, TypeVar

T = TypeVar("T")

SHARE = 3
"""A namespace has at most this many times as many workers as it leaves free: three quarters when it is alone."""


class BindingQueue(Generic[T]):
    """A queue for several workers.

    The next item is of the namespace with the fewest in work, among those of the one whose last turn is longest ago.
    Inside a namespace the order is that of arrival. A namespace whose bindings hang does not get all workers: of those
    that it leaves to others the next one has its share, and so on.
    """

    def __init__(self, workers: int) -> None:
        """Start empty; so many may be at work at a time."""
        self._free = workers
        self._waiting: dict[str, deque[T]] = {}  # namespaces with items, the one whose turn is longest ago first
        self._in_work: Counter[str] = Counter()
        self._size = 0
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        """Number of items that wait."""
        return self._size

    def waiting(self, namespace: str) -> int:
        """Number of items of a namespace that wait."""
        return len(self._waiting.get(namespace, ()))

    def put(self, namespace: str, item: T) -> None:
        """Add an item behind those of its namespace."""
        self._waiting.setdefault(namespace, deque()).append(item)
        self._size += 1
        self._wake.set()

    async def get(self) -> tuple[str, T]:
        """Wait for an item and take it to work on; :meth:`done` must follow."""
        while not self._ready():
            self._wake.clear()
            await self._wake.wait()
        return self.take()

    def take(self) -> tuple[str, T]:
        """Take the next item to work on; there must be one, and :meth:`done` must follow."""
        namespace = min(self._waiting, key=self._in_work.__getitem__)
        items = self._waiting.pop(namespace)
        item = items.popleft()
        if items:
            self._waiting[namespace] = items
        self._size -= 1
        self._free -= 1
        self._in_work[namespace] += 1
        return namespace, item

    def _ready(self) -> bool:
        fewest = min(map(self._in_work.__getitem__, self._waiting), default=None)
        return fewest is not None and fewest < SHARE * self._free

    def done(self, namespace: str) -> None:
        """Work on an item of a namespace has ended."""
        self._free += 1
        self._wake.set()
        self._in_work[namespace] -= 1
        if not self._in_work[namespace]:
            del self._in_work[namespace]
