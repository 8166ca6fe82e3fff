"""What is remembered of pods that got a node, in case they have to wait again: it does not begin anew for them."""

from __future__ import annotations

from collections.abc import Callable

from cachetools import TTLCache

from berth.scheduling.queue_entry import EntryKey, Wait

REMEMBER_REFUSALS = 300.0
"""Seconds for which a refused binding lengthens the pod's next backoff."""
REMEMBER_WAITS = 1800.0
"""Seconds for which a wait is known: volumes are waited for up to ten minutes, and that more than once."""
REMEMBERED = 10_000
"""Pods at the most."""


class DecidedPods:
    """Pods by uid: how long they had waited, and how often their binding has been refused."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin without any; `clock` is monotonic time."""
        self._waits: TTLCache[str, Wait] = TTLCache(maxsize=REMEMBERED, ttl=REMEMBER_WAITS, timer=clock)
        self._refusals: TTLCache[str, int] = TTLCache(maxsize=REMEMBERED, ttl=REMEMBER_REFUSALS, timer=clock)

    def decided(self, uid: str, wait: Wait) -> None:
        """A pod that waited has a node."""
        self._waits[uid] = wait

    def refused(self, uid: str, key: EntryKey) -> tuple[int, Wait | None]:
        """A pod waits again: how often it has had to before, and its wait in that entry before it had a node."""
        refusals = self._refusals.get(uid, 0)
        self._refusals[uid] = refusals + 1
        wait = self._waits.pop(uid, None)
        return refusals, wait if wait is not None and wait.key == key else None
