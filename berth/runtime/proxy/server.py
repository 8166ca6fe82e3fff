"""Where clients connect: aiohttp's low-level server, with bounds, and an end that loses no request."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from berth.runtime.listening import listen
from berth.runtime.open_files import most_files
from berth.runtime.proxy.client_connection import LINGER_SECONDS, MAX_FIELD_BYTES, MAX_FIELDS, ClientConnection
from berth.runtime.proxy.memory import Keeper, memory_limit, memory_used
from berth.runtime.proxy.pool import UpstreamPool
from berth.runtime.proxy.reading import BUFFERED_BYTES
from berth.runtime.proxy.room import Refusal, Room, is_idle

log = structlog.get_logger(__name__)

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
"""Answers one request."""

KEEP_ALIVE_SECONDS: Final = 75.0
"""Seconds for the first request of a connection, and from one to the next."""
MOST_CONNECTIONS: Final = 10_000
"""Connections of clients at a time; for one more another is closed, or it where all wait for answers."""
OTHER_FILES: Final = 320
"""Open files that are left for what is no client's: connections to pods that are kept, and those to the API server."""
WAITING_CONNECTIONS: Final = 1024
"""Connections that wait to be accepted."""
ACCEPTED_AT_ONCE: Final = 16
"""Connections that are accepted before others have their turn: of a thousand at once each takes half a millisecond."""


def _without_clients(record: logging.LogRecord) -> bool:
    """Keep faults of ours, without the client's address; what clients do wrong is theirs, and quotes what they sent."""
    error = record.exc_info[1] if record.exc_info else None
    record.args = tuple("a client" for _ in record.args or ())
    return not isinstance(error, (HttpProcessingError, ConnectionError))


_LOGGER: Final = logging.getLogger(__name__)
"""What aiohttp's server logs by."""
_LOGGER.addFilter(_without_clients)


class ProxyPortError(ValueError):
    """The proxy cannot listen where it should; the text says what to do."""


class ProxyServer:
    """Listens for clients and hands each request to a handler.

    Ends in three steps, since clients come for a while after their load balancer was told: connections end with their
    next answer, then nobody new is let in, then what is under way has its time.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        host: str,
        port: int,
        most_connections: int = MOST_CONNECTIONS,
        pool: UpstreamPool | None = None,
        used: Callable[[], int] = memory_used,
        limit: int | None = None,
    ) -> None:
        """Prepare.

        Args:
            handler: answers requests.
            host: address to listen on; empty: all of them.
            port: 0 picks a free one, readable as :attr:`port` after start.
            most_connections: connections of clients at a time; fewer where there are not two open files for each.
            pool: connections to the application; they read less while memory is short.
            used: tells how much memory the process has.
            limit: bytes of memory that it may have; None: what its cgroup says.
        """
        self._pool, self._used, self._limit = pool, used, limit
        self._keeper = Keeper(None, self._connections)
        self._keeping: asyncio.Task[None] | None = None
        self._handler = handler
        self._host = host
        self.port = port
        """port that it listens on"""
        self._most = most_connections
        self._server: Room | None = None
        self._options: dict[str, Any] = {}
        self._listener: asyncio.Server | None = None

    @property
    def listening(self) -> bool:
        """Whether clients are let in."""
        return self._listener is not None

    @property
    def connections(self) -> int:
        """How many connections of clients there are."""
        return self._server.count if self._server else 0

    async def start(self) -> None:
        """Listen.

        Raises:
            ProxyPortError: address or port cannot be used.
        """
        self._most = min(self._most, max(1, (most_files() - OTHER_FILES) // 2))
        self._server = Room(self._handler, handler_cancellation=True)
        self._options = {
            "loop": asyncio.get_running_loop(),
            "access_log": None,
            "logger": _LOGGER,
            "auto_decompress": False,
            "keepalive_timeout": KEEP_ALIVE_SECONDS,
            "max_line_size": MAX_FIELD_BYTES,
            "max_field_size": MAX_FIELD_BYTES,
            "max_headers": MAX_FIELDS,
            "lingering_time": LINGER_SECONDS,
            "read_bufsize": BUFFERED_BYTES // 2,  # twice as much may wait
        }
        try:
            accepting = listen(self._host, self.port)
        except (OSError, OverflowError) as error:
            number = getattr(error, "errno", None)
            why = "is taken" if number == errno.EADDRINUSE else f"cannot be used: {error}"
            raise ProxyPortError(
                f"port {self.port} of {self._host or 'all addresses'} {why}; choose another"
            ) from error
        self.port = accepting.getsockname()[1]
        limits = memory_limit if self._limit is None else lambda: self._limit
        self._keeper = Keeper(await asyncio.to_thread(limits), self._connections, self._used, self._used(), limits)
        if self._pool is not None:
            reading = self._pool.reading
            reading.came, self._keeper.turned = self._keeper.came, reading.read_little
        self._keeping = asyncio.create_task(self._keeper.run())
        self._listener = await asyncio.get_running_loop().create_server(
            self._accepted, sock=accepting, backlog=ACCEPTED_AT_ONCE
        )
        accepting.listen(WAITING_CONNECTIONS)  # asyncio takes one number for both

    async def stop(self, *, seconds: float) -> None:
        """Let nobody new in, give what is under way so many seconds, and close everything."""
        if self._listener is None or self._server is None:
            return
        self._listener.close()
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while True:
            for connection in filter(is_idle, self._server.connections):
                connection.force_close()  # one with a request would not read the rest of its body
            if not self._server.connections or loop.time() >= until:
                break
            await asyncio.sleep(0.05)
        left = len(self._server.connections)
        if left:
            log.warning("requests were cut off, their time is over", connections=left)
        await self._server.shutdown(0.1)
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        self._listener = None

    def _connections(self) -> list[ClientConnection]:
        found = self._server.connections if self._server is not None else ()
        return [each for each in found if isinstance(each, ClientConnection)]

    def _accepted(self) -> asyncio.BaseProtocol:
        full = self.connections >= self._most
        if self._server is None or (full and not self._server.make()):
            return Refusal()
        return ClientConnection(self._server, self._keeper, **self._options)
