"""Functions called in an event loop, from a thread."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from berth.runtime.loop_executor import LoopExecutor


async def in_a_thread(executor: LoopExecutor, function: Any) -> Any:
    return await asyncio.to_thread(lambda: executor.submit(function).result(timeout=10))


async def test_functions_are_called_in_the_loop() -> None:
    executor = LoopExecutor(asyncio.get_running_loop())
    assert await in_a_thread(executor, threading.get_ident) == threading.get_ident()


async def test_an_exception_reaches_the_caller() -> None:
    executor = LoopExecutor(asyncio.get_running_loop())
    with pytest.raises(ZeroDivisionError):
        await in_a_thread(executor, lambda: 1 / 0)
