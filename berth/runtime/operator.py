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
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import aiohttp
import kopf
import structlog

from berth.kube.client import TRANSPORT_ERRORS, ApiClient, backoff
from berth.kube.errors import ApiError
from berth.kube.metrics import WATCH_AGE, WATCH_EVENTS
from berth.kube.resources import Resource
from berth.runtime.component import ComponentContext

log = structlog.get_logger(__name__)

EventHandler = Callable[[str | None, Mapping[str, Any]], None]
"""Called with the event's type (None for objects of a first list) and the object as the API server shows it."""

WATCH_SECONDS = 60
"""Seconds that one watch lasts; the next one continues where it ended."""
STOP_SECONDS = 5.0
"""Seconds that kopf gets to stop, below the grace period of a pod."""
RETRY_KIND = 5.0
"""Seconds between looks whether a kind is installed."""


class Operator:
    """One kopf operator with its own registry, for the kinds of one controller."""

    def __init__(self, context: ComponentContext, *, name: str, stale_after: float = 180.0) -> None:
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
        kopf.on.login(registry=self._registry, id=f"{name}-login")(self._login)

    def on_event(self, resource: Resource[Any], handler: EventHandler) -> None:
        """Have ``handler`` called for every object of a kind: once at the beginning and on every change."""
        self._kinds.append(resource)

        async def forward(type: str | None, body: Mapping[str, Any], **_: Any) -> None:  # noqa: A002 - kopf's name
            if self._loop is not None:
                WATCH_EVENTS.labels(resource.plural, type or "LISTED").inc()
                with contextlib.suppress(RuntimeError):  # the loop is closed, the process is ending
                    self._loop.call_soon_threadsafe(handler, type, dict(body))

        kopf.on.event(
            resource.group, resource.version, resource.plural, registry=self._registry, id=f"{self._name}-event"
        )(forward)
        WATCH_AGE.labels(resource.plural).set_function(lambda: self._age(resource))
        self._context.checks.add_health(f"watch {resource.plural}", lambda: self._stale(resource))
        self._context.checks.add_ready(f"sync {resource.plural}", lambda: self._unsynced(resource))

    async def run(self) -> None:
        """Follow for ever; ends by cancellation only. kopf is begun anew when it fails."""
        self._loop = asyncio.get_running_loop()
        for resource in self._kinds:
            await self._wait_for_kind(self._context.client, resource)
        failures = 0
        while True:
            started = time.monotonic()
            problem = await self._run_once()
            failures = 0 if time.monotonic() - started > WATCH_SECONDS else failures + 1
            wait = backoff(failures, base=1.0, cap=30.0)
            log.warning("watch failed, beginning anew", name=self._name, error=problem, retry_in=round(wait, 1))
            await asyncio.sleep(wait)

    async def _run_once(self) -> str:
        """Run kopf in a thread until it ends, and return why; cancellation stops it.

        The thread is a daemon and is given up after :data:`STOP_SECONDS`, so that it cannot hold up the process.
        """
        main = asyncio.get_running_loop()
        stop = threading.Event()
        ended: asyncio.Future[str] = main.create_future()

        def tell(problem: str) -> None:
            if not ended.done():
                ended.set_result(problem)

        def work() -> None:
            problem = "kopf ended by itself"
            try:
                asyncio.run(self._operate(stop))
            except Exception as error:
                problem = repr(error)
            with contextlib.suppress(RuntimeError):  # the main loop is closed: nobody waits any more
                main.call_soon_threadsafe(tell, problem)

        threading.Thread(target=work, name=f"kopf-{self._name}", daemon=True).start()
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait({ended}, timeout=STOP_SECONDS)
            raise

    async def _operate(self, stop: threading.Event) -> None:
        # kopf warns that it leaves signals alone, which is why it runs in a thread.
        logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False  # Events come from the event recorder
        settings.posting.loggers = False
        settings.scanning.disabled = True  # the kinds are known
        settings.peering.standalone = True  # the Lease elects the leader
        settings.process.ultimate_exiting_timeout = None
        settings.networking.request_timeout = 30.0
        settings.networking.connect_timeout = 5.0
        settings.networking.error_backoffs = (0.1, 0.2, 0.5, 1, 1, 2, 2, 3, 5)  # an API server restarts in seconds
        settings.queueing.exit_timeout = 0.1  # handlers only pass events on, there is nothing to wait for
        settings.watching.reconnect_backoff = 0.5
        # Every watch begins anew after this long, which is how a quiet one shows that it is alive.
        settings.watching.server_timeout = WATCH_SECONDS
        await kopf.operator(registry=self._registry, settings=settings, clusterwide=True, stop_flag=stop)

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
        age = self._age(resource)
        return None if age < self._stale_after else f"no response from the API server for {age:.0f} s"

    def _age(self, resource: Resource[Any]) -> float:
        contact = self._contact.get(resource.plural)
        return 0.0 if contact is None else time.monotonic() - contact

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
