"""What glibc does with large blocks, seen by its own counts."""

from __future__ import annotations

import ctypes

from berth.kube.memory import LARGE_BLOCK


class _Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd")]
    _fields_ += [(name, ctypes.c_size_t) for name in ("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


def known() -> bool:
    """Whether the C library tells."""
    return hasattr(ctypes.CDLL(None), "mallinfo2")


def given_back() -> bool:
    """Whether a large block is mapped by itself, so that it goes back when it is free, also after a huge one."""
    bytearray(30 * LARGE_BLOCK)  # freed at once
    before = _mapped()
    block = bytearray(2 * LARGE_BLOCK)
    return _mapped() - before >= len(block)


def _mapped() -> int:
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _Mallinfo
    return int(libc.mallinfo2().hblkhd)
