"""Who makes room where there are as many connections of clients as there may be."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable

from aiohttp.web_protocol import RequestHandler


def make_room(connections: Iterable[RequestHandler], busy: Container[object]) -> bool:
    """Close the oldest connection by which nothing is asked, as any may be between requests; False: there is none.

    Otherwise whoever opens them all would lock out everybody else without asking for anything.

    Args:
        connections: all of them, oldest first.
        busy: those by which a request is being answered.
    """
    for each in connections:
        if each not in busy and _is_idle(each):
            each.force_close()
            return True
    return False


def _is_idle(connection: RequestHandler) -> bool:
    """Whether all that was asked by it is answered, and all of that on its way; one that ends is there until then."""
    transport = connection.transport
    if transport is None or transport.is_closing() or transport.get_write_buffer_size():
        return False
    return not connection._messages and connection._current_request is None


class Refusal(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it."""
        transport.close()
