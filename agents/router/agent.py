"""The router as a component: any number of processes, none of which knows of another."""

from __future__ import annotations

import asyncio
import time
from typing import ClassVar, Final

import structlog

from agents.router import metrics
from agents.router.admin import Admin
from agents.router.associations import associations
from agents.router.balancer import Balancer
from agents.router.endpoints import backends, ports_asked
from agents.router.knowledge import Knowledge
from agents.router.measuring import Measuring
from agents.router.routing import Routing
from agents.router.settings import RouterSettings
from agents.router.steering import Steering
from berth.kube.custom_object import CustomObject
from berth.kube.endpoint_slices import ENDPOINT_SLICES, LABEL_SERVICE, EndpointSlice
from berth.kube.reflector import Reflector
from berth.kube.resources import LATENCY_POLICIES
from berth.runtime.component import ComponentContext, run_together
from berth.runtime.proxy.forwarding import Forwarding
from berth.runtime.proxy.pool import UpstreamPool
from berth.runtime.proxy.server import ProxyServer
from berth.runtime.settings import ComponentSettings

log = structlog.get_logger(__name__)

GATHERING_SECONDS: Final = 0.05
"""Seconds for which changes are gathered: in a rollout they come in crowds."""
END_SECONDS: Final = 12.0
"""Seconds that requests under way have at the end."""


class RouterAgent:
    """Sends users to the pods of a Service."""

    Settings: ClassVar[type[ComponentSettings]] = RouterSettings

    def __init__(self, context: ComponentContext, settings: RouterSettings) -> None:
        """Prepare without talking to the API server.

        Raises:
            ValueError, OSError: a setting is wrong or names an unreadable file.
        """
        if not settings.service:
            raise ValueError("no Service is named that it stands in front of: write --router-service NAME")
        self._settings = settings
        namespace = settings.namespace or context.connection.namespace
        self._knowledge = Knowledge()
        self._balancer = Balancer(time.monotonic)
        self._steering = Steering(settings.steer_url, settings.node, time.monotonic)
        self._pool = UpstreamPool()
        self._forwarding = Forwarding(self._pool)
        self._measuring = Measuring(settings, self._knowledge, context.client)
        routing = Routing(
            self._forwarding,
            self._balancer,
            self._steering,
            self._knowledge,
            self._measuring,
            answer_seconds=settings.timeout,
            access_log=settings.access_log,
        )
        self._server = ProxyServer(
            routing.handle,
            host=settings.address,
            port=settings.port,
            most_connections=settings.connections,
            pool=self._pool,
        )
        self._admin = (
            Admin(
                self._balancer,
                self._knowledge,
                token_file=settings.admin_token_file,
                host=settings.admin_address,
                port=settings.admin_port,
            )
            if settings.admin_token_file
            else None
        )

        def slices(service: str) -> Reflector[EndpointSlice]:
            selector = f"{LABEL_SERVICE}={service}"
            return Reflector(context.client, ENDPOINT_SLICES, namespace=namespace, label_selector=selector)

        self._endpoints = slices(settings.service)
        self._routers = slices(settings.steer_service) if settings.steer_service else None
        self._policies: Reflector[CustomObject] | None = None
        if settings.policy:
            self._policies = Reflector(
                context.client,
                LATENCY_POLICIES,
                namespace=namespace,
                field_selector=f"metadata.name={settings.policy}",
            )
            self._policies.add_handler(self._policy_changed)
        self._unclear: str | None = None
        self._changed = asyncio.Event()
        for reflector in (self._endpoints, *((self._routers,) if self._routers else ())):
            reflector.add_batch_handler(self._changed.set)
        # One that is started again while the API server is away knows no pods; this one goes on with what it knows.
        context.watch_without_restart("endpointslices", self._endpoints)
        context.checks.add_ready("router", self._ready)
        metrics.CONNECTIONS.set_function(lambda: self._server.connections)

    async def run(self) -> None:
        """Work until cancelled; then serve on for a while, until nobody is sent here any more."""
        reflectors = [each for each in (self._endpoints, self._routers, self._policies) if each is not None]
        following = asyncio.ensure_future(
            run_together(*(each.run() for each in reflectors), self._follow_pods(), self._measuring.run())
        )
        try:
            await self._endpoints.synced.wait()
            self._take_pods()
            if self._admin is not None:
                await self._admin.start()
            await self._server.start()  # the last, since it makes the router ready
            log.info(
                "routing",
                service=self._settings.service,
                policy=self._settings.policy,
                port=self._server.port,
                admin_port=self._admin.port if self._admin else None,
            )
            # Waited for beside: what ends this must not end following pods, which change most in those last seconds.
            await asyncio.wait({following})
            following.result()
        finally:
            await self._end(following)

    async def _end(self, following: asyncio.Future[None]) -> None:
        self._forwarding.ending = True
        try:
            if self._server.listening and not following.done():
                await asyncio.sleep(self._settings.linger)
            await self._server.stop(seconds=END_SECONDS)
            if self._admin is not None:
                await self._admin.stop()
            await self._pool.close()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    def _ready(self) -> str | None:
        if self._forwarding.ending:
            return "it is about to end"
        return self._unclear if self._server.listening else "not listening yet"

    async def _follow_pods(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(GATHERING_SECONDS)
            self._changed.clear()
            self._take_pods()

    def _take_pods(self) -> None:
        slices = self._endpoints.objects.values()
        asked = {backend.address.port for backend in self._balancer.backends}
        ports = ports_asked(slices, self._settings.service_port, asked)
        self._say_what_is_unclear(ports is None)
        gone = self._balancer.replace(backends(slices, ports or ()))
        for address in gone:
            self._pool.forget(address)
        metrics.BACKENDS.set(len(self._balancer.backends))
        if self._routers is not None:
            found = backends(self._routers.objects.values())
            self._steering.routers = {each.node: each.address.host for each in found if each.node}

    def _say_what_is_unclear(self, unclear: bool) -> None:
        if unclear and self._unclear is None:
            stated = self._settings.service_port
            has = f"no port {stated}: write another" if stated else "several ports: write"
            self._unclear = f"Service {self._settings.service} has {has} --router-service-port, the name of one"
            log.error("no pod is asked", error=self._unclear)
        elif not unclear:
            self._unclear = None

    def _policy_changed(self, _before: CustomObject | None, after: CustomObject | None) -> None:
        self._knowledge.nodes = associations(after)
        metrics.ASSOCIATIONS.set(len(self._knowledge.nodes))
