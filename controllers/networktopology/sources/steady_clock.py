"""The present, by which measurements have an age, although the wall clock may jump.

A clock that is set a quarter of an hour ahead makes all measurements too old at once, and one that is set back has them
come from the future. Which clock is right is for the measurements to say, whose times are those of many nodes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from controllers.networktopology.sources.base import Reading

TOLERANCE: Final = timedelta(seconds=60)
"""By how much the wall clock may run apart from the monotonic clock between two looks; more is a jump."""


@dataclass(frozen=True, slots=True)
class Present:
    """One moment."""

    moment: float
    """by the monotonic clock, seconds"""
    wall: datetime
    """by the wall clock"""
    steady: datetime | None = None
    """by the wall clock as it went before it jumped; None if it did not, or its jump was followed"""


def _wall() -> datetime:
    return datetime.now(UTC)


class SteadyClock:
    """A wall clock with a memory of how it went before it jumped."""

    def __init__(self, wall: Callable[[], datetime] = _wall, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Believe the wall clock as it is; tests have clocks of their own."""
        self._wall, self._monotonic = wall, monotonic
        self._believed = Present(monotonic(), wall())

    def present(self) -> Present:
        """Return the present."""
        now = Present(self._monotonic(), self._wall())
        steady = self._believed.wall + timedelta(seconds=now.moment - self._believed.moment)
        if abs(now.wall - steady) > TOLERANCE:
            return Present(now.moment, now.wall, steady)
        self._believed = now
        return now

    def read(self, present: Present, reading: Callable[[datetime], Reading]) -> Reading:
        """Return the reading at that time of a present at which more measurements count.

        If the wall clock is no worse, its jump is followed: it was wrong before, or the machine was asleep, which the
        monotonic clock does not count.
        """
        by_wall = reading(present.wall)
        if present.steady is None:
            return by_wall
        by_steady = reading(present.steady)
        if len(by_steady.measurements) > len(by_wall.measurements):
            return by_steady
        self._believed = Present(present.moment, present.wall)
        return by_wall
