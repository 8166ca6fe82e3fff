"""One request to the application and its answer back, with a second attempt where that does no harm."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections import Counter
from typing import Any, Final, NamedTuple

import structlog
from aiohttp import web

from berth.runtime.proxy.body import Body, BodyError
from berth.runtime.proxy.exchange import Exchange, Sent
from berth.runtime.proxy.headers import BadRequestError, Fields, request_head, response_head
from berth.runtime.proxy.identity import address_of
from berth.runtime.proxy.mark import UNANSWERED_FIELD
from berth.runtime.proxy.pool import UpstreamPool
from berth.runtime.proxy.response_reader import Head
from berth.runtime.proxy.tunnel import tunnel
from berth.runtime.proxy.upstream import Address, Failure, UpstreamConnection, UpstreamError

log = structlog.get_logger(__name__)

IDEMPOTENT: Final = frozenset(("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"))
"""Methods that do no more when they are done twice (RFC 9110, 9.2.2)."""
MOST_STALE: Final = 2
"""Kept connections that may prove to be closed before a request counts as failed."""
MOST_UNSENT: Final = 4
"""Attempts to connect that a request may have: with a node all of its pods go at once."""
CONTINUE_SECONDS: Final = 1.0
"""Seconds after which a body is sent to an application that has not asked for it (RFC 9110, 10.1.1)."""
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Forwarding:
    """Forwards requests over a pool of connections."""

    def __init__(self, pool: UpstreamPool) -> None:
        """Prepare."""
        self._pool = pool
        self.ending = False
        """whether clients are told to come again by another connection"""

    async def forward(self, exchange: Exchange) -> web.StreamResponse:
        """Send a request on and its answer back.

        A request is sent once more, elsewhere, where nothing of it had been sent, or where it is idempotent and all of
        its body is remembered; never once the client has had a byte of an answer.

        Returns:
            The answer, which is written already.
        """
        try:
            return await self._forward(exchange)
        except (asyncio.CancelledError, ConnectionError):
            if exchange.status != 101:  # which either side ends
                exchange.failure = exchange.failure or "client"
            raise

    async def _forward(self, exchange: Exchange) -> web.StreamResponse:
        body = Body(exchange.request)
        websocket = _asks_for_websocket(exchange.request)
        failures: Counter[Failure] = Counter()
        while True:
            address = exchange.choose(exchange.failed)
            if address is None:
                exchange.failure = exchange.failure or "nowhere"
                return await self.refuse(exchange, 503, "nobody is ready to answer")
            try:
                head = self._head(exchange, body, websocket=websocket)
                exchange.attempts += 1
                answered = await self._attempt(exchange, address, head, body, websocket=websocket)
            except BadRequestError as error:
                exchange.failure = "refused"
                return await self.refuse(exchange, error.status, str(error))
            except BodyError as error:
                exchange.failure = "client"
                return await self.refuse(exchange, 408 if "nothing" in str(error) else 400, str(error))
            except UpstreamError as error:
                exchange.failure = error.failure
                failures[error.failure] += 1
                self._pool.forget(address)  # where one connection proves to be closed the others may be as well
                if error.failure is not Failure.STALE:
                    exchange.failed.append(address)
                    exchange.on_failure(address, error)
                if _again(error.failure, failures, repeatable=_repeatable(exchange, body)):
                    continue
                log.debug("a request was not answered", failure=error.failure, error=str(error))
                fields = exchange.unanswered if _harmless(exchange, error.failure, failures) else ()
                return await self.refuse(exchange, *_UNANSWERED.get(error.failure, _UNANSWERED[Failure.CUT]), fields)
            exchange.address, exchange.failure = address, ""
            exchange.on_answer(address)
            return await self._relay(exchange, answered)

    async def refuse(self, exchange: Exchange, status: int, text: str, fields: Fields = ()) -> web.StreamResponse:
        """Answer a request here."""
        request, exchange.status = exchange.request, status
        body = f"{text}\n".encode()
        lasting = self._lasting(request) and status < 500
        head = response_head(
            status,
            _REASONS.get(status, b""),
            ((b"Content-Type", b"text/plain; charset=utf-8"), (b"Cache-Control", b"no-store"), *fields),
            length=len(body),
            chunked=False,
            close=not lasting,
        )
        await request.writer.write(head if request.method == "HEAD" else head + body)
        return Sent(status, lasting=lasting)

    def _lasting(self, request: web.BaseRequest) -> bool:
        """Whether another request may come by the client's connection; those of HTTP/1.0 are not kept."""
        return request.version >= (1, 1) and request.keep_alive and not self.ending and not request.can_read_body

    def _head(self, exchange: Exchange, body: Body, *, websocket: bool) -> bytes:
        request = exchange.request
        return request_head(
            request.method,
            request.raw_path,
            request.raw_headers,
            peer=address_of(request) or "unknown",
            scheme=request.scheme,
            pseudonym=exchange.pseudonym,
            version=(request.version.major, request.version.minor),
            believed=exchange.believed,
            websocket=websocket,
            chunked=body.chunked,
            without=exchange.without,
            added=exchange.added,
        )

    async def _attempt(
        self, exchange: Exchange, address: Address, head: bytes, body: Body, *, websocket: bool
    ) -> _Answered:
        """Send a request by one connection and wait for the head of its answer."""
        connection = await self._pool.acquire(address, repeatable=_repeatable(exchange, body))
        sending: asyncio.Task[None] | None = None
        try:
            connection.begin(head, method=exchange.request.method, upgrade=websocket)
            if body.there and await _wants_body(exchange, connection):
                sending = asyncio.create_task(_send(connection, body))
                await _sent_or_answered(connection, sending)
            async with asyncio.timeout(exchange.answer_seconds):
                return _Answered(connection, _heard(exchange, body, await connection.answer()), sending)
        except BaseException as error:
            connection.abort()
            await _end(sending)
            if isinstance(error, TimeoutError):
                raise UpstreamError(Failure.TIMEOUT, f"no answer within {exchange.answer_seconds:g} s") from error
            raise

    async def _relay(self, exchange: Exchange, answered: _Answered) -> web.StreamResponse:
        """Pass an answer on, while the rest of the request may still be on its way."""
        connection, answer, sending = answered
        request, exchange.status = exchange.request, answer.status
        try:
            if answer.status == 101:
                await request.writer.write(
                    response_head(
                        101, answer.reason, answer.fields, length=None, chunked=False, close=False, upgrade=True
                    )
                )
                await tunnel(request, connection)
                return Sent(101, lasting=False)
            return await self._relay_body(exchange, connection, answer)
        except UpstreamError as error:
            # The client must not take a part for the whole.
            if sending is not None and sending.done() and isinstance(sending.exception(), BodyError):
                exchange.failure = "client"  # the connection was ended for that
            else:
                exchange.failure = error.failure
                exchange.on_failure(connection.address, error)
            _reset(request)
            return Sent(answer.status, lasting=False)
        finally:
            # Without its body a request is not over: the application would take the next one for that.
            sent = sending.done() if sending is not None else not request.body_exists
            if connection.complete and sent:
                self._pool.release(connection)
            else:
                connection.abort()
            await _end(sending)

    async def _relay_body(self, exchange: Exchange, connection: UpstreamConnection, answer: Head) -> web.StreamResponse:
        request = exchange.request
        bodyless = request.method == "HEAD" or answer.status in (204, 304)
        chunked = not bodyless and answer.length is None and request.version >= (1, 1)
        unbounded = not bodyless and answer.length is None and not chunked
        lasting = self._lasting(request) and not unbounded
        head = response_head(
            answer.status,
            answer.reason,
            answer.fields,
            length=answer.length if answer.status != 204 else None,
            chunked=chunked,
            close=not lasting,
        )
        writer = request.writer
        if bodyless:
            await writer.write(head)
            return Sent(answer.status, lasting=lasting)
        # What has come with the head goes with the head.
        if connection.ready:
            part = await connection.read()
            head += _chunk(part) if chunked else part
        await writer.write(head)
        while not connection.complete:
            part = await connection.read()
            await writer.write(_chunk(part) if chunked else part)
        if chunked:
            await writer.write(b"0\r\n\r\n")
        return Sent(answer.status, lasting=lasting and not self.ending)


