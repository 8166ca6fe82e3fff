"""Keeping Python's garbage collector out of the way of big caches."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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


def settle_memory() -> None:
    """Take everything loaded so far out of the garbage collector's sight; call it after the first lists."""
    gc.collect()
    gc.freeze()
