"""A connection to the application: one request at a time, with what is known when it fails."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple, cast

from berth.runtime.proxy.reading import BUFFERED_BYTES, Reading
from berth.runtime.proxy.response_reader import Head, MalformedAnswerError, ResponseReader
from berth.runtime.tcp_info import segments_acknowledged

SILENT_MILLISECONDS: Final = 3000
"""How long what was sent may be unacknowledged before the kernel gives the connection up: the node may be gone."""
SLOW_MILLISECONDS: Final = 60_000
"""The same once more was sent than an application that does not read has room for: the kernel gives up a connection
whose other side takes nothing for so long, too, and an application may take its time."""
ROOM_BYTES: Final = 32_768
"""Bytes of a body for which every application has room: half of the window that connections begin with."""


class Address(NamedTuple):
    """Where the application listens."""

    host: str
    """IP address or name"""
    port: int
    """TCP port"""


class Failure(StrEnum):
    """What became of a request that was not answered."""

    CONNECT = "connect"
    """there was no connection, so nothing was sent"""
    STALE = "stale"
    """a connection that was kept has ended, and nobody has read the request: it was being closed"""
    CUT = "cut"
    """the connection ended before or within the answer"""
    MALFORMED = "malformed"
    """what came is no answer"""
    TIMEOUT = "timeout"
    """no answer came in time"""


class UpstreamError(Exception):
    """A request that was not answered."""

    def __init__(self, failure: Failure, text: str, *, closed: bool = False) -> None:
        """Keep what became of it, what there is to say, and whether the other side has closed the connection."""
        super().__init__(text)
        self.failure = failure
        self.closed = closed


class UpstreamConnection(asyncio.Protocol):
    """One connection; it carries one request at a time."""

    def __init__(self, address: Address, everyone: set[UpstreamConnection], reading: Reading) -> None:
        """Prepare.

        Args:
            address: where it leads to.
            everyone: where it notes that it is there.
            reading: how much it reads at a time.
        """
        self._reading = reading
        self.address = address
        self.free_since = 0.0
        """when its last request ended, on the monotonic clock"""
        self.used = False
        """whether a request has been answered on it"""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """done once it is closed"""
        self._everyone, self._heard, self._paused = everyone, False, False
        self._transport: asyncio.Transport | None = None
        self._reader: ResponseReader | None = None
        self._raw: list[bytes] | None = None
        self._problem: UpstreamError | None = None
        self._body_bytes = self._waiting = self._acknowledged = 0
        self._patience = SILENT_MILLISECONDS
        self._news: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None

    @property
    def reusable(self) -> bool:
        """Whether another request may be sent."""
        reader = self._reader
        if self._transport is None or self._transport.is_closing() or self._problem is not None:
            return False
        if self._raw is not None or self._transport.get_write_buffer_size():
            return False
        return reader is None or (reader.complete and reader.lasting)

    @property
    def answered(self) -> bool:
        """Whether the head of the answer has come."""
        return self._reader is not None and self._reader.head is not None

    @property
    def ready(self) -> bool:
        """Whether there is some of the body to take, or its end."""
        return self._reader is not None and (bool(self._reader.chunks) or self._reader.complete)

    @property
    def complete(self) -> bool:
        """Whether all of the answer has come, and has been taken."""
        return self._reader is not None and self._reader.complete and not self._reader.chunks

    def begin(self, head: bytes, *, method: str, upgrade: bool = False) -> None:
        """Send the head of a request, with what of its body is there."""
        self._reader = reader = ResponseReader(method)
        self._heard = False
        self._body_bytes = self._waiting = 0
        self._set_patience(SILENT_MILLISECONDS)
        if upgrade:
            reader.expect_upgrade()
        if self._transport is not None:
            if self.used:
                self._acknowledged = segments_acknowledged(self._transport.get_extra_info("socket"))
            self._transport.write(head)

    async def write(self, data: bytes) -> None:
        """Send a part of the body, once there is room for it.

        Raises:
            UpstreamError: the connection has ended.
        """
        if self._transport is None or self._problem is not None:
            raise self._problem or UpstreamError(Failure.CUT, "the connection has ended")
        self._body_bytes += len(data)
        if self._body_bytes > ROOM_BYTES:
            self._set_patience(SLOW_MILLISECONDS)
        self._transport.write(data)
        if self._writable is not None:
            await self._writable

    async def answer(self) -> Head:
        """Wait for the head of the answer.

        Raises:
            UpstreamError: there is none.
        """
        reader = await self._until(lambda reader: reader.head is not None)
        return cast("Head", reader.head)

    async def interim_or_answer(self) -> None:
        """Wait until the application has said anything to the head of the request.

        Raises:
            UpstreamError: it has ended the connection.
        """
        await self._until(lambda reader: reader.interim != 0 or reader.head is not None)

    async def read(self) -> bytes:
        """Return what has come of the body, waiting for some; nothing once all has been returned.

        Raises:
            UpstreamError: the rest does not come any more.
        """
        chunks = (await self._until(lambda reader: bool(reader.chunks) or reader.complete)).chunks
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        self._resume()
        return data

    def switch(self) -> None:
        """Take what comes from now on as it is: another protocol is spoken."""
        tail = self._reader.tail if self._reader else b""
        self._raw = [tail] if tail else []

    async def read_raw(self) -> bytes:
        """Return what has come after :meth:`switch`; nothing at the end."""
        raw = self._raw if self._raw is not None else []
        while not raw and self._transport is not None:
            await self._wait()
        data = b"".join(raw)
        raw.clear()
        self._resume()
        return data

    def end_sending(self) -> None:
        """Tell the other side that nothing follows what was sent."""
        if self._transport is not None:
            with contextlib.suppress(OSError):  # it has broken off, and the event loop has yet to see it
                self._transport.write_eof()

    def abort(self) -> None:
        """Close the connection without waiting for anything."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._reading.begin(transport)
        self._everyone.add(self)
        connection: socket.socket = transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self._patience)

    def data_received(self, data: bytes) -> None:
        """Read on; what nobody has asked for ends the connection."""
        self._reading.came(len(data))
        if self._raw is not None:
            self._raw.append(data)
        elif self._reader is None or (self._reader.complete and not self._reader.upgraded):
            self._fail(Failure.MALFORMED, "it says what nobody has asked for")
            self.abort()
            return
        else:
            self._heard = True
            try:
                self._reader.feed(data)
            except MalformedAnswerError as error:
                self._fail(Failure.MALFORMED, str(error))
                self.abort()
                return
        self._waiting += len(data)
        if self._waiting > BUFFERED_BYTES and self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._tell()

    def connection_lost(self, error: Exception | None) -> None:
        """Tell who waits; some answers end here."""
        self._everyone.discard(self)
        self._reading.end(self._transport)
        connection = cast("asyncio.Transport", self._transport).get_extra_info("socket")
        if error is not None:
            self._hear_the_rest(connection)
        self._transport, reader = None, self._reader
        if reader is not None and not reader.complete and self._raw is None:
            try:
                if error is not None:
                    raise MalformedAnswerError(f"the connection broke: {error}")
                reader.end()
            except MalformedAnswerError as problem:
                # A server that closes it says so; of a node that is gone nothing comes (ETIMEDOUT, EHOSTUNREACH).
                closed = error is None or isinstance(error, ConnectionError)
                # What was acknowledged the application has read: an end with something unread would be a reset.
                read = self._heard or (error is None and segments_acknowledged(connection) != self._acknowledged)
                stale = closed and self.used and not read
                self._fail(Failure.STALE if stale else Failure.CUT, str(problem), closed=closed)
        if not self.ended.done():
            self.ended.set_result(None)
        self._tell()
        self.resume_writing()

    def _hear_the_rest(self, connection: socket.socket) -> None:
        """Read what had come: where a write fails asyncio reads no more, and who refuses a body may have said so."""
        with contextlib.suppress(OSError):
            while self._waiting <= BUFFERED_BYTES and (data := os.read(connection.fileno(), BUFFERED_BYTES)):
                self.data_received(data)

    def pause_writing(self) -> None:
        """Have who writes wait."""
        if self._writable is None:
            self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """Let who writes go on."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def _set_patience(self, milliseconds: int) -> None:
        if milliseconds == self._patience or self._transport is None:
            return
        self._patience = milliseconds
        with contextlib.suppress(OSError):
            self._transport.get_extra_info("socket").setsockopt(
                socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds
            )

    def _fail(self, failure: Failure, text: str, *, closed: bool = False) -> None:
        if self._problem is None:
            self._problem = UpstreamError(failure, text, closed=closed)

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _resume(self) -> None:
        """Read on: all that has come was taken."""
        self._waiting = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    async def _wait(self) -> None:
        self._news = asyncio.get_running_loop().create_future()
        try:
            await self._news
        finally:
            self._news = None

    async def _until(self, there: Callable[[ResponseReader], bool]) -> ResponseReader:
        """Wait until something is there of the answer to the request that was sent last."""
        while self._reader is None or not there(self._reader):
            if self._problem is not None:
                raise self._problem
            if self._transport is None:
                raise UpstreamError(Failure.STALE if self.used else Failure.CUT, "the connection has ended")
            await self._wait()
        return self._reader
