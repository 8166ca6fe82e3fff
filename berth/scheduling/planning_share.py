"""How planning time is shared between namespaces: the one that has used least goes first."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from operator import itemgetter

QUANTUM = 1.0
"""Seconds of planning that make a difference: less is noise, which must not decide who is placed first."""
FORGET_BEYOND = 1024
"""Namespaces with a balance; with more, the half that has used least begins where the others are."""


class PlanningShare:
    """Planning time used by each namespace, after start-time fair queueing.

    A namespace that comes back after a pause begins where the others are: idle time is no credit.
    """

    def __init__(self) -> None:
        """Begin with nothing used."""
        self._used: dict[str, float] = {}
        self._now = 0.0

    def of(self, namespace: str) -> float:
        """Seconds that a namespace counts as having used."""
        return self._used.get(namespace, self._now)

    def rank(self, namespace: str) -> int:
        """Whole quanta that a namespace counts as having used: what turns are ordered by."""
        return int(self.of(namespace) // QUANTUM)

    def enter(self, namespace: str) -> None:
        """A namespace has something to plan again."""
        self._used[namespace] = max(self.of(namespace), self._now)
        if len(self._used) > FORGET_BEYOND:
            self._used = dict(heapq.nlargest(FORGET_BEYOND // 2, self._used.items(), key=itemgetter(1)))

    def take_turn(self, active: Iterable[str]) -> None:
        """It is the turn of one of these namespaces: those that come from now on begin where the least used one is.

        Whose turn it is does not matter: a namespace that goes first by priority or age may have used far more.
        """
        self._now = max(self._now, min(map(self.of, active), default=self._now))

    def charge(self, namespace: str, seconds: float) -> None:
        """A namespace has used planning time."""
        self._used[namespace] = self.of(namespace) + seconds
