"""Heaps whose items go out of date by themselves: nothing is searched for when an item changes or goes.

What is out of date is left out when it comes to the top, or once most of a heap is. So everything is O(log n), in the
mean of many calls.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T", bound=tuple[object, ...])

STALE = 64
"""Items out of date that a heap may have beside twice as many as are good."""


class LazyHeap(Generic[T]):
    """Items in order, the least first."""

    def __init__(self, current: Callable[[T], T | None], live: Callable[[], int]) -> None:
        """Start empty.

        Args:
            current: an item as it is now: itself, another that comes later, or None when there is none any more. One
                that comes earlier now has to be pushed.
            live: how many items are good, at the most.
        """
        self._current = current
        self._live = live
        self._items: list[T] = []

    def push(self, item: T) -> None:
        """Add an item."""
        heapq.heappush(self._items, item)
        if len(self._items) > 2 * self._live() + STALE:
            self._items = sorted({now for one in self._items if (now := self._current(one)) is not None})

    def first(self) -> T | None:
        """The least item, None without any."""
        while self._items:
            item = self._items[0]
            now = self._current(item)
            if now == item:
                return item
            if now is None:
                heapq.heappop(self._items)
            else:
                heapq.heapreplace(self._items, now)
        return None

    def pop(self) -> None:
        """Take out the item that is :meth:`first`."""
        heapq.heappop(self._items)


class NamespaceHeaps(Generic[T]):
    """Items by namespace: the least of all, or of the namespaces that are not held."""

    def __init__(
        self,
        current: Callable[[T], T | None],
        live: Callable[[str], int],
        order: Callable[[str, T], tuple[object, ...]],
    ) -> None:
        """Start empty.

        Args:
            current: an item as it is now, as for :class:`LazyHeap`.
            live: how many items of a namespace are good, at the most.
            order: what a namespace with this least item is ordered by; it comes later as time goes by, never earlier.
        """
        self._current = current
        self._live = live
        self._order = order
        self._items: dict[str, LazyHeap[T]] = {}
        self._heads: dict[str, tuple[object, ...]] = {}
        self._namespaces: LazyHeap[tuple[tuple[object, ...], str]] = LazyHeap(self._head, lambda: len(self._heads))

    def push(self, namespace: str, item: T) -> None:
        """Add an item."""
        heap = self._items.get(namespace)
        if heap is None:
            heap = self._items[namespace] = LazyHeap(self._current, lambda: self._live(namespace))
        heap.push(item)
        order = self._order(namespace, item)
        if namespace not in self._heads or order < self._heads[namespace]:
            self._heads[namespace] = order
            self._namespaces.push((order, namespace))

    def drop(self, namespace: str) -> None:
        """Forget a namespace that has no good items any more."""
        self._items.pop(namespace, None)
        self._heads.pop(namespace, None)

    def first(self, held: Callable[[str], bool] | None = None) -> T | None:
        """The least item by the order of the namespaces, of those that are not held; None without any."""
        aside = []
        while (head := self._namespaces.first()) is not None and held is not None and held(head[1]):
            aside.append(head)
            self._namespaces.pop()
        for one in aside:
            self._namespaces.push(one)
        return self._items[head[1]].first() if head is not None else None

    def _head(self, item: tuple[tuple[object, ...], str]) -> tuple[tuple[object, ...], str] | None:
        """Where a namespace stands now; None when it has nothing, or stands elsewhere already."""
        order, namespace = item
        if self._heads.get(namespace) != order:
            return None
        least = self._items[namespace].first()
        if least is None:
            self.drop(namespace)
            return None
        order = self._heads[namespace] = self._order(namespace, least)
        return order, namespace
