"""Round trips to users of this router, told to the latency controller; what it answers, kept."""

from __future__ import annotations

import asyncio
import time
from weakref import WeakKeyDictionary

import msgspec
from aiohttp import web

from agents.router.knowledge import Knowledge
from agents.router.settings import RouterSettings
from berth.api.latency_exchange import Instructions
from berth.kube.client import ApiClient
from berth.runtime.measuring.calls import ReportServer, Server
from berth.runtime.measuring.kernel import AcceptedConnection
from berth.runtime.measuring.published import PublishedServer
from berth.runtime.measuring.reporter import Reporter
from berth.runtime.measuring.reports import Reports
from berth.runtime.measuring.users import UserTable
from berth.runtime.proxy.identity import address_of


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
        self._reports = Reports(self._users, policy=settings.policy)
        self._connections: WeakKeyDictionary[asyncio.BaseTransport, AcceptedConnection] = WeakKeyDictionary()
        server: Server | None = None
        if settings.controller is not None:
            server = ReportServer(settings.controller, settings.token_file, settings.ca_file)
        elif settings.controller_namespace is not None and client is not None:
            server = PublishedServer(client, settings.controller_namespace, settings.token_file)
        self._reporter = Reporter(server, self._reports, self._instructed) if server else None

    async def run(self) -> None:
        """Tell until cancelled."""
        if self._reporter is None:
            await asyncio.Event().wait()
        else:
            await self._reporter.run()

    def seen(self, name: str, request: web.BaseRequest) -> None:
        """Note a request of a user, and the round trip where there is a new one.

        Args:
            name: keyed hash of the user's identity.
            request: the request.
        """
        transport = request.transport
        if transport is None:
            return
        now = time.monotonic()
        user = self._users.seen(name, now, address=address_of(request))
        connection = self._connections.get(transport)
        if connection is None:
            connection = self._connections[transport] = AcceptedConnection(transport.get_extra_info("socket"))
        microseconds = connection.round_trip()
        if microseconds is not None:
            self._users.record(user, microseconds, now)
        if user.first == now and self._reporter is not None:
            self._reporter.hurry()

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
