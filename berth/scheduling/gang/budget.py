"""How long one plan may take."""

from __future__ import annotations

import math
from collections.abc import Callable

_COMPLETION = 3.0
"""A first plan may take this many times the budget: all of a group or nothing, and half of it is nothing."""


class Budget:
    """Planning time of one queue entry.

    When it is over, no plan is improved any more. Three times later the planning ends, with or without a node for
    every pod.
    """

    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        """Begin now; `clock` is monotonic time."""
        self._clock = clock
        self._start = clock()
        self._seconds = seconds
        self.cut_short = False
        """True once somebody was told that the time is over, and left something out"""

    @property
    def over(self) -> bool:
        """Whether to go on with the best plan found so far."""
        return self._beyond(self._seconds)

    @property
    def exhausted(self) -> bool:
        """Whether to stop, even with pods that were not looked at."""
        return self._beyond(_COMPLETION * self._seconds)

    def _beyond(self, seconds: float) -> bool:
        beyond = self._clock() - self._start >= seconds
        self.cut_short |= beyond
        return beyond


UNLIMITED = Budget(lambda: 0.0, math.inf)
"""For plans that may take as long as they need."""
