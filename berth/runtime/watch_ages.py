"""How old the watches of kopf are, and how they ended."""

from __future__ import annotations

from collections import Counter
from typing import Final

HASTY_SECONDS: Final = 1.0
"""A watch that ends within so many seconds is not to be followed by another at once, time and again."""


class WatchAges:
    """How long ago the API server last kept up the watch of a kind; times are seconds of one monotonic clock.

    The answer to a new watch is a sign of life, unless the watch before it had to be given up: the API server, which
    ends every watch in time, had been silent, and an answer that nothing follows proves nothing.
    """

    def __init__(self, *, lasts: float, silent: float) -> None:
        """Start without any watch.

        Args:
            lasts: seconds after which the API server ends a watch.
            silent: seconds without an event or a bookmark after which it is given up.
        """
        self._lasts = lasts
        self._overdue = (lasts + silent) / 2
        self._alive: dict[str, float] = {}
        self._answered: dict[str, float] = {}
        self._silent: set[str] = set()
        self._broken: set[str] = set()
        self._hasty: Counter[str] = Counter()

    def requested(self, kind: str, now: float) -> int:
        """Note that a watch is asked for, hence that the one before it has ended.

        Returns:
            How many of the last ones in a row have ended within :data:`HASTY_SECONDS`.
        """
        answered = self._answered.pop(kind, None)
        if answered is not None:
            lasted = now - answered
            overdue = lasted > self._overdue
            (self._silent.add if overdue else self._silent.discard)(kind)
            if overdue or lasted < self._lasts - 1:
                self._broken.add(kind)
            self._hasty[kind] = self._hasty[kind] + 1 if lasted < HASTY_SECONDS else 0
        return self._hasty[kind]

    def answered(self, kind: str, now: float) -> None:
        """Note that the API server has begun to answer a watch."""
        self._answered[kind] = now
        if kind not in self._silent:
            self._alive[kind] = now

    def doubt(self, kind: str) -> None:
        """Note that it is not known whether a watch may go on after it was broken off."""
        self._broken.add(kind)

    def was_broken(self, kind: str) -> bool:
        """Whether a watch has ended otherwise than by its time; told once."""
        broken = kind in self._broken
        self._broken.discard(kind)
        return broken

    def forget(self, kind: str) -> None:
        """Note that a kind is not watched any more, as if it never had been."""
        self._alive.pop(kind, None)
        self._answered.pop(kind, None)
        self._silent.discard(kind)
        self._broken.discard(kind)
        del self._hasty[kind]

    def age(self, kind: str, now: float) -> float | None:
        """Return the seconds since the last sign of life; None before the first one."""
        alive = self._alive.get(kind)
        return None if alive is None else now - alive
