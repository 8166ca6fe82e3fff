"""AppGroups whose status is large: worked on one after another, with pauses, for the sake of everybody's bindings.

The API server takes a second of its processors for a status of thousands of workloads: it decodes, checks and encodes
the whole object several times, and so does everybody who watches it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from berth.network.groups import GroupKey
from berth.runtime.workqueue import WorkQueue

PAUSE: Final = 3.0
"""Length of a pause in lengths of the work before it: large statuses have a quarter of the time."""
LAST_PAUSE: Final = 30.0
"""Seconds that a pause takes at the most, however slow the API server is."""


class LargeStatuses:
    """The AppGroups known to be large; namespaces have their turns here too."""

    def __init__(
        self, *, elsewhere: Callable[[GroupKey], None], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Start without any.

        Args:
            elsewhere: has one worked on elsewhere that turned out not to exist, or is small by its turn.
            sleep: lets seconds pass.
        """
        self._elsewhere = elsewhere
        self._sleep = sleep
        self._large: set[GroupKey] = set()
        self._queue: WorkQueue[GroupKey] = WorkQueue(lambda key: key.namespace)

    def __contains__(self, key: GroupKey) -> bool:
        """Return whether an AppGroup is worked on here."""
        return key in self._large

    def __len__(self) -> int:
        """Return how many wait for their turn."""
        return len(self._queue)

    def add(self, key: GroupKey) -> None:
        """Have an AppGroup worked on here, now and from now on."""
        self._large.add(key)
        self._queue.add(key)

    def discard(self, key: GroupKey) -> None:
        """Have an AppGroup worked on elsewhere from now on: it is small again."""
        self._large.discard(key)

    async def run(self, work: Callable[[GroupKey], Awaitable[bool]]) -> None:
        """Call ``work``, which returns whether the AppGroup exists, for each whose turn it is; ends by cancellation."""

        async def one(key: GroupKey) -> bool:
            if key not in self:  # two passes of one AppGroup at once would be two writes
                self._elsewhere(key)
                return False
            begun = time.monotonic()
            exists = await work(key)
            if not exists:
                self.discard(key)
                self._elsewhere(key)
            await self._sleep(min(PAUSE * (time.monotonic() - begun), LAST_PAUSE))
            return exists

        await self._queue.run(one, workers=1)
