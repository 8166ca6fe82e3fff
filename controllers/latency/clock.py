"""The time by which users, measurements and moves have an age, although the wall clock may be set. No I/O.

A clock that is set an hour ahead would make all users too old at once but those who are heard of first, for whom alone
pods would then move; and one that is set back would have everything wait for an hour. So a jump is not followed at
once: time goes on half as fast again, or half as fast, until it is that of the wall clock. It never goes back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

TOLERANCE: Final = timedelta(seconds=2)
"""By how much the wall clock may be elsewhere to be followed at once: it is corrected all the time, by less."""
SLEW: Final = 0.5
"""Seconds by which a second is longer or shorter while the wall clock is elsewhere."""


def _wall() -> datetime:
    return datetime.now(UTC)


class SlewedClock:
    """Tells the time; all of a controller has one."""

    def __init__(self, wall: Callable[[], datetime] = _wall, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Begin with the wall clock's; `monotonic` tells seconds."""
        self._wall, self._monotonic = wall, monotonic
        self._moment, self._now = monotonic(), wall()

    def __call__(self) -> datetime:
        """Return the time, in UTC."""
        moment = self._monotonic()
        passed = timedelta(seconds=moment - self._moment)
        self._moment = moment
        apart = self._wall() - (self._now + passed)
        if abs(apart) > TOLERANCE:
            apart = max(-SLEW * passed, min(apart, SLEW * passed))
        self._now = max(self._now, self._now + passed + apart)
        return self._now
