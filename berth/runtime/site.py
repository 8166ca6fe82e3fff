"""Pages of a process's own, and the port that they are served on."""

from __future__ import annotations

import asyncio
import math
import os
import socket
import ssl
from collections import OrderedDict
from functools import partial
from typing import Final, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from berth.runtime.tls_protocol import TlsProtocol

BACKLOG: Final = 100
"""Connections that wait to be accepted."""
MAX_FIELDS: Final = 32
"""Header fields of a request at most, of 8 KiB each; so much is kept of a head that does not end."""
TURNS: Final = 16
"""Turns of the event loop for which a connection is kept at the least, however many come."""


class Site:
    """An application that listens between `start` and `stop`."""

    def __init__(
        self,
        application: web.Application,
        *,
        host: str | None,
        port: int,
        context: ssl.SSLContext | None = None,
        most: int | None = None,
        strangers: int = 1000,
        idle: float = 3630.0,
    ) -> None:
        """Prepare.

        Args:
            application: what answers.
            host: address to listen on; empty or None: all of them.
            port: 0 picks a free one, readable as :attr:`port` after start.
            context: TLS settings; None: without TLS.
            most: connections at a time; one more closes the oldest. None: as many as come.
            strangers: connections with TLS at a time of which `introduce` was not called; one more closes the oldest.
            idle: seconds from one request of a connection to the next, where `most` is not stated.
        """
        self.port = port
        """port that it listens on"""
        self._host = host or None
        self._context = context
        self._most = most
        # The event loop accepts so many before it looks at others: whoever asks is answered before it is the oldest.
        self._at_once = BACKLOG if most is None else max(1, most // TURNS)
        self._most_strangers = strangers
        self._strangers: OrderedDict[asyncio.BaseProtocol, TlsProtocol] = OrderedDict()
        self._server: asyncio.Server | None = None
        # Idle ones make room for others. aiohttp would close them, which keeps what a peer has not read, out of reach.
        idle = idle if most is None else math.inf
        self._runner = web.AppRunner(
            application,
            access_log=None,
            shutdown_timeout=1.0,
            keepalive_timeout=idle,
            max_headers=MAX_FIELDS,
            auto_decompress=False,  # a body that is small may be a thousand times as large, whoever sends it
        )

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError, OverflowError: address or port cannot be used.
        """
        await self._runner.setup()
        connection = partial(self._connection, cast("web.Server", self._runner.server))
        try:
            self._server = await asyncio.get_running_loop().create_server(
                connection, self._host, self.port, backlog=self._at_once
            )
        except (OSError, OverflowError):
            await self.stop()
            raise
        for each in self._server.sockets:
            with socket.socket(fileno=os.dup(each.fileno())) as listening:
                listening.listen(BACKLOG)  # the kernel keeps as many as ever that are not accepted yet
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening; requests under way have a second."""
        if self._server is not None:
            self._server.close()
        for protocol, stranger in [*self._strangers.items()]:
            if cast("RequestHandler", protocol).transport is None:
                stranger.cut()  # the handshake would end later, and a request be answered by what has been stopped
        await self._runner.cleanup()

    def introduce(self, request: web.BaseRequest) -> None:
        """Who speaks by a connection is known: it makes no room for those of whom nobody knows that."""
        self._strangers.pop(request.protocol, None)

    def _connection(self, server: web.Server) -> asyncio.BaseProtocol:
        if self._most is not None:
            opened = server.connections
            for oldest in opened[: max(0, len(opened) + 1 - self._most)]:
                transport = oldest.transport
                oldest.force_close()
                if transport is not None:
                    # Closed, it would keep what its peer does not read, and be counted as the oldest for ever.
                    transport.abort()
        protocol: asyncio.Protocol = server()
        if self._context is None:
            return protocol
        found = TlsProtocol(protocol, self._context, partial(self._strangers.pop, protocol, None))
        self._strangers[protocol] = found
        while len(self._strangers) > self._most_strangers:
            _, stranger = self._strangers.popitem(last=False)
            stranger.cut()
        return found
