"""Keeping Python's garbage collector out of the way of big caches, and what was large for a moment out of memory."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

LARGE_BLOCK = 2**20
"""Bytes from which on a block is given back to the system as soon as it is free."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt, as glibc's malloc.h numbers them."""
TRIM_SECONDS = 60.0
"""Seconds between two times that free memory in small pieces is given back."""


class _Pause:
    """How many blocks want the collector to rest, and whether it ran before the first of them."""

    holders = 0
    was_enabled = True


@contextmanager
def collection_paused(*, active: bool = True) -> Iterator[None]:
    """Keep the cyclic collector off in this block, which may overlap with others in the same process.

    A collection per few thousand new objects makes big first lists many times slower.

    Args:
        active: do nothing when False.
    """
    if not active:
        yield
        return
    if _Pause.holders == 0:
        _Pause.was_enabled = gc.isenabled()
        gc.disable()
    _Pause.holders += 1
    try:
        yield
    finally:
        _Pause.holders -= 1
        if _Pause.holders == 0 and _Pause.was_enabled:
            gc.enable()


def give_back_large_blocks() -> None:
    """Have large blocks go back to the system as soon as they are free; call it when a process begins.

    glibc would raise the bound to the largest block ever freed, up to 32 MiB, and hold back twice as much, in each of
    the places that threads allocate from: one huge list, plan or table of paths made a process larger for good.
    """
    with suppress(AttributeError, OSError):  # no glibc: nothing to set
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK)
        mallopt(_M_TRIM_THRESHOLD, LARGE_BLOCK)


async def give_back_free_memory(every: float = TRIM_SECONDS) -> None:
    """Have free memory go back to the system time and again, for as long as the process runs.

    glibc gives back by itself what is free at the end of a heap; what a large object left between others stays, and
    each round of large objects leaves some more. Looking through the heaps takes a few milliseconds. Giving back takes
    longer, and whoever needs memory meanwhile waits for this thread: 35 ms of processor time after 200 MB in small
    pieces became free, 65 after 400, about as long as to free them.

    Args:
        every: seconds between two times.
    """
    trim = _malloc_trim()
    while trim is not None:
        await asyncio.sleep(every)
        with suppress(RuntimeError):  # no thread can be made now, and there is no hurry
            await asyncio.to_thread(trim, 0)


def give_back_now() -> None:
    """Have free memory go back to the system."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


def _malloc_trim() -> Callable[[int], int] | None:
    """glibc's malloc_trim, None where there is none."""
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return trim


def freeze_objects() -> None:
    """Take everything loaded so far out of the garbage collector's sight; call it after the first lists."""
    gc.collect()
    gc.freeze()
