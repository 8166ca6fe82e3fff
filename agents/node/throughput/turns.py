"""Which peer's throughput is measured next: each once an hour, one after another. No I/O."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from agents.node.throughput.ledger import HOUR

LEAST_PAUSE: Final = 60.0
"""Seconds between two tests at least, however many peers there are."""


class Turns:
    """When each peer was tried last."""

    def __init__(self) -> None:
        """Start with nobody tried."""
        self._tried: dict[str, float] = {}

    def take(self, peers: Collection[str], now: float) -> str | None:
        """Return the peer that was not tried for longest, and note that it is tried; None if all were within the hour.

        Args:
            peers: names of the present peers.
            now: monotonic seconds.
        """
        self._tried = {name: at for name, at in self._tried.items() if name in peers}
        due = [name for name in peers if now - self._tried.get(name, -HOUR) >= HOUR]
        if not due:
            return None
        chosen = min(due, key=lambda name: (self._tried.get(name, float("-inf")), name))
        self._tried[chosen] = now
        return chosen


def pause(peers: int) -> float:
    """Return the seconds from one test to the next, so that an hour has one of each peer."""
    return max(LEAST_PAUSE, HOUR / max(1, peers))
