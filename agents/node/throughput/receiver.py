"""The receiving end of a throughput test: says how much may be sent, counts what comes, says what that was.

Greeting: the bytes that the sender may send, 0 if it may send none. Answer, once the sender has ended or has sent
all that it may: the bytes that came, and the microseconds that they took at the rate of those after the first read: how
long the bytes of that one took nobody knows, nor of those that waited behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import socket
import struct
import termios
import time
from typing import Final

from agents.node.throughput.ledger import Ledger
from berth.runtime.listening import listen

DEFAULT_PORT: Final = 9472
"""Port of the agents' receivers."""
LONGEST_SECONDS: Final = 30.0
"""Seconds after which a test is ended: another sender may wait."""
GREETING: Final = struct.Struct("!Q")
"""Bytes that may be sent."""
ANSWER: Final = struct.Struct("!QQ")
"""Bytes that came, and microseconds."""
BLOCK: Final = 1 << 18
"""Bytes that are sent or read at once."""
BLOCKS_IN_A_ROW: Final = 64
"""Blocks after which others have their turn: what can be read or sent at once is, without a look at them."""


class Receiver:
    """Receives from one sender at a time; others are told to come later."""

    def __init__(self, address: str, port: int, limit: int) -> None:
        """Listen.

        Args:
            address: where to listen; empty: everywhere, on IPv6 as well where there is some.
            port: 0 picks a free one.
            limit: bytes that one sender may send within an hour.

        Raises:
            OSError: the address is not this machine's, or the port is taken.
        """
        self._server = listen(address, port)
        self.port: int = self._server.getsockname()[1]
        """Port that it listens on."""
        self._ledger = Ledger(limit)
        self._busy = False
        self._buffer = bytearray(BLOCK)

    async def run(self) -> None:
        """Receive until cancelled."""
        loop = asyncio.get_running_loop()
        tests: set[asyncio.Task[None]] = set()
        try:
            while True:
                try:
                    connection, address = await loop.sock_accept(self._server)
                except OSError:
                    await asyncio.sleep(1.0)  # it was given up meanwhile, or there are no more file descriptors
                    continue
                test = asyncio.create_task(self._serve(connection, str(address[0])))
                tests.add(test)
                test.add_done_callback(tests.discard)
        finally:
            self._server.close()
            for test in tests:
                test.cancel()
            await asyncio.gather(*tests, return_exceptions=True)

    async def _serve(self, connection: socket.socket, sender: str) -> None:
        with connection, contextlib.suppress(OSError):  # a sender that goes has learnt nothing; the next one may come
            allowed = 0 if self._busy else self._ledger.allowed(sender, time.monotonic())
            if not allowed:
                await asyncio.get_running_loop().sock_sendall(connection, GREETING.pack(0))
                return
            self._busy = True
            try:
                async with asyncio.timeout(LONGEST_SECONDS):
                    await self._receive(connection, sender, allowed)
            finally:
                self._busy = False

    async def _receive(self, connection: socket.socket, sender: str, allowed: int) -> None:
        loop = asyncio.get_running_loop()
        connection.setblocking(False)
        await loop.sock_sendall(connection, GREETING.pack(allowed))
        received, first, began, ended, blocks = 0, 0, 0.0, 0.0, 0
        try:
            while received < allowed:
                size = await loop.sock_recv_into(connection, memoryview(self._buffer)[: allowed - received])
                if not size:
                    break
                ended = time.perf_counter()
                if not blocks:
                    began, first = ended, size + _waiting(connection)
                received += size
                blocks += 1
                if not blocks % BLOCKS_IN_A_ROW:
                    await asyncio.sleep(0)
        finally:
            self._ledger.add(sender, received, time.monotonic())
        seconds = (ended - began) * received / (received - first) if received > first else 0.0
        await loop.sock_sendall(connection, ANSWER.pack(received, round(seconds * 1e6)))


def _waiting(connection: socket.socket) -> int:
    """Return the bytes that have come and were not read: all of a short test, where this process was held up."""
    (size,) = struct.unpack("i", fcntl.ioctl(connection, termios.FIONREAD, bytes(4)))
    return int(size)
