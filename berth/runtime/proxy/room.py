"""Who makes room where there are as many connections of clients as there may be."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from aiohttp.web_protocol import RequestHandler


def make_room(connections: Iterable[RequestHandler]) -> bool:
    """Close the oldest connection by which nothing is asked, as any may be between requests; False: there is none.

    Otherwise whoever opens them all would lock out everybody else without asking for anything.

    Args:
        connections: all of them, oldest first.
    """
    for each in connections:
        if is_idle(each):
            each.force_close()
            return True
    return False


def is_idle(connection: RequestHandler) -> bool:
    """Whether a connection waits for a request, with all answers on their way.

    While aiohttp waits for nothing a request may have been taken up whose answer has not begun, or what the client
    still sends behind an answer is read: an end before that would take the answer from the client.
    """
    transport, waiter = connection.transport, connection._waiter
    if transport is None or transport.is_closing() or transport.get_write_buffer_size():
        return False
    return waiter is not None and not waiter.done()


class Refusal(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it."""
        transport.close()
