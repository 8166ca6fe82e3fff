"""The garbage collector rests while big first lists load, and comes back however that ends."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from berth.kube.memory import collection_paused, freeze_objects, give_back_free_memory
from tests.support import malloc


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()
    gc.unfreeze()


def test_paused_inside_and_back_afterwards() -> None:
    with collection_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_inactive_changes_nothing() -> None:
    with collection_paused(active=False):
        assert gc.isenabled()


def test_back_after_an_error() -> None:
    with pytest.raises(RuntimeError), collection_paused():
        raise RuntimeError
    assert gc.isenabled()


def test_overlapping_lists_wait_for_the_last_one() -> None:
    first, second = ExitStack(), ExitStack()
    first.enter_context(collection_paused())
    second.enter_context(collection_paused())
    first.close()
    assert not gc.isenabled()
    second.close()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with collection_paused():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_what_is_there_is_frozen() -> None:
    freeze_objects()
    assert gc.get_freeze_count() > 0


@pytest.mark.skipif(not malloc.known(), reason="another C library than glibc")
@pytest.mark.parametrize(
    ("setting", "own"), [("give_back_large_blocks()", True), ("", False)], ids=["given back", "as glibc has it"]
)
def test_large_blocks_are_mapped_one_by_one_also_after_a_huge_one(setting: str, own: bool) -> None:
    program = f"""
from berth.kube.memory import give_back_large_blocks
from tests.support.malloc import given_back
{setting}
print(given_back())
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [str(own)]


_PIECES = """
import asyncio
import psutil
from berth.kube.memory import give_back_free_memory

async def main():
    resident = psutil.Process().memory_info
    pieces = [bytes(2000) for _ in range(50_000)]
    full = resident().rss
    del pieces[:-1]  # the last one is at the end of the heap, which therefore stays as large as it is
    free = resident().rss
    task = asyncio.create_task(give_back_free_memory(every=0.01))
    async with asyncio.timeout(30):
        while resident().rss > full - 80_000_000 and not task.done():
            await asyncio.sleep(0.01)
    print(free > full - 20_000_000, task.done())
    task.cancel()

asyncio.run(main())
"""


@pytest.mark.skipif(not malloc.known(), reason="another C library than glibc")
def test_small_pieces_that_are_free_go_back_in_time_and_glibc_alone_keeps_them() -> None:
    run = subprocess.run([sys.executable, "-c", _PIECES], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "False"]


async def test_without_glibc_there_is_nothing_to_give_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda _name: object())
    await give_back_free_memory(every=3600)


@pytest.mark.skipif(not malloc.known(), reason="another C library than glibc")
async def test_where_no_thread_can_be_made_the_process_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0
    again = asyncio.Event()

    async def refuse(*_: object) -> None:
        nonlocal tries
        tries += 1
        if tries > 1:
            again.set()
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(asyncio, "to_thread", refuse)
    task = asyncio.create_task(give_back_free_memory(every=0.01))
    try:
        async with asyncio.timeout(10):
            await again.wait()
    finally:
        task.cancel()
    assert (await asyncio.gather(task, return_exceptions=True))[0].__class__ is asyncio.CancelledError
