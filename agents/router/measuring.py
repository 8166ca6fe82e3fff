"""Round trips to users of this router, told to the latency controller; what it answers, kept."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import msgspec
from aiohttp import web

from agents.router.knowledge import Knowledge
from agents.router.settings import RouterSettings
from berth.api.latency_exchange import Instructions, hash_identity
from berth.kube.client import ApiClient
from berth.kube.lease import boot_clock
from berth.runtime.component import run_together
from berth.runtime.measuring.calls import ReportServer, SoughtServer
from berth.runtime.measuring.kernel import LOOK_SECONDS, AcceptedConnection
from berth.runtime.measuring.published import PublishedServer
from berth.runtime.measuring.reporter import Reporter
from berth.runtime.measuring.reports import Reports
from berth.runtime.measuring.users import UserTable
from berth.runtime.proxy.identity import address_of, identity_of


@dataclass(slots=True, eq=False)
class UnderWay:
    """A request that is being answered."""

    request: web.BaseRequest
    """the request"""
    address: str
    """where it came from"""
    connection: AcceptedConnection | None
    """that of the user; None where it is gone"""
    user: str
    """keyed hash of the user's identity; empty while nobody can be told from others"""


class Measuring:
    """Keeps the newest round trips of users and tells them while it runs."""

    def __init__(self, settings: RouterSettings, knowledge: Knowledge, client: ApiClient | None = None) -> None:
        """Prepare; without a controller nothing is measured, since users have no names.

        Args:
            settings: the router's.
            knowledge: where what the controller says is kept.
            client: reads where the controller is, if the settings do not say it.
        """
        self._knowledge = knowledge
        self._users = UserTable(settings.users)
        steers = bool(settings.steer_service and settings.steer_url and settings.node)
        self._reports = Reports(self._users, policy=settings.policy, steers=steers)
        self._under_way: set[UnderWay] = set()
        self._connections: WeakKeyDictionary[asyncio.BaseTransport, AcceptedConnection] = WeakKeyDictionary()
        server: SoughtServer | None = None
        if settings.controller is not None:
            server = ReportServer(settings.controller, settings.token_file, settings.ca_file)
        elif settings.controller_namespace is not None and client is not None:
            server = PublishedServer(client, settings.controller_namespace, settings.token_file)
        self._reporter = Reporter(server, self._reports, self._instructed) if server else None

    async def run(self) -> None:
        """Tell until cancelled, and look at requests that are being answered."""
        if self._reporter is None:
            await asyncio.Event().wait()
        else:
            await run_together(self._reporter.run(), self._look())

    def begin(self, request: web.BaseRequest) -> UnderWay:
        """Note a request and the round trip to its user where there is a new one; :meth:`end` follows."""
        address, transport = address_of(request), request.transport
        connection = None
        if transport is not None:
            connection = self._connections.get(transport)
            if connection is None:
                connection = self._connections[transport] = AcceptedConnection(transport.get_extra_info("socket"))
        under_way = UnderWay(request, address, connection, self._name(request, address))
        self._under_way.add(under_way)
        self._measure(under_way, boot_clock())
        return under_way

    def end(self, under_way: UnderWay) -> None:
        """A request is answered."""
        self._under_way.discard(under_way)

    def look(self) -> None:
        """Measure those who are being answered, which takes hours for some."""
        now = boot_clock()
        for each in self._under_way:
            self._measure(each, now)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def _measure(self, under_way: UnderWay, now: float) -> None:
        if not under_way.user or under_way.connection is None:
            return
        user = self._users.seen(under_way.user, now, address=under_way.address)
        microseconds = under_way.connection.round_trip()
        if microseconds is not None:
            self._users.record(user, microseconds, now)
        if user.first == now and self._reporter is not None:
            self._reporter.hurry()

    def _name(self, request: web.BaseRequest, address: str) -> str:
        """The hash of who asks; empty while nobody can be told from others."""
        known = self._knowledge
        if not known.key:
            return ""
        return hash_identity(known.key, identity_of(request, known.instructions.identity, address=address))

    def _instructed(self, instructions: Instructions, key: bytes) -> None:
        known = self._knowledge
        if not instructions.policy:
            # A controller that has just begun may not know of it yet. Where there is none nobody has a node either.
            known.instructions = msgspec.structs.replace(known.instructions, steer={})
            return
        if (key, instructions.identity) != (known.key, known.instructions.identity):
            # The same users have other names from here on.
            self._users.clear()
            self._reports.start_anew()
            known.key, known.instructions = key, instructions
            for each in self._under_way:
                each.user = self._name(each.request, each.address)
        known.instructions = instructions
