"""What is measured of a request on its way to the application."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakKeyDictionary

from aiohttp import web

from agents.meter.metrics import PUSHED_OUT, REJECTED, REQUESTS, ROUND_TRIPS, ROUTED, UNPROVEN, USERS
from berth.api.latency_exchange import Identity, Instructions, hash_identity
from berth.kube.lease import boot_clock
from berth.runtime.measuring.client_clock import MOST_APART, ClientClock, Rejection, seconds_since
from berth.runtime.measuring.kernel import AcceptedConnection
from berth.runtime.measuring.users import User, UserTable
from berth.runtime.proxy.exchange import Exchange
from berth.runtime.proxy.forwarding import Forwarding
from berth.runtime.proxy.identity import address_of, identity_of
from berth.runtime.proxy.mark import MARK_FIELD, MARK_HEADER, UNANSWERED_HEADER, marked_user
from berth.runtime.proxy.upstream import Address

PSEUDONYM: Final = b"berth-meter"
"""Name of the meter in Via."""
_KERNEL, _STATED = ROUND_TRIPS.labels("kernel"), ROUND_TRIPS.labels("timestamp")


@dataclass(slots=True, eq=False)
class _UnderWay:
    """A request that is being answered."""

    request: web.BaseRequest
    address: str
    connection: _Connection
    user: str
    """name"""


@dataclass(slots=True, eq=False)
class _Connection:
    """A connection that requests come by."""

    kernel: AcceptedConnection
    clock: ClientClock = field(default_factory=ClientClock)
    """how the clock of the client goes that states its time"""
    clock_of: User | None = None
    """whose client that is"""


class Meter:
    """Forwards requests and measures their users."""

    def __init__(
        self,
        table: UserTable,
        forwarding: Forwarding,
        application: Address,
        *,
        identity: Identity,
        timestamp_header: str,
        answer_seconds: float,
        came: Callable[[], None],
    ) -> None:
        """Prepare.

        Args:
            table: where users and round trips are noted.
            forwarding: over which requests go on.
            application: where to.
            identity: how users are told from each other until :meth:`follow` says it.
            timestamp_header: name of the header with the client's time; empty: none.
            answer_seconds: until the head of an answer.
            came: called when a user comes who is not in the table.
        """
        self._table = table
        self._forwarding = forwarding
        self._application = application
        self._identity = identity
        # Hashes of a key of its own until the controller has told that of the policy.
        self._key = secrets.token_bytes(32)
        self._timestamp_header = timestamp_header
        self._answer_seconds = answer_seconds
        self._came = came
        self._connections: WeakKeyDictionary[asyncio.BaseTransport, _Connection] = WeakKeyDictionary()
        self._under_way: set[_UnderWay] = set()
        # Not the machine's clock itself, which may be set: then all clients would seem to be nearer or further.
        self._since_1970 = time.time() - boot_clock()

    def follow(self, instructions: Instructions, key: bytes) -> bool:
        """Tell users from each other as a policy says; True if they have other names now, and none is remembered."""
        if not instructions.policy or (key, instructions.identity) == (self._key, self._identity):
            return False
        self._key, self._identity = key, instructions.identity
        self._table.clear()
        # Those that are answered for hours are not asked again.
        for each in self._under_way:
            each.user = self._name(each.request, each.address)
        return True

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        under_way = self._request(request)
        exchange = Exchange(
            request,
            lambda _failed: self._application,
            PSEUDONYM,
            # What it adds is one more proxy; whom to believe is for the application to know, as it was before.
            believed=True,
            without=frozenset((MARK_FIELD,)),
            unanswered=((UNANSWERED_HEADER, b"application"),) if MARK_HEADER in request.headers else (),
            answer_seconds=self._answer_seconds,
        )
        try:
            return await self._forwarding.forward(exchange)
        finally:
            if under_way is not None:
                self._under_way.discard(under_way)
            REQUESTS.labels(exchange.failure or "answered").inc()

    def look(self) -> None:
        """Measure those who are being answered, which takes hours for some; and forget who has gone."""
        now = boot_clock()
        self._follow_clock(now)
        for each in self._under_way:
            user = self._seen(each.user, each.address, now)
            self._by_kernel(user, each.connection, now)
        self._table.forget_old(now)
        USERS.set(len(self._table))
        PUSHED_OUT.set(self._table.pushed_out)

    def _follow_clock(self, now: float) -> None:
        """Go by the machine's clock again once it is further off than clients' are believed to be.

        One without a battery begins years ago, until it has heard of the time: all clients would be absurd for good.
        """
        since_1970 = time.time() - now
        if abs(since_1970 - self._since_1970) > MOST_APART:
            self._since_1970 = since_1970
            for connection in self._connections.values():
                connection.clock = ClientClock()

    def _request(self, request: web.BaseRequest) -> _UnderWay | None:
        """Note a request and what its connection tells; None for what is no user's."""
        transport = request.transport
        if transport is None:
            return None
        mark = request.headers.get(MARK_HEADER)
        if mark is not None:
            # A router's, also where it has another key: what its connection tells is no user's.
            (ROUTED if marked_user(self._key, mark) is not None else UNPROVEN).inc()
            return None
        connection = self._connections.get(transport)
        if connection is None:
            kernel = AcceptedConnection(transport.get_extra_info("socket"))
            connection = self._connections[transport] = _Connection(kernel)
        address = address_of(request)
        under_way = _UnderWay(request, address, connection, self._name(request, address))
        now = boot_clock()
        user = self._seen(under_way.user, address, now)
        found = self._by_kernel(user, connection, now)
        if self._timestamp_header and (stated := request.headers.get(self._timestamp_header)) is not None:
            self._by_statement(user, connection, stated, found, now)
        self._under_way.add(under_way)
        return under_way

    def _name(self, request: web.BaseRequest, address: str) -> str:
        return hash_identity(self._key, identity_of(request, self._identity, address=address))

    def _seen(self, name: str, address: str, now: float) -> User:
        user = self._table.seen(name, now, address=address)
        if user.first == now:
            self._came()
        return user

    def _by_kernel(self, user: User, connection: _Connection, now: float) -> int | None:
        found = connection.kernel.round_trip()
        if found is None or not self._table.record(user, found, now):
            return None
        _KERNEL.observe(found / 1e6)
        return found

    def _by_statement(self, user: User, connection: _Connection, stated: str, kernel: int | None, now: float) -> None:
        found = self._stated(user, connection, stated, kernel, now)
        if isinstance(found, int) and not self._table.record(user, found, now):
            found = Rejection.ABSURD
        if isinstance(found, Rejection):
            REJECTED.labels(found).inc()
        elif found is not None:
            _STATED.observe(found / 1e6)

    def _stated(
        self, user: User, connection: _Connection, stated: str, kernel: int | None, now: float
    ) -> int | Rejection | None:
        """Follow a client's clock where the kernel has a round trip, and take its word where it has none.

        Users of one name may have several clients, and a proxy's connection several users.
        """
        apart = seconds_since(stated, self._since_1970 + now)
        if isinstance(apart, Rejection):
            return apart
        if connection.clock_of is not user:
            connection.clock, connection.clock_of = ClientClock(), user
        if kernel is None:
            return connection.clock.round_trip(apart, now)
        connection.clock.calibrate(apart, kernel, now)
        return None