_REASONS: Final = {
    307: b"Temporary Redirect",
    400: b"Bad Request",
    408: b"Request Timeout",
    431: b"Request Header Fields Too Large",
    501: b"Not Implemented",
    502: b"Bad Gateway",
    503: b"Service Unavailable",
    504: b"Gateway Timeout",
    505: b"HTTP Version Not Supported",
    508: b"Loop Detected",
}


def _chunk(part: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(part), part) if part else b""


class _Answered(NamedTuple):
    """An attempt that has brought the head of an answer."""

    connection: UpstreamConnection
    """by which the rest comes"""
    head: Head
    """what has come"""
    sending: asyncio.Task[None] | None
    """what sends the body; it may go on after the answer has begun"""


async def _wants_body(exchange: Exchange, connection: UpstreamConnection) -> bool:
    """Whether to send the body: where the client waits to be asked for it, the application decides."""
    request = exchange.request
    if request.headers.get("Expect", "").lower() != "100-continue" or exchange.continued:
        return True
    if request.version < (1, 1):
        return True  # it knows no interim answers, and would take one for the answer
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CONTINUE_SECONDS):
            await connection.interim_or_answer()
    if connection.answered:
        return False
    exchange.continued = True
    await request.writer.write(CONTINUE)
    return True


async def _send(connection: UpstreamConnection, body: Body) -> None:
    try:
        async for part in body.parts():
            await connection.write(_chunk(part) if body.chunked else part)
        if body.chunked:
            await connection.write(b"0\r\n\r\n")
    except BodyError:
        connection.abort()  # the application must not take a part for the whole
        raise


