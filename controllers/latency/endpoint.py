"""The HTTPS endpoint for meters, routers and node agents. What is said is checked and handed on; nothing is decided."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

import msgspec
import structlog
from aiohttp import web

from berth.api import latency_exchange as exchange
from berth.kube.client import TRANSPORT_ERRORS
from berth.kube.errors import ApiError
from berth.runtime.site import Site
from controllers.latency import metrics
from controllers.latency.callers import Caller, Callers, TooManyError
from controllers.latency.intake import Intake, Sequences

log = structlog.get_logger(__name__)

M = TypeVar("M")

MAX_BYTES: Final = 1 << 20
"""Bytes of a message at most."""
MOST_STRANGERS: Final = 1000
"""Connections at a time by which nobody has shown a token yet: whoever reaches the port could take all memory."""
IDLE_SECONDS: Final = 75.0
"""Seconds from one message of a connection to the next; meters have 30 at most."""
_BEARER: Final = "Bearer "
_ROUND_TRIPS: Final = msgspec.json.Decoder(exchange.RoundTrips)
_ANSWERS: Final = msgspec.json.Decoder(exchange.ProbeAnswers)


class Desk(Protocol):
    """Who is told what was said."""

    def round_trips(self, caller: Caller, message: exchange.RoundTrips, *, new: bool) -> exchange.Instructions:
        """Take in a report, unless it was told before, and return what the meter or router is to do."""

    def is_agent(self, caller: Caller) -> bool:
        """Return whether it is a node agent that speaks."""

    def answers(self, node: str, message: exchange.ProbeAnswers) -> None:
        """Take in what an agent has measured."""

    async def orders(self, node: str, *, wait: bool) -> exchange.ProbeOrders:
        """Return what an agent is to measure.

        Args:
            node: the agent's.
            wait: whether to wait for a while until there is anything.
        """


class Endpoint:
    """Listens while it is entered."""

    def __init__(self, desk: Desk, callers: Callers, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare."""
        self._desk = desk
        self._callers = callers
        self._intake = Intake(clock)
        self._sequences = Sequences()
        self._site: Site | None = None

    async def start(self, host: str, port: int, context: ssl.SSLContext) -> Site:
        """Listen; returns what says on which port, and ends it.

        Raises:
            OSError: the port is taken, or not this machine's.
        """
        application = web.Application(client_max_size=MAX_BYTES)
        application.router.add_post(exchange.ROUND_TRIPS_PATH, self.round_trips)
        application.router.add_post(exchange.PROBES_PATH, self.probes)
        site = Site(application, host=host, port=port, context=context, strangers=MOST_STRANGERS, idle=IDLE_SECONDS)
        await site.start()
        self._site = site
        return site

    async def round_trips(self, request: web.Request) -> web.Response:
        """A meter or router reports."""
        caller = await self._caller(request)
        message = await _read(request, _ROUND_TRIPS)
        if len(message.users) > exchange.MAX_USERS or len(message.instance) > exchange.MAX_INSTANCE:
            text = f"more than {exchange.MAX_USERS} users, or a name of more than {exchange.MAX_INSTANCE} characters\n"
            raise web.HTTPBadRequest(text=text)
        new = self._sequences.is_new(caller.uid, message.instance, message.sequence)
        metrics.MESSAGES.labels("round_trips" if new else "again").inc()
        if new and len(users := self._intake.heard(caller.namespace, message.users)) < len(message.users):
            metrics.MESSAGES.labels("cut").inc()
            message = msgspec.structs.replace(message, users=tuple(users))
        found = self._desk.round_trips(caller, message, new=new)
        return _answer(msgspec.structs.replace(found, interval=self._intake.interval(caller.namespace, found.interval)))

    async def probes(self, request: web.Request) -> web.Response:
        """A node agent answers, or waits for orders."""
        caller = await self._caller(request)
        if not self._desk.is_agent(caller) or not caller.node:
            metrics.MESSAGES.labels("forbidden").inc()
            raise web.HTTPForbidden(text="only node agents measure\n")
        message = await _read(request, _ANSWERS)
        metrics.MESSAGES.labels("probes").inc()
        self._desk.answers(caller.node, message)
        return _answer(await self._desk.orders(caller.node, wait=not message.answers))

    async def _caller(self, request: web.Request) -> Caller:
        """Who speaks; the body is not read before that is known."""
        header = request.headers.get("Authorization", "")
        try:
            caller = await self._callers.of(header.removeprefix(_BEARER)) if header.startswith(_BEARER) else None
        except TooManyError:
            raise _later(web.HTTPServiceUnavailable, 5) from None
        except (ApiError, *TRANSPORT_ERRORS) as error:
            log.warning("a token cannot be reviewed", error=str(error) or repr(error))
            raise _later(web.HTTPServiceUnavailable, 5) from None
        if caller is None:
            metrics.MESSAGES.labels("unauthorized").inc()
            raise web.HTTPUnauthorized(text=f"a token is needed that is bound to a pod, for {exchange.AUDIENCE}\n")
        if not self._intake.allows(caller, agent=self._desk.is_agent(caller)):
            metrics.MESSAGES.labels("too_many").inc()
            raise _later(web.HTTPTooManyRequests, 1)
        if self._site is not None:
            self._site.introduce(request)
        return caller


async def _read(request: web.Request, decoder: msgspec.json.Decoder[M]) -> M:
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        metrics.MESSAGES.labels("unreadable").inc()
        raise web.HTTPUnsupportedMediaType(text="what is compressed is not read; leave out Content-Encoding\n")
    try:
        return decoder.decode(await request.read())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        metrics.MESSAGES.labels("unreadable").inc()
        raise web.HTTPBadRequest(text=f"{error}\n") from None


def _later(kind: type[web.HTTPException], seconds: int) -> web.HTTPException:
    return kind(headers={"Retry-After": str(seconds)})


def _answer(message: msgspec.Struct) -> web.Response:
    return web.Response(body=msgspec.json.encode(message), content_type="application/json")
