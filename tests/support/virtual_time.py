"""An event loop whose clock jumps to what is due next: minutes of waiting pass at once, in the order they would."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumps(selectors.DefaultSelector):
    """Does not wait: the time that it should have waited has passed."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += max(timeout or 0.0, 0.0)
        return super().select(0)


def run_in_virtual_time(work: Callable[[Callable[[], float]], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine that is made with the clock, which starts at 0; nothing in it may do real I/O."""
    jumps = _Jumps()

    class Loop(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return jumps.now

    with asyncio.Runner(loop_factory=lambda: Loop(jumps)) as runner:
        return runner.run(work(lambda: jumps.now))
