"""What each sender may still send: so many bytes within an hour. No I/O."""

from __future__ import annotations

from collections import deque
from typing import Final

HOUR: Final = 3600.0
"""Seconds for which bytes count."""
MOST_TESTS: Final = 10
"""Tests of one sender within an hour: each counts as a tenth of its bytes at least, since it is remembered and keeps
others waiting even if nothing is sent."""
MAX_SENDERS: Final = 1024
"""Senders that are remembered; others may send nothing meanwhile."""


class Ledger:
    """The bytes of the last hour by sender."""

    def __init__(self, limit: int) -> None:
        """Prepare; ``limit`` is the bytes of one sender within an hour."""
        self._limit = limit
        self._least = -(limit // -MOST_TESTS)
        self._sent: dict[str, deque[tuple[float, int]]] = {}

    def allowed(self, sender: str, now: float) -> int:
        """Return the bytes that a sender may send at ``now``, in monotonic seconds."""
        self._forget(now)
        if sender not in self._sent and len(self._sent) >= MAX_SENDERS:
            return 0
        return max(0, self._limit - sum(size for _, size in self._sent.get(sender, ())))

    def add(self, sender: str, size: int, now: float) -> None:
        """Note that a sender had a test, in which it has sent ``size`` bytes."""
        self._sent.setdefault(sender, deque()).append((now, max(size, self._least)))

    def _forget(self, now: float) -> None:
        for sender, entries in list(self._sent.items()):
            while entries and entries[0][0] <= now - HOUR:
                entries.popleft()
            if not entries:
                del self._sent[sender]
