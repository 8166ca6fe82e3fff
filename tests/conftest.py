"""What all tests share: a test that leaves asyncio tasks behind fails, since its successors would run beside them."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, settings

from berth.runtime import struct_types

# How long an example takes says nothing on a machine that has other things to do. Examples are the same in every run:
# what fails was changed. With BERTH_TEST_EXPLORE they are new ones each time, to find what nobody knows yet.
settings.register_profile(
    "berth",
    settings.default,
    deadline=None,
    derandomize="BERTH_TEST_EXPLORE" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("berth")


def pytest_collection_finish() -> None:
    """Have types worked out before there are threads, as processes of Berth do: tests have several leases."""
    struct_types.prepare()


@pytest.fixture
async def no_task_leaks() -> AsyncIterator[None]:
    """Fail if tasks begun since are still there at the end."""
    before = asyncio.all_tasks()
    yield
    for _ in range(10):  # what was cancelled at the very end needs a few rounds of the loop to finish
        await asyncio.sleep(0)
    left = [task for task in asyncio.all_tasks() - before if task is not asyncio.current_task()]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    if left:
        pytest.fail(f"asyncio tasks left running: {', '.join(repr(task.get_coro()) for task in left)}")


@pytest.fixture(autouse=True)
def _guard_tasks(request: pytest.FixtureRequest) -> None:
    """Apply :func:`no_task_leaks` to asynchronous tests; the others need no loop."""
    if inspect.iscoroutinefunction(getattr(request, "function", None)):
        request.getfixturevalue("no_task_leaks")
