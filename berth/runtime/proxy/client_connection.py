"""A client's connection: aiohttp's, with what that leaves out."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final, cast

from aiohttp import StreamReader, web, web_protocol
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web_protocol import RequestHandler, _ErrInfo

from berth.runtime.proxy.headers import MAX_HEAD_BYTES
from berth.runtime.proxy.memory import CONNECTION_BYTES, LEAST_BYTES, Keeper, head_bytes
from berth.runtime.proxy.reading import BUFFERED_BYTES, read_at_most

MAX_FIELD_BYTES: Final = 16_384
"""Bytes of one header field, and of the request line, at most."""
MAX_FIELDS: Final = 100
"""Header fields of a request at most."""
MOST_AROUND_BYTES: Final = MAX_FIELD_BYTES + MAX_HEAD_BYTES
"""Bytes of a head, and of what is around the chunks of a body, from which on no more are read."""
LINGER_SECONDS: Final = 2.0
"""Seconds for which what a client goes on sending behind its last answer is taken and dropped, unless it leaves."""
_END: Final = b"\r\n\r\n"
# Requests of a connection that are read ahead: where thousands send theirs in advance, that comes before all answers.
web_protocol.MAX_MSG_QUEUE_SIZE = 2


class MalformedBodyError(web.RequestPayloadError, ConnectionError):
    """A body that goes on as none does."""


class ClientConnection(RequestHandler):
    """aiohttp's connection, with what that leaves out.

    A body that turns out to be malformed is told to whoever reads it, who would wait for the rest. A head is refused
    before it is all there: each client could have a hundred fields of the greatest length kept. And its parser drops
    what came in one piece with a request that asks for an upgrade which it does not know, behind that: the client is
    told that this request is the last, and so asks again for the others (RFC 9112, 9.3.2).
    """

    __slots__ = ("_around", "_body", "_broken", "_end", "_keeper", "_lingers", "_over", "_rest", "_seen", "_wire")

    def __init__(self, server: web.Server, keeper: Keeper, **options: Any) -> None:
        """Begin; the other arguments are those of aiohttp's.

        Args:
            server: whose connection it is.
            keeper: knows how much memory there is.
            options: as aiohttp's connection has them.
        """
        super().__init__(server, **options)
        self._keeper = keeper
        self._over = False  # whether no more is taken in
        self._broken = False  # nor anything of what was
        self._body: StreamReader = EMPTY_PAYLOAD  # of the last request
        self._seen = (0, 0)  # requests, and bytes of that body
        self._around = 0  # bytes since then that belong to no body
        self._rest = 0  # bytes still to come of the body of a request behind which all is dropped
        self._end = b""  # of what came last: a head may end in two pieces
        self._wire: asyncio.Transport | None = None  # until it is closed, when aiohttp may long have forgotten it
        self._lingers = False  # whether the client may be sending more behind what is answered last

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        super().connection_made(transport)
        self._wire = cast("asyncio.Transport", transport)
        read_at_most(transport)
        self._keeper.came(CONNECTION_BYTES)  # thousands may come before the event loop is round again

    def connection_lost(self, exc: BaseException | None) -> None:
        """End."""
        self._wire = None
        super().connection_lost(exc)

    @property
    def held(self) -> int:
        """Bytes that are kept for this client: of heads, of what follows them, and of what it does not read."""
        request, transport = self._current_request, self._wire
        if transport is None:
            return 0
        if self.transport is None or transport.is_closing():
            # It ends when the client has read the rest.
            return transport.get_write_buffer_size()
        kept = self._around + len(self._message_tail)
        kept += getattr(self._body, "_size", 0) + getattr(self._payload_parser, "size", 0)
        kept += sum(_size(message) for message, _ in self._messages)
        kept += _size(request._message) if request is not None else 0
        # The parser has what it was given when it was paused.
        kept += BUFFERED_BYTES if self._buffer_paused or self._reading_paused else 0
        return kept + transport.get_write_buffer_size()

    def cut(self) -> None:
        """End it at once."""
        if (drop := getattr(self._payload_parser, "drop", None)) is not None:
            drop()
        if self._wire is not None:
            self._wire.abort()

    def data_received(self, data: bytes) -> None:
        """Take in what came; behind what is refused nothing can be told apart.

        Nothing is to go on with what had to wait until bodies and requests before were taken. None comes meanwhile.
        """
        if self._broken or (self._over and data):
            return
        if data and self._keeper.came(len(data)) and max(len(data), self.held) >= LEAST_BYTES:
            self._keeper.cut(self)  # before it is kept
            return
        other = self._payload_parser is not None or self._upgraded
        under_way = not self._messages and not self._body.is_eof()
        super().data_received(data)
        if other:
            return  # another protocol is spoken
        if under_way and self._body.is_eof() and self._parser is not None:
            # It was taken before it was all there, and so would count among those that wait for good: of these few are
            # read, and nothing would go on with the rest.
            self._parser.message_consumed()
            if not self._reading_paused:
                super().data_received(b"")
        if not data:
            self._went_on()
            return
        if self._messages and isinstance(self._messages[-1][0], _ErrInfo):
            self._refused("the body is malformed")
            return
        if new := self._request_count - self._seen[0]:
            self._look(self._end + data, new, len(data))
        elif self._rest > 0:
            self._look(data, 0, len(data))
        self._end = data[-3:]
        seen = (self._request_count, self._body.total_bytes)
        self._around = self._around + len(data) if seen == self._seen else 0
        self._seen = seen
        if self._around > MOST_AROUND_BYTES:
            text = f"{MOST_AROUND_BYTES} bytes that belong to no body"
            if self._body.is_eof():
                self._messages.append((_ErrInfo(431, HttpProcessingError(code=431, message=text), text), EMPTY_PAYLOAD))
                if self._waiter is not None and not self._waiter.done():
                    self._waiter.set_result(None)
            self._refused(text)

    def _went_on(self) -> None:
        """See what had waited; how much of it is behind the last request nobody knows."""
        if self._request_count > self._seen[0] and self._messages:
            message, self._body = self._messages[-1]
            self._rest = 0
            if isinstance(message, _ErrInfo):
                self._refused("the body is malformed")
            elif message.upgrade and not _is_websocket(message):
                self._last()
        self._seen = (self._request_count, self._body.total_bytes)

    def handle_error(self, *args: Any, **options: Any) -> web.StreamResponse:
        """Refuse a request; what runs here, and in which version, is no business of a client."""
        answer = super().handle_error(*args, **options)
        answer.headers["Server"] = "berth"
        return answer

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """End a request; behind an upgrade that was declined it is here that the rest is parsed."""
        tail, before = self._message_tail, self._request_count
        found = await super().finish_response(request, resp, start_time)
        if self._request_count > before and self._messages:
            self._look(tail, self._request_count - before, len(tail))
            self._end = tail[-3:]
            self._seen, self._around = (self._request_count, self._body.total_bytes), 0
        if self._lingers and not found[0].keep_alive:
            await self._linger()
        return found

    async def _linger(self) -> None:
        """End our side alone, until the client ends its own, which ends this.

        With something unread the end would be a reset: the client may lose the answer, or fail to send before it reads.
        """
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        self._over = self._broken = True
        with contextlib.suppress(OSError):  # the client has broken off, and the event loop has yet to see it
            transport.write_eof()
        transport.resume_reading()
        await asyncio.sleep(LINGER_SECONDS)

    def _look(self, data: bytes, new: int, came: int) -> None:
        """See what the last requests are.

        Args:
            data: what came, and a little of what came before.
            new: how many requests have come with it.
            came: bytes of it that have just come.
        """
        if new and self._messages:
            message, self._body = self._messages[-1]
            self._rest = 0
            if isinstance(message, _ErrInfo) or not message.upgrade or _is_websocket(message):
                return
            if message.chunked:  # nobody knows where it will end
                self._last()
                return
            length = int(message.headers.get("Content-Length", 0))
            self._rest = length - _behind_head(data, new)
            if self._rest < 0 and not self._body.is_eof():  # other bodies hold what looks like the end of a head
                self._rest = length - self._body.total_bytes
        elif not new:
            self._rest -= came
        if self._rest < 0:
            self._last()
            self._over = True

    def _last(self) -> None:
        """Have the client told that the request that came last is the last."""
        self._rest, self._lingers = 0, True
        request = self._current_request
        if self._messages:
            message, body = self._messages[-1]
            if not isinstance(message, _ErrInfo):  # which ends it by itself
                self._messages[-1] = (message._replace(should_close=True), body)
        elif request is not None:
            request._message = request._message._replace(should_close=True)
        else:
            self.close()

    def _refused(self, text: str) -> None:
        self._over = self._broken = self._lingers = True
        if not self._body.is_eof():
            self._body.set_exception(MalformedBodyError(text))


def _size(message: RawRequestMessage | _ErrInfo) -> int:
    """About how much memory a request's head takes."""
    return 0 if isinstance(message, _ErrInfo) else head_bytes(message)


def _is_websocket(message: RawRequestMessage) -> bool:
    """Whether it asks for the upgrade that the parser knows, behind which nothing is dropped."""
    return message.headers.get("Upgrade", "").lower() == "websocket"


def _behind_head(data: bytes, heads: int) -> int:
    """How many bytes are behind the last of so many heads, at the most."""
    return len(data.split(_END, heads)[-1])
