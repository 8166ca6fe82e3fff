"""kopf embedded: follows Berth's own kinds with kopf's watch and hands every event to a plain function.

kopf runs in a thread with an event loop of its own, because an embedded operator takes over its loop: it replaces
the process's signal handlers and cancels every task of the loop when it stops. Handlers are called in the loop that
runs :meth:`Operator.run`, so that a controller needs no locks.

Nothing is written to the objects: only ``on.event`` handlers are used, which need neither annotations nor finalizers.
kopf does not tell of objects that were deleted while a watch was broken, so a handler only marks its object as due,
and whoever works on it reads it first.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import aiohttp
import kopf
import structlog

from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.controller import ControllerContext
from berth.kube.errors import ApiError
from berth.kube.metrics import WATCH_AGE, WATCH_EVENTS
from berth.kube.resources import Resource

log = structlog.get_logger(__name__)

EventHandler = Callable[[str | None, Mapping[str, Any]], None]
"""Called with the event's type (None for objects of a first list) and the object as the API server shows it."""

WATCH_SECONDS = 60
"""Seconds that one watch lasts; the next one continues where it ended."""
RETRY_KIND = 5.0
"""Seconds between looks whether a kind is installed."""


class OperatorStopped(Exception):  # noqa: N818 - an outcome, not a mistake of the caller
    """kopf ended by itself; the process should exit so that a fresh one starts over."""


class Operator:
    """One kopf operator with its own registry, for the kinds of one controller."""

    def __init__(self, context: ControllerContext, *, name: str, stale_after: float = 180.0) -> None:
        """Prepare without I/O.

        Args:
            context: what the controller got.
            name: the controller's name.
            stale_after: seconds without a word from the server after which health fails; several times
                :data:`WATCH_SECONDS`.
        """
        self._context = context
        self._name = name
        self._stale_after = stale_after
        self._registry = kopf.OperatorRegistry()
        self._kinds: list[Resource[Any]] = []
        self._contact: dict[str, float] = {}
        self._missing: dict[str, str] = {}
        self._generation: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = threading.Event()
        kopf.on.login(registry=self._registry, id=f"{name}-login")(self._login)

    def on_event(self, resource: Resource[Any], handler: EventHandler) -> None:
        """Have ``handler`` called for every object of a kind: once at the beginning and on every change."""
        self._kinds.append(resource)

        async def forward(type: str | None, body: Mapping[str, Any], **_: Any) -> None:  # noqa: A002 - kopf's name
            if self._loop is not None:
                WATCH_EVENTS.labels(resource.plural, type or "LISTED").inc()
                self._loop.call_soon_threadsafe(handler, type, dict(body))

        kopf.on.event(
            resource.group, resource.version, resource.plural, registry=self._registry, id=f"{self._name}-event"
        )(forward)
        self._context.checks.add_health(f"watch {resource.plural}", lambda: self._stale(resource))
        self._context.checks.add_ready(f"sync {resource.plural}", lambda: self._unsynced(resource))

    async def run(self) -> None:
        """Follow until cancelled.

        Raises:
            OperatorStopped: kopf failed or ended by itself.
        """
        self._loop = asyncio.get_running_loop()
        for resource in self._kinds:
            await self._wait_for_kind(self._context.client, resource)
        self._stop.clear()
        running = asyncio.ensure_future(asyncio.to_thread(self._run_in_thread))
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            self._stop.set()
            await asyncio.wait({running})
            raise
        except Exception as error:
            raise OperatorStopped(f"{self._name}: watching failed: {error!r}") from error
        raise OperatorStopped(f"{self._name}: watching ended by itself")

    def _run_in_thread(self) -> None:
        # It warns that it leaves signals alone, which is why it runs here.
        logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.posting.loggers = False
        settings.scanning.disabled = True
        settings.peering.standalone = True
        settings.process.ultimate_exiting_timeout = None
        settings.networking.request_timeout = 30.0
        settings.networking.connect_timeout = 5.0
        settings.queueing.exit_timeout = 0.1  # handlers only pass events on, there is nothing to wait for
        settings.watching.reconnect_backoff = 0.5
        # Every watch begins anew after this long, which is how a quiet one shows that it is alive.
        settings.watching.server_timeout = WATCH_SECONDS
        asyncio.run(kopf.operator(registry=self._registry, settings=settings, clusterwide=True, stop_flag=self._stop))

    async def _login(self, **_: Any) -> kopf.AiohttpSession:
        """Open kopf's session with the process's credentials; called again after the server has refused them."""
        connection = self._context.connection
        if self._generation is not None:
            await self._in_main_loop(connection.reload(seen=self._generation))
        self._generation = connection.generation
        headers = await self._in_main_loop(connection.headers())
        tracing = aiohttp.TraceConfig()
        tracing.on_request_end.append(self._saw_response)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=connection.ssl_context()),
            headers={"User-Agent": f"berth-{self._name}", **headers},
            proxy=connection.proxy,
            trace_configs=[tracing],
        )
        return kopf.AiohttpSession(
            server=connection.server, aiohttp_session=session, default_namespace=connection.namespace
        )

    async def _in_main_loop(self, coroutine: Any) -> Any:
        if self._loop is None:
            raise RuntimeError("the operator does not run")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    async def _saw_response(
        self, _session: aiohttp.ClientSession, _context: SimpleNamespace, params: aiohttp.TraceRequestEndParams
    ) -> None:
        """Note that the server answered a watch; by then the list before it is complete."""
        if params.response.status == 200 and params.url.query.get("watch") == "true":
            self._contact[params.url.path.rsplit("/", 1)[-1]] = time.monotonic()

    def _stale(self, resource: Resource[Any]) -> str | None:
        """What is wrong with the watch of a kind; nothing before it began, which is for readiness to tell."""
        contact = self._contact.get(resource.plural)
        if contact is None:
            return None
        age = time.monotonic() - contact
        WATCH_AGE.labels(resource.plural).set(age)
        return None if age < self._stale_after else f"no word from the API server for {age:.0f} s"

    def _unsynced(self, resource: Resource[Any]) -> str | None:
        if self._context.standby() or resource.plural in self._contact:
            return None
        return self._missing.get(resource.plural) or "first list not complete"

    async def _wait_for_kind(self, client: ApiClient, resource: Resource[Any]) -> None:
        """Wait until a kind is served and may be listed: kopf looks for kinds only once, at its start."""
        while True:
            try:
                async for _ in client.list_pages(resource, limit=1):
                    break
            except ApiError as error:
                remedy = (
                    "apply the manifests in crds/" if error.not_found else "allow this account to list and watch it"
                )
                problem = f"{resource.plural}.{resource.group} cannot be listed ({error}); {remedy}"
            except TRANSPORT_ERRORS as error:
                problem = f"API server not reached: {error!r}"
            else:
                self._missing.pop(resource.plural, None)
                return
            if self._missing.get(resource.plural) != problem:
                log.warning("waiting for a kind", resource=resource.plural, problem=problem)
            self._missing[resource.plural] = problem
            await asyncio.sleep(RETRY_KIND)
