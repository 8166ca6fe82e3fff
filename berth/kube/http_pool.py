"""HTTP/1.1 requests over connections that are kept alive: the way of a Binding and an Event, at less than half of what
a general client's costs.

Left to aiohttp are watches, whose answers do not end, and proxies.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Mapping
from typing import cast
from urllib.parse import urlencode, urlsplit

from berth.kube.connection import Connection
from berth.kube.dials import Dials
from berth.kube.http_answer import LARGEST_BODY, AnswerReader, HttpAnswer, MalformedAnswerError

CONNECT_SECONDS = 5.0
"""Seconds for the connection and its TLS handshake."""
KEEP_ALIVE_SECONDS = 15.0
"""Seconds without a request after which a connection is not used again: something on the way may have dropped it."""


class HttpPool:
    """Connections to one API server; the caller bounds their number by that of its requests."""

    def __init__(self, connection: Connection, *, user_agent: str) -> None:
        """Prepare; a connection is made when a request finds none that is free."""
        self._connection = connection
        self._agent = user_agent
        self._free: deque[_Channel] = deque()
        self._all: set[_Channel] = set()
        self._dials = Dials(self._connect, self._give)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str],
        body: bytes | None,
        seconds: float,
        largest: int = LARGEST_BODY,
    ) -> HttpAnswer:
        """Send a request and read its answer, within so many seconds.

        Args:
            method: such as ``POST``.
            path: below the server's URL, quoted.
            params: the query, not quoted.
            headers: further ones, such as those that authenticate.
            body: what to send, None for nothing.
            seconds: the longest that connecting, sending and reading may take together.
            largest: bytes of the answer's body at the most.

        Raises:
            TooLargeError: it is larger.
            ssl.SSLError: the handshake failed; nothing has been sent.
            OSError (with TimeoutError): there was no connection, no answer in time, or no whole one.
            ValueError: a header has a line break in it.
        """
        head = self._head(method, path, params, headers, body)
        async with asyncio.timeout(seconds):
            channel = await self._channel()
            try:
                answer = await channel.exchange(head + body if body else head, largest)
            except BaseException:
                channel.drop()  # its answer may come when the next is waited for
                raise
        channel.free_since = time.monotonic()
        self._give(channel)
        return answer

    async def close(self) -> None:
        """Close all connections."""
        self._dials.close()
        channels = list(self._all)
        for channel in channels:
            channel.drop()
        await asyncio.gather(*(channel.ended for channel in channels))

    def _head(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> bytes:
        url = urlsplit(self._connection.server)
        target = f"{url.path}{path}?{urlencode(params)}" if params else url.path + path
        lines = [f"{method} {target} HTTP/1.1", f"Host: {url.netloc.rpartition('@')[2]}", f"User-Agent: {self._agent}"]
        lines += [
            "Accept: application/json",
            "Accept-Encoding: gzip",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        if any("\n" in line or "\r" in line for line in lines):
            raise ValueError("a header has a line break in it")
        return "\r\n".join([*lines, "", ""]).encode()

    async def _channel(self) -> _Channel:
        """A connection: one that is free, else that which is free or made first."""
        while True:
            channel = self._take() or await self._dials.wait()
            if channel.reusable or not channel.free_since:
                return channel
            channel.drop()  # it ended just when it was handed on

    def _give(self, channel: _Channel) -> None:
        """Have a connection used by who waits for one, or later."""
        used_up = channel.free_since and not channel.reusable
        if used_up or channel.generation != self._connection.generation:
            channel.drop()  # also one that was made while credentials were renewed: another is made for who waits
        elif not self._dials.hand_on(channel):
            channel.free_since = channel.free_since or time.monotonic()
            self._free.append(channel)

    def _take(self) -> _Channel | None:
        """The connection that was used last of those that are free, so that those not needed fall out of use."""
        while self._free and time.monotonic() - self._free[0].free_since > KEEP_ALIVE_SECONDS:
            self._free.popleft().drop()
        generation = self._connection.generation
        while self._free:
            channel = self._free.pop()
            if channel.reusable and channel.generation == generation:
                return channel
            channel.drop()
        return None

    async def _connect(self) -> _Channel:
        url = urlsplit(self._connection.server)
        secure = url.scheme == "https"
        host, port = url.hostname or "", url.port or (443 if secure else 80)
        generation, context = self._connection.generation, self._connection.ssl_context() if secure else None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, channel = await asyncio.get_running_loop().create_connection(
                    lambda: _Channel(generation, self._all),
                    host,
                    port,
                    ssl=context,
                    server_hostname=self._connection.server_hostname if secure else None,
                    happy_eyeballs_delay=0.25,
                )
        except ssl.SSLError:
            raise
        except TimeoutError as error:
            raise TimeoutError(f"no connection to {host}:{port} within {CONNECT_SECONDS:g} s") from error
        except OSError as error:
            raise ConnectionError(f"cannot connect to {host}:{port}: {error.strerror or error}") from error
        return channel


class _Channel(asyncio.Protocol):
    """One connection; it carries one request at a time."""

    def __init__(self, generation: int, everyone: set[_Channel]) -> None:
        self.generation = generation
        self.free_since = 0.0  # it carried no request yet
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._everyone = everyone
        self._reader = AnswerReader()
        self._answer: asyncio.Future[HttpAnswer] | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def reusable(self) -> bool:
        """Whether another request may be sent; not behind one that was answered before all of it had been sent."""
        transport = self._transport
        if transport is None or transport.is_closing() or transport.get_write_buffer_size():
            return False
        return self._reader.lasting and self._reader.empty

    async def exchange(self, request: bytes, largest: int) -> HttpAnswer:
        """Send a request and wait for its answer, whose body may have so many bytes.

        Raises:
            OSError: the connection ended before, or what came is no answer.
        """
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the server has closed the connection")
        self._answer, self._reader.largest = asyncio.get_running_loop().create_future(), largest
        self._transport.write(request)
        try:
            return await self._answer
        finally:
            self._answer = None  # it may have megabytes, and the next request may be long in coming

    def drop(self) -> None:
        """Close the connection without waiting for anything."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._everyone.add(self)

    def data_received(self, data: bytes) -> None:
        """Read on; what nobody has asked for ends the connection."""
        if self._answer is None or self._answer.done():
            self.drop()
            return
        try:
            answer = self._reader.feed(data)
        except MalformedAnswerError as error:
            self._answer.set_exception(error)
        else:
            if answer is not None:
                self._answer.set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        """Tell who waits; some answers end here."""
        self._everyone.discard(self)
        self._transport = None
        if not self.ended.done():
            self.ended.set_result(None)
        if self._answer is None or self._answer.done():
            return
        try:
            answer = self._reader.end() if error is None else None
        except MalformedAnswerError as problem:
            self._answer.set_exception(problem)
            return
        if answer is not None:
            self._answer.set_result(answer)
        else:
            # Whatever the reason, TLS among them: here the request may have arrived.
            self._answer.set_exception(
                ConnectionResetError(f"the connection ended without an answer: {error or 'closed'}")
            )
