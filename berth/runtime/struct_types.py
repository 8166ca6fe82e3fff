"""What msgspec knows of our types, before there are threads.

msgspec works out a Struct when it is first read, and other threads see it half done: two that begin to read the same
type at once, as the threads of two leases do, end the process with a segmentation fault (msgspec 0.22).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec


def prepare() -> None:
    """Have all Structs that are defined by now worked out; to be called while there is one thread. Takes 5 ms."""
    for kind in _below(msgspec.Struct):
        with suppress(TypeError, NameError):  # what msgspec cannot read is read by nobody
            msgspec.json.Decoder(kind)


def _below(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
