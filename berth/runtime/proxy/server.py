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
from aiohttp.web_protocol import RequestHandler, _ErrInfo

from berth.runtime.listening import listen
from berth.runtime.proxy.upstream import BUFFERED_BYTES, read_at_most

log = structlog.get_logger(__name__)

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
"""Answers one request."""

KEEP_ALIVE_SECONDS: Final = 75.0
"""Seconds for the first request of a connection, and from one to the next."""
MOST_CONNECTIONS: Final = 10_000
"""Connections of clients at a time; one more is closed at once."""
WAITING_CONNECTIONS: Final = 1024
"""Connections that wait to be accepted."""
MAX_FIELD_BYTES: Final = 16_384
"""Bytes of one header field, and of the request line, at most."""
MAX_FIELDS: Final = 100
"""Header fields of a request at most."""


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


class MalformedBodyError(web.RequestPayloadError, ConnectionError):
    """A body that goes on as none does."""


class _Connection(RequestHandler):
    """aiohttp's connection. That says nothing of a malformed body to whoever reads it, who would wait for the rest."""

    __slots__ = ("_malformed",)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._malformed = False

    def data_received(self, data: bytes) -> None:
        """Take in what came; behind what is malformed nothing can be told apart."""
        if self._malformed:
            return
        super().data_received(data)
        if not self._messages or not isinstance(self._messages[-1][0], _ErrInfo):
            return
        self._malformed = True
        # Of whose body it is, the request may be waiting for its turn.
        cut = self._messages[-2][1] if len(self._messages) > 1 else getattr(self._current_request, "content", None)
        if cut is not None and not cut.is_eof():
            cut.set_exception(MalformedBodyError("the body is malformed"))


class ProxyServer:
    """Listens for clients and hands each request to a handler.

    Ends in three steps, since clients come for a while after their load balancer was told: connections end with their
    next answer, then nobody new is let in, then what is under way has its time.
    """

    def __init__(self, handler: Handler, *, host: str, port: int, most_connections: int = MOST_CONNECTIONS) -> None:
        """Prepare; port 0 picks a free one, readable as :attr:`port` after start; an empty host is all addresses."""
        self._handler = handler
        self._host = host
        self.port = port
        """port that it listens on"""
        self._most = most_connections
        self._busy: set[object] = set()
        self._server: web.Server | None = None
        self._options: dict[str, Any] = {}
        self._listener: asyncio.Server | None = None

    @property
    def listening(self) -> bool:
        """Whether clients are let in."""
        return self._listener is not None

    @property
    def connections(self) -> int:
        """How many connections of clients there are."""
        return len(self._server.connections) if self._server else 0

    async def start(self) -> None:
        """Listen.

        Raises:
            ProxyPortError: address or port cannot be used.
        """
        self._server = web.Server(self._answer, handler_cancellation=True)
        self._options = {
            "loop": asyncio.get_running_loop(),
            "access_log": None,
            "logger": _LOGGER,
            "auto_decompress": False,
            "keepalive_timeout": KEEP_ALIVE_SECONDS,
            "max_line_size": MAX_FIELD_BYTES,
            "max_field_size": MAX_FIELD_BYTES,
            "max_headers": MAX_FIELDS,
            "lingering_time": 2.0,
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
        self._listener = await asyncio.get_running_loop().create_server(
            self._accepted, sock=accepting, backlog=WAITING_CONNECTIONS
        )

    async def stop(self, *, seconds: float) -> None:
        """Let nobody new in, give what is under way so many seconds, and close everything."""
        if self._listener is None or self._server is None:
            return
        self._listener.close()
        for connection in self._server.connections:
            if connection not in self._busy:
                connection.force_close()  # one with a request would not read the rest of its body
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self._server.connections and loop.time() < until:
            await asyncio.sleep(0.05)
        left = len(self._server.connections)
        if left:
            log.warning("requests were cut off, their time is over", connections=left)
        await self._server.shutdown(0.1)
        self._listener = None

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        protocol = request.protocol
        if request.transport is not None:
            read_at_most(request.transport)
        self._busy.add(protocol)
        try:
            return await self._handler(request)
        finally:
            self._busy.discard(protocol)

    def _accepted(self) -> asyncio.BaseProtocol:
        if self._server is None or self.connections >= self._most:
            return _Refusal()
        return _Connection(self._server, **self._options)


class _Refusal(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it."""
        transport.close()
