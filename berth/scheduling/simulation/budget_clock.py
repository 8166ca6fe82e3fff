"""The clock of a plan's time budgets: it stands still for every plan that is made in time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class BudgetClock:
    """Stands still but for plans that take too long.

    What a plan comes to must not depend on how fast the machine is or what else it does, as long as it comes to an end.
    So the clock shows no time that passes, and goes on by a whole time budget only when an entry has taken that much.
    """

    def __init__(self, seconds: float = math.inf, *, spent: Callable[[], float] = time.process_time) -> None:
        """Stand at zero.

        Args:
            seconds: the time budget.
            spent: seconds of work so far.
        """
        self._seconds = seconds
        self._spent = spent
        self._shown = 0.0
        self._since = spent()

    def __call__(self) -> float:
        """Seconds, a multiple of the time budget."""
        budgets = (self._spent() - self._since) // self._seconds
        return self._shown + (budgets * self._seconds if budgets else 0.0)

    def begin(self) -> None:
        """Another entry is planned: what it took so far counts no more."""
        self._shown = self()
        self._since = self._spent()
