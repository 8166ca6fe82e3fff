"""The sending end of a throughput test."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from typing import Final, NamedTuple

from agents.node.throughput.receiver import ANSWER, BLOCK, BLOCKS_IN_A_ROW, GREETING

SECONDS: Final = 2.0
"""Seconds for which is sent at most: long enough for TCP to find the rate, short for those who share the link."""
ANSWER_SECONDS: Final = 5.0
"""Seconds for connecting, and for the answer."""


class Throughput(NamedTuple):
    """What came through, as the receiver counted it."""

    octets: int
    """bytes"""
    seconds: float
    """that they took"""

    @property
    def bits_per_second(self) -> int:
        """The rate; at least 1."""
        return max(1, round(8 * self.octets / self.seconds))


class RefusedError(Exception):
    """The receiver takes nothing now: it is busy, or has had its share of this hour."""


async def measure(address: str, port: int, *, limit: int, seconds: float = SECONDS) -> Throughput:
    """Send and return what came through.

    Args:
        address: IP address of the receiver.
        port: its port.
        limit: bytes that are sent at most.
        seconds: for which is sent at most.

    Raises:
        RefusedError: the receiver takes nothing now.
        OSError (with TimeoutError): it cannot be reached, went away, or is none.
    """
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as connection:
        connection.setblocking(False)
        async with asyncio.timeout(ANSWER_SECONDS):
            await loop.sock_connect(connection, (address, port))
            (allowed,) = GREETING.unpack(await _exactly(connection, GREETING.size))
        if not allowed:
            raise RefusedError("it is busy, or has had its share of this hour")
        async with asyncio.timeout(seconds + ANSWER_SECONDS):
            sent = await _send(connection, min(limit, allowed), seconds)
            connection.shutdown(socket.SHUT_WR)
            received, microseconds = ANSWER.unpack(await _exactly(connection, ANSWER.size))
    if not received or not microseconds:
        raise ConnectionError("too little came through to tell a rate")
    if received > sent:
        raise ConnectionError("the receiver counted more than was sent")
    return Throughput(received, microseconds / 1e6)


async def _send(connection: socket.socket, limit: int, seconds: float) -> int:
    """Send and return how many bytes."""
    loop = asyncio.get_running_loop()
    block = memoryview(os.urandom(BLOCK))  # what compresses would look faster than it is
    end = time.monotonic() + seconds
    sent, blocks = 0, 0
    while sent < limit and time.monotonic() < end:
        part = block[: limit - sent]
        await loop.sock_sendall(connection, part)
        sent += len(part)
        blocks += 1
        if not blocks % BLOCKS_IN_A_ROW:
            await asyncio.sleep(0)
    return sent


async def _exactly(connection: socket.socket, size: int) -> bytes:
    loop, found = asyncio.get_running_loop(), b""
    while len(found) < size:
        part = await loop.sock_recv(connection, size - len(found))
        if not part:
            raise ConnectionResetError("the receiver has closed the connection")
        found += part
    return found