async def _sent_or_answered(connection: UpstreamConnection, sending: asyncio.Task[None]) -> None:
    """Wait for whichever comes first.

    Raises:
        BodyError: the client does not send what it has promised.
    """
    answer = asyncio.ensure_future(connection.answer())
    try:
        await asyncio.wait((sending, answer), return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _end(answer)
    if sending.done() and isinstance(sending.exception(), BodyError):
        sending.result()  # any other failure is that of the connection, which says more itself


def _reset(request: web.BaseRequest) -> None:
    """End the client's connection so that no client takes that for the end of a body."""
    transport = request.transport
    if transport is not None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()


async def _end(task: asyncio.Task[Any] | None) -> None:
    """Have a task end; what it has to say has been heard elsewhere."""
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


_UNANSWERED: Final = {
    Failure.CONNECT: (503, "nobody answers"),
    Failure.CUT: (502, "the application did not answer"),
    Failure.TIMEOUT: (504, "the application took too long"),
}
"""Status and text for a failure; what is behind, and why it failed, is no business of a client."""


def _again(failure: Failure, failures: Counter[Failure], *, repeatable: bool) -> bool:
    """Whether a request may be sent once more, given how often what has happened; `failure` is the last."""
    match failure:
        case Failure.CONNECT:
            return failures[failure] < MOST_UNSENT
        case Failure.STALE:
            return repeatable and failures[failure] <= MOST_STALE
        case Failure.TIMEOUT:
            return False
        case _:
            return repeatable and failures[Failure.CUT] + failures[Failure.MALFORMED] < 2


def _harmless(exchange: Exchange, failure: Failure, failures: Counter[Failure]) -> bool:
    """Whether it does no harm to ask somebody else: nobody has read the request, or it may be done twice."""
    nothing_done = not failures.keys() - {Failure.CONNECT, Failure.STALE}
    return failure is Failure.CONNECT and (nothing_done or exchange.request.method in IDEMPOTENT)


def _heard(exchange: Exchange, body: Body, answer: Head) -> Head:
    """Return an answer without what a meter says to a router alone.

    Raises:
        UpstreamError: the meter says that the application behind it is not there, and another may be asked.
    """
    fields = tuple(field for field in answer.fields if field[0].lower() != UNANSWERED_FIELD)
    if len(fields) == len(answer.fields):
        return answer
    if exchange.elsewhere and answer.status == 503 and body.repeatable:
        raise UpstreamError(Failure.CONNECT, "the application behind it is not there")
    return answer._replace(fields=fields)


def _repeatable(exchange: Exchange, body: Body) -> bool:
    return exchange.request.method in IDEMPOTENT and body.repeatable


def _asks_for_websocket(request: web.BaseRequest) -> bool:
    return (
        request.method == "GET"
        and request.version >= (1, 1)
        and request.headers.get("Upgrade", "").lower() == "websocket"
        and "upgrade" in request.headers.get("Connection", "").lower()
    )
