"""The last round trips of a user at a node, and what they say: kept by who measures, told as percentiles."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median_low
from typing import Final, NamedTuple

from berth.api.latencypolicy import MAX_MICROSECONDS, MeasurementSource

LENGTH: Final = 15
"""Round trips of a window: with fewer, medians of equal nodes differ by a tenth too often (10 % jitter)."""
MAX_AGE: Final = timedelta(minutes=5)
"""How long a round trip counts."""
OUTLIER: Final = 1.5
"""By which factor a round trip departs from the median so that it may be a change."""
CHANGED_AFTER: Final = 3
"""Round trips in a row, on one side of the median, from which on the former ones no longer count."""


class Measurement(NamedTuple):
    """What somebody says of a node."""

    node: str
    """its name"""
    source: MeasurementSource
    """who measured"""
    p50: int
    """median in microseconds"""
    p90: int
    """90th percentile in microseconds"""
    samples: int
    """round trips behind these"""
    time: datetime
    """when the last of them was measured"""


@dataclass(slots=True)
class Window:
    """The last round trips between a user and a node, newest last."""

    _samples: deque[tuple[datetime, int]] = field(default_factory=lambda: deque(maxlen=LENGTH))

    def add(self, microseconds: float, now: datetime) -> bool:
        """Take a round trip in; return whether it was one: what is negative, zero or absurd is left out."""
        if not 0.5 <= microseconds <= MAX_MICROSECONDS:
            return False
        self._samples.append((now, round(microseconds)))
        self._forget_what_was_before_a_change()
        return True

    def measurement(self, node: str, source: MeasurementSource, now: datetime) -> Measurement | None:
        """Return what the window says; None if it has nothing young enough."""
        values = sorted(value for time, value in self._samples if now - time <= MAX_AGE)
        if not values:
            return None
        # Of an even number the lower one: of two, one may be a spike, and none is ever too short.
        p90 = values[-(-9 * len(values) // 10) - 1]
        return Measurement(node, source, median_low(values), p90, len(values), self._samples[-1][0])

    def is_over(self, now: datetime) -> bool:
        """Return whether it has nothing young enough."""
        return all(now - time > MAX_AGE for time, _ in reversed(self._samples))

    def _forget_what_was_before_a_change(self) -> None:
        if len(self._samples) <= CHANGED_AFTER:
            return
        values = [value for _, value in self._samples]
        if _departs(values[-CHANGED_AFTER:], median_low(sorted(values[:-CHANGED_AFTER]))):
            while len(self._samples) > CHANGED_AFTER:
                self._samples.popleft()


def _departs(values: Sequence[int], median: int) -> bool:
    return min(values) > OUTLIER * median or max(values) * OUTLIER < median
