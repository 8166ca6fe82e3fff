"""The latency controller: its parts, and how they start."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

import structlog

from berth.kube import resources as kinds
from berth.kube.reflector import Handler, Reflector
from berth.kube.resources import Resource
from berth.runtime.component import ComponentContext, run_together
from berth.runtime.settings import ComponentSettings
from berth.runtime.workqueue import WorkQueue
from berth.scheduling.cache.cache import Cache
from controllers.latency.callers import Callers
from controllers.latency.candidates import STORAGE, Candidates
from controllers.latency.certificate import is_usable, server_context
from controllers.latency.clock import SlewedClock
from controllers.latency.desk import FrontDesk
from controllers.latency.endpoint import Endpoint
from controllers.latency.evictions import Evictions
from controllers.latency.handlers import Handlers
from controllers.latency.identity import Identity, keep_published, wait_for_identity
from controllers.latency.objects import AUTOSCALERS, DEPLOYMENTS, NETWORK_NODES, PODS, SERVICES
from controllers.latency.observations import Observations
from controllers.latency.orders import Orders
from controllers.latency.places import Places
from controllers.latency.policies import Policies
from controllers.latency.reconciler import Reconciler
from controllers.latency.settings import LatencySettings, networks_of
from controllers.latency.workloads import Workloads

log = structlog.get_logger(__name__)

WORKERS: Final = 8
"""Policies that are worked on at the same time."""


class LatencyController:
    """Moves pods near their users."""

    Settings: ClassVar[type[ComponentSettings]] = LatencySettings

    def __init__(self, context: ComponentContext, settings: LatencySettings) -> None:
        """Prepare without I/O."""
        self._context = context
        self._settings = settings
        client = context.client
        self._queue: WorkQueue[str] = WorkQueue(lambda key: key.partition("/")[0])
        self._policies = Policies()
        self._workloads = Workloads()
        self._places = Places(networks_of(settings.never_probe))
        self._observations = Observations()
        self._orders = Orders(time.monotonic)
        self._clock = SlewedClock()
        candidates = Candidates(Cache(clock=time.monotonic))
        self._handlers = handlers = Handlers(
            self._queue,
            policies=self._policies,
            workloads=self._workloads,
            candidates=candidates,
            places=self._places,
        )
        self._problem: str | None = None
        context.checks.add_ready("endpoint", lambda: self._problem)
        self._watches: dict[str, Reflector[Any]] = {}
        followed: list[tuple[Resource[Any], Handler[Any]]] = [
            (kinds.LATENCY_POLICIES, handlers.policy_changed),
            (DEPLOYMENTS, handlers.deployment_changed),
            (AUTOSCALERS, handlers.autoscaler_changed),
            (PODS, handlers.pod_changed),
            (SERVICES, handlers.service_changed),
            (NETWORK_NODES, handlers.node_changed),
            (kinds.NAMESPACES, candidates.namespace_changed),
            *((storage, candidates.storage_changed) for storage in STORAGE),
        ]
        for resource, handler in followed:
            watch = self._watches[resource.plural] = Reflector(client, resource)
            watch.add_handler(handler)
            context.watch(resource.plural, watch)
        self._reconciler = Reconciler(
            client=client,
            recorder=context.recorder,
            queue=self._queue,
            policies=self._policies,
            workloads=self._workloads,
            candidates=candidates,
            places=self._places,
            observations=self._observations,
            orders=self._orders,
            evictions=Evictions(client, time.monotonic),
            status_interval=settings.status_interval,
            clock=self._clock,
        )

    async def run(self) -> None:
        """Work until cancelled."""
        await run_together(*(watch.run() for watch in self._watches.values()), self._serve(), self._work())

    async def _work(self) -> None:
        # A pod or node that is not known yet is not gone.
        for watch in self._watches.values():
            await watch.synced.wait()
        await self._queue.run(self._reconciler.reconcile, workers=WORKERS)

    async def _serve(self) -> None:
        """Listen, and say where, once it is known which pods there are."""
        client, settings = self._context.client, self._settings
        namespace = settings.namespace or self._context.connection.namespace
        while True:
            identity = await wait_for_identity(client, namespace, self._tell)
            await self._serve_as(identity, namespace)
            log.warning("the certificate is not valid by the clock as it is now; another is made")

    async def _serve_as(self, identity: Identity, namespace: str) -> None:
        """Listen for as long as the certificate is valid."""
        client, settings = self._context.client, self._settings
        desk = FrontDesk(
            policies=self._policies,
            workloads=self._workloads,
            places=self._places,
            observations=self._observations,
            orders=self._orders,
            key_of=identity.key_of,
            agents=(namespace, settings.agent_account),
            told=self._handlers.told,
            clock=self._clock,
        )
        endpoint = Endpoint(desk, Callers(client, time.monotonic))
        for watch in self._watches.values():
            await watch.synced.wait()
        site = await endpoint.start(settings.listen, settings.port, server_context(identity.pair))
        try:
            address = f"[{settings.address}]" if ":" in settings.address else settings.address
            log.info("listening", port=site.port, address=settings.address)
            url = f"https://{address}:{site.port}"

            def valid() -> bool:
                return is_usable(identity.pair, datetime.now(UTC))

            await keep_published(client, namespace, url, identity.pair.certificate, self._tell, valid=valid)
        finally:
            await site.stop()

    def _tell(self, problem: str | None) -> None:
        self._problem = problem
