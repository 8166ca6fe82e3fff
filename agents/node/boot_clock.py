"""The clock of measurements: it is never set, and goes on while the machine sleeps.

``time.monotonic`` stands still meanwhile: a node that wakes would take what it measured hours ago for news, and its
report for one that has just been written.
"""

from __future__ import annotations

import time


def now() -> float:
    """Return the seconds since the machine started; the same for all processes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
