"""How long one plan may take."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")

TURN_SECONDS = 0.125
"""Planning of one queue entry at a stretch: then others get a turn."""
BEFORE_LONG = 1 / 3
"""Share of a turn after which others get theirs before something that is made in one go."""
STRETCH_SECONDS = 1.0
"""What is made at a stretch may keep others waiting for that long."""
_COMPLETION = 3.0
"""A first plan may take this many times the budget: all of a group or nothing, and half of it is nothing."""
_HELD_BACK = 1.0
"""Of this, what is kept for pods of a plan to be judged one by one."""


class Budget:
    """Planning time of one queue entry, without its pauses.

    When it is over, no plan is improved any more. Three times later the planning ends, with or without a node for
    every pod.
    """

    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        """Begin now; `clock` is monotonic time."""
        self._clock = clock
        self._start = clock()
        self._completion = _COMPLETION
        self._seconds = seconds
        self._turn = self._start
        self._stretch_ends = -math.inf
        self.pauses = 0
        """how often others have had a turn: what was found out about the cluster before may be old"""
        self.cut_short = False
        """True once somebody was told that the time is over, and left something out"""

    @property
    def spent(self) -> float:
        """Seconds of planning so far."""
        return self._clock() - self._start

    @property
    def over(self) -> bool:
        """Whether to go on with the best plan found so far."""
        return self._beyond(self._seconds)

    @property
    def exhausted(self) -> bool:
        """Whether to stop, even with pods that were not looked at."""
        return self._beyond(self._completion * self._seconds)

    @contextmanager
    def holding_back(self, budgets: float = _HELD_BACK) -> Iterator[None]:
        """Have the time exhausted earlier meanwhile: what is planned is worth nothing without time to judge it."""
        self._completion = _COMPLETION - budgets
        try:
            yield
        finally:
            self._completion = _COMPLETION

    @contextmanager
    def at_a_stretch(self) -> Iterator[None]:
        """Give others no turn meanwhile, for :data:`STRETCH_SECONDS` at the most: nobody changes the cluster then."""
        self._stretch_ends = self._clock() + STRETCH_SECONDS
        try:
            yield
        finally:
            self._stretch_ends = -math.inf

    def restart(self) -> None:
        """Begin anew with all of the time: what was planned is given up."""
        self._start = self._clock()
        self.cut_short = False

    def pause(self, turn: float = 1.0) -> Generator[None, None, None]:
        """Yield once if the turn is over, or such a share of it; time until the generator is resumed does not count."""
        now = self._clock()
        if now - self._turn < turn * TURN_SECONDS or now < self._stretch_ends or math.isinf(self._seconds):
            return
        yield
        self._turn = self._clock()
        self._start += self._turn - now
        self.pauses += 1

    def _beyond(self, seconds: float) -> bool:
        beyond = self.spent >= seconds
        self.cut_short |= beyond
        return beyond


UNLIMITED = Budget(lambda: 0.0, math.inf)
"""For plans that may take as long as they need."""


def finish(planning: Generator[None, None, Result]) -> Result:
    """Make a plan to its end, without turns for others."""
    while True:
        try:
            next(planning)
        except StopIteration as end:
            result: Result = end.value
            return result
