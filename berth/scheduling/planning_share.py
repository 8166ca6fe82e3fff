"""How planning time is shared between namespaces: the one that has used least goes first."""

from __future__ import annotations

import heapq
from operator import itemgetter

from berth.scheduling.heaps import LazyHeap

QUANTUM = 1.0
"""Seconds of planning that make a difference: less is noise, which must not decide who is placed first."""
FORGET_BEYOND = 1024
"""Namespaces with nothing to plan that keep a balance; with more, the half of them that has used least begins where
the others are."""


class PlanningShare:
    """Planning time used by each namespace, after start-time fair queueing.

    A namespace that comes back after a pause begins where the others are: idle time is no credit.
    """

    def __init__(self) -> None:
        """Begin with nothing used."""
        self._used: dict[str, float] = {}
        self._active: set[str] = set()
        self._least: LazyHeap[tuple[float, str]] = LazyHeap(self._current, lambda: len(self._active))
        self._now = 0.0

    def of(self, namespace: str) -> float:
        """Seconds that a namespace counts as having used."""
        return self._used.get(namespace, self._now)

    def rank(self, namespace: str) -> int:
        """Whole quanta that a namespace counts as having used: what turns are ordered by."""
        return int(self.of(namespace) // QUANTUM)

    def enter(self, namespace: str) -> None:
        """A namespace has something to plan again."""
        used = self._used[namespace] = max(self.of(namespace), self._now)
        self._active.add(namespace)
        self._least.push((used, namespace))

    def leave(self, namespace: str) -> None:
        """A namespace has nothing to plan any more; it keeps its balance for a while."""
        self._active.discard(namespace)
        if len(self._used) - len(self._active) > FORGET_BEYOND:
            idle = ((name, used) for name, used in self._used.items() if name not in self._active)
            kept = heapq.nlargest(FORGET_BEYOND // 2, idle, key=itemgetter(1))
            self._used = {name: self._used[name] for name in self._active} | dict(kept)

    def take_turn(self) -> None:
        """It is somebody's turn: those that come from now on begin where the least used one of the active ones is.

        Whose turn it is does not matter: a namespace that goes first by priority or age may have used far more.
        """
        least = self._least.first()
        if least is not None:
            self._now = max(self._now, least[0])

    def charge(self, namespace: str, seconds: float) -> None:
        """A namespace has used planning time."""
        self._used[namespace] = self.of(namespace) + seconds

    def _current(self, item: tuple[float, str]) -> tuple[float, str] | None:
        """What an active namespace has used now."""
        _, namespace = item
        return (self._used[namespace], namespace) if namespace in self._active else None
