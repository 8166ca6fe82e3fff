"""Decisions in a thread of their own, so that the event loop renews the Lease, listens and reads watches meanwhile.

What has to be done on the event loop is done in turns. Of both it is told how long a processor took.

One at a time: two threads that compute would hand the interpreter to and fro, and the event loop would wait for both.
What is decided about belongs to the thread alone: the event loop goes on changing what it was copied from.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from time import thread_time
from typing import Final, TypeVar

T = TypeVar("T")

SWITCH_INTERVAL: Final = 0.0005
"""Seconds until a thread that computes lets another one in. With Python's own 5 ms each message of a meter that comes
while it is decided would wait as long, several times."""
TURN: Final = 0.01
"""Seconds of a processor after which the event loop gets a turn."""


async def in_turns(steps: Iterable[None]) -> float:
    """Take steps on the event loop, and let it go on in between; returns the seconds of a processor that they took."""
    seconds, begun = 0.0, thread_time()
    for _ in steps:
        taken = thread_time() - begun
        if taken > TURN:
            await asyncio.sleep(0)
            seconds, begun = seconds + taken, thread_time()
    return seconds + thread_time() - begun


class DecisionThread:
    """Decides for all policies, in the order in which they come."""

    def __init__(self) -> None:
        """Start no thread yet."""
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="deciding")

    async def run(self, decide: Callable[[], T]) -> tuple[T, float]:
        """Return what is decided, and the seconds of a processor that it took.

        Raises:
            Exception: `decide` did.
        """
        sys.setswitchinterval(SWITCH_INTERVAL)
        return await asyncio.get_running_loop().run_in_executor(self._executor, _timed, decide)


def _timed(decide: Callable[[], T]) -> tuple[T, float]:
    begun = thread_time()
    return decide(), thread_time() - begun
