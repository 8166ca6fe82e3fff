"""How much asyncio reads of a connection at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

BUFFERED_BYTES: Final = 65_536
"""Bytes of an answer that nobody has taken from which on no more is read, and bytes that are read at a time at most."""
LITTLE_BYTES: Final = 2048
"""Bytes that are read at a time while memory is short: of a thousand answers at once 64 MB would come."""


def read_at_most(transport: asyncio.BaseTransport, size: int = BUFFERED_BYTES) -> None:
    """Have asyncio read no more at a time than may wait: it would read 256 KiB."""
    transport.max_size = size  # type: ignore[attr-defined]  # of the event loop's own transports


class Reading:
    """That of connections which all read as much."""

    def __init__(self) -> None:
        """Begin without any."""
        self.came: Callable[[int], object] = lambda _size: None
        """is told how much has come, by all of them together"""
        self._size = BUFFERED_BYTES
        self._transports: set[asyncio.BaseTransport] = set()

    def begin(self, transport: asyncio.BaseTransport) -> None:
        """A connection is made."""
        self._transports.add(transport)
        read_at_most(transport, self._size)

    def end(self, transport: asyncio.BaseTransport | None) -> None:
        """A connection has ended."""
        if transport is not None:
            self._transports.discard(transport)

    def read_little(self, little: bool) -> None:
        """Have all read less at a time from now on, or as much as before."""
        self._size = LITTLE_BYTES if little else BUFFERED_BYTES
        for transport in self._transports:
            read_at_most(transport, self._size)
