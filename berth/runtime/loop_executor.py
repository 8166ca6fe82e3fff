"""Functions that another thread has called in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class LoopExecutor(Executor):
    """Calls functions in an event loop instead of a thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Prepare for a loop that runs in another thread."""
        self._loop = loop

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a function called as soon as the loop can."""
        future: Future[Any] = Future()

        def call() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args, **kwargs))
                except Exception as error:
                    future.set_exception(error)

        self._loop.call_soon_threadsafe(call)
        return future
