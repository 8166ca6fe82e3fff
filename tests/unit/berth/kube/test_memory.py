"""The garbage collector rests while big first lists load, and comes back however that ends."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from berth.kube.memory import collection_paused, settle_memory


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


def test_settle_freezes_what_is_there() -> None:
    settle_memory()
    assert gc.get_freeze_count() > 0


AFTER_A_HUGE_BLOCK = """
import ctypes
from berth.kube.memory import LARGE_BLOCK, settle_memory

class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd".split()]
    _fields_ += [(name, ctypes.c_size_t) for name in "usmblks fsmblks uordblks fordblks keepcost".split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Mallinfo
bytearray(30 * LARGE_BLOCK)  # freed at once
SETTLE
before = libc.mallinfo2().hblkhd
block = bytearray(2 * LARGE_BLOCK)
print(libc.mallinfo2().hblkhd - before >= len(block))
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="another C library than glibc")
@pytest.mark.parametrize(
    ("settle", "own"), [("settle_memory()", True), ("", False)], ids=["settled", "as glibc has it"]
)
def test_large_blocks_are_mapped_one_by_one_also_after_a_huge_one(settle: str, own: bool) -> None:
    program = AFTER_A_HUGE_BLOCK.replace("SETTLE", settle)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [str(own)]
