"""The meter as a component: one process in a pod of the application."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import structlog

from agents.meter.measurements import MeasurementsServer
from agents.meter.meter import Meter
from agents.meter.settings import END_SECONDS, MeterSettings, host_and_port
from berth.api.latency_exchange import Instructions
from berth.kube.client import ApiClient
from berth.kube.connection import ConnectionConfigError
from berth.runtime.component import ComponentContext, run_together
from berth.runtime.measuring.calls import ReportServer, SoughtServer
from berth.runtime.measuring.kernel import LOOK_SECONDS
from berth.runtime.measuring.published import PublishedServer
from berth.runtime.measuring.reporter import Reporter
from berth.runtime.measuring.reports import Reports
from berth.runtime.measuring.users import UserTable
from berth.runtime.proxy.forwarding import Forwarding
from berth.runtime.proxy.pool import UpstreamPool
from berth.runtime.proxy.server import ProxyServer
from berth.runtime.settings import ComponentSettings

log = structlog.get_logger(__name__)


class MeterAgent:
    """Forwards what users send to the application, and tells how far they are."""

    Settings: ClassVar[type[ComponentSettings]] = MeterSettings

    def __init__(self, context: ComponentContext, settings: MeterSettings) -> None:
        """Prepare without I/O.

        Raises:
            ValueError: settings that do not go together.
        """
        self._settings = settings
        self._connect = context.connect
        self._table = UserTable(settings.users, age=settings.expiry)
        self._reports = Reports(self._table, age=settings.expiry)
        self._pool = UpstreamPool()
        self._forwarding = Forwarding(self._pool)
        self._news = asyncio.Event()
        self._meter = Meter(
            self._table,
            self._forwarding,
            host_and_port(settings.application),
            identity=settings.identity_stated(),
            timestamp_header=settings.timestamp_header,
            answer_seconds=settings.timeout,
            came=self._news.set,
        )
        self._server = ProxyServer(self._meter.handle, host=settings.address, port=settings.port, pool=self._pool)
        self._measurements = self._measurements_of(settings)
        self._ready = False
        context.checks.add_ready("proxy", lambda: None if self._ready else "it takes no requests")

    async def run(self) -> None:
        """Work until cancelled; requests under way are answered first."""
        await self._server.start()
        try:
            if self._measurements is not None:
                await self._measurements.start()
            log.info(
                "users are measured",
                port=self._server.port,
                measurements_port=self._measurements.port if self._measurements else None,
                application=self._settings.application,
            )
            self._ready = True
            await run_together(self._look(), self._tell())
        finally:
            await self._end()

    async def _end(self) -> None:
        """Clients are told to come by another connection, and still let in while they know of no other pod."""
        self._ready, self._forwarding.ending = False, True
        if self._measurements is not None:
            await self._measurements.stop()
        await asyncio.sleep(self._settings.linger)
        await self._server.stop(seconds=END_SECONDS)
        await self._pool.close()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._meter.look()

    def _follow(self, instructions: Instructions, key: bytes) -> None:
        if self._meter.follow(instructions, key):
            self._reports.start_anew()
            log.info("users are named for a policy", policy=instructions.policy, identity=instructions.identity.source)

    async def _tell(self) -> None:
        settings = self._settings
        if settings.controller is not None:
            await self._report(ReportServer(settings.controller, settings.token_file, settings.ca_file))
        elif settings.controller_namespace is not None:
            # Only who asks for it needs credentials: pods of applications often have none.
            try:
                connection = await self._connect()
                async with ApiClient(connection, user_agent="berth-meter") as client:
                    await self._report(PublishedServer(client, settings.controller_namespace, settings.token_file))
            except ConnectionConfigError as error:
                log.error("the latency controller cannot be looked for", error=str(error))
        # Users come all the same.
        await asyncio.Event().wait()

    async def _report(self, server: SoughtServer) -> None:
        await Reporter(server, self._reports, self._follow, news=self._news).run()

    def _measurements_of(self, settings: MeterSettings) -> MeasurementsServer | None:
        if settings.measurements_token_file is None:
            return None
        return MeasurementsServer(
            self._table,
            instance=self._reports.instance,
            host=settings.measurements_address,
            port=settings.measurements_port,
            token_file=settings.measurements_token_file,
        )
