"""The hard cap on probes a second, whatever asks for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Pacer:
    """Lets callers of any thread pass one by one, never faster than a rate, and without bursts after a pause."""

    def __init__(
        self,
        rate: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """Prepare.

        Args:
            rate: how many may pass in a second, above 0.
            clock: monotonic seconds.
            sleep: waits for so many seconds.
        """
        self._gap = 1.0 / rate
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._next = clock()

    def wait(self) -> None:
        """Return when it is this caller's turn."""
        with self._lock:
            now = self._clock()
            turn = max(now, self._next)
            self._next = turn + self._gap
        if turn > now:
            self._sleep(turn - now)
