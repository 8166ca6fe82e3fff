"""The one kopf operator of a process: follows Berth's own kinds for all components that work in it.

kopf runs in a thread with an event loop of its own, because an embedded operator takes over its loop: it replaces
the process's signal handlers and cancels every task of the loop when it stops. Handlers are plain functions, which
kopf hands to its executor; here that is the loop of the components, so that nobody needs locks.

Nothing is written to the objects: only ``on.event`` handlers are used, which need neither annotations nor finalizers.
A handler puts the key of its object into a work queue, and whoever works on the key reads the object first; all
that it gets to see of the object is which one it is. kopf does not report objects that were deleted while a watch was
broken; therefore every known key is due again whenever it lists.

kopf takes its handlers and looks for kinds once, at its start. It is started anew when a component begins to follow a
kind, be it that the component has become leader or that the kind has been installed, and lists everything again. A
kind that goes, or that may not be listed any more, ends kopf too; it is waited for as it was at the beginning.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
import structlog
from yarl import URL

from berth.kube.client import TRANSPORT_ERRORS, ApiClient, backoff
from berth.kube.connection import Connection, ConnectionConfigError
from berth.kube.errors import ApiError
from berth.kube.history import went_back
from berth.kube.http_answer import TooLargeError
from berth.kube.metrics import WATCH_AGE, WATCH_EVENTS
from berth.kube.page_size import PAGE_GROWTH
from berth.kube.resources import Resource
from berth.runtime.follower import Follower, Register
from berth.runtime.loop_executor import LoopExecutor
from berth.runtime.metadata_response import MetadataResponse
from berth.runtime.server_name import request_class
from berth.runtime.watch_ages import WatchAges

if TYPE_CHECKING:
    import kopf

    from berth.runtime.component import ComponentContext

log = structlog.get_logger(__name__)


LIST_PAGE = 25
"""Objects that kopf lists at once, at first: one may have a megabyte and a half."""
WATCH_SECONDS = 60
"""Seconds after which the API server ends a watch; the next one continues where it ended."""
SILENT_SECONDS = 70.0
"""Seconds without an event or a bookmark after which kopf gives up a watch."""
STALE_SECONDS = 180.0
"""Seconds without a live watch after which health fails."""
STOP_SECONDS = 5.0
"""Seconds that kopf gets to stop, below the grace period of a pod."""
MAX_HASTY = 4
"""Watches in a row that end at once before everything is listed again: where none comes through, lists may."""
RETRY_KIND = 5.0
"""Seconds between looks whether a kind is installed."""
ASK_SECONDS = 15.0
"""Seconds after its start by which kopf has asked for every kind that the API server announces."""
_NOT_LISTED_YET = "first list not complete"


class Operator:
    """One kopf operator for all components of a process."""

    def __init__(self) -> None:
        """Prepare; :meth:`run` does the work."""
        self._followers: tuple[Follower, ...] = ()
        self._changed = asyncio.Event()
        self._asking: set[asyncio.Future[str | None]] = set()  # whether kinds may be listed
        self._ages = WatchAges(lasts=WATCH_SECONDS, silent=SILENT_SECONDS)
        self._asked: set[str] = set()
        self._pages: dict[str, int] = {}  # by kind, of lists that have expired and not been read since
        self._ended = False
        self._looks: dict[str, asyncio.Future[None]] = {}  # by kind, whether the API server has gone back
        self._generation: int | None = None
        self._settings: kopf.OperatorSettings
        self._connection: Connection
        self._main: asyncio.AbstractEventLoop

    async def follow(
        self, context: ComponentContext, kind: Resource[Any], register: Register, *, listed: Callable[[], None]
    ) -> None:
        """Have a component's handlers called for every object of a kind, at once and on every change, for ever.

        Health depends on the age of the watch, readiness on the first list. A kind that is not installed or may not
        be listed is waited for, at the beginning and whenever that comes to be so; then everything is listed anew.

        Args:
            context: what the process provides to the component.
            kind: what to follow.
            register: adds the handlers.
            listed: called when the kind is listed anew, to have every object looked at that is known so far.
        """
        problem = _NOT_LISTED_YET
        WATCH_AGE.labels(kind.plural).set_function(lambda: self._age(kind) or 0.0)
        context.checks.add_health(f"watch {kind.plural}", lambda: self._stale(kind))
        context.checks.add_ready(f"sync {kind.plural}", lambda: problem if self._age(kind) is None else None)
        self._connection = context.connection
        while True:
            asking = asyncio.ensure_future(why_not_listed(context.client, kind))
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
            missing = await asking
            if missing is None:
                problem = _NOT_LISTED_YET
                missing = await self._follow_until_lost(kind, context.client, register, listed)
            if missing != problem:
                log.warning("waiting for a kind", resource=kind.plural, problem=missing)
            problem = missing
            # Also after a loss: who may list but not watch would start kopf without end.
            await asyncio.sleep(RETRY_KIND)

    async def _follow_until_lost(
        self, kind: Resource[Any], client: ApiClient, register: Register, listed: Callable[[], None]
    ) -> str:
        """Have kopf follow a kind and return why it cannot any more."""
        follower = Follower(kind, client, register, listed, asyncio.get_running_loop().create_future())
        self._followers = (*self._followers, follower)
        self._changed.set()
        problem = await follower.lost
        self._followers = tuple(other for other in self._followers if other is not follower)
        self._ages.forget(kind.plural)
        self._changed.set()
        return problem

    async def run(self) -> None:
        """Run kopf for ever as soon as something is to be followed; ends by cancellation only."""
        self._main = asyncio.get_running_loop()
        try:
            await self._run_again_and_again()
        finally:
            self._ended = True
            looks = [*self._looks.values()]
            for look in looks:
                look.cancel()
            await asyncio.gather(*looks, return_exceptions=True)

    async def _run_again_and_again(self) -> None:
        failures = 0
        while True:
            if self._asking:  # kopf that is stopped while it looks around takes as long
                await asyncio.wait(self._asking, timeout=STOP_SECONDS)
            self._changed.clear()
            if not self._followers:
                await self._changed.wait()
                continue
            started = time.monotonic()
            problem = await self._run_once()
            if problem is None:
                continue
            failures = 0 if time.monotonic() - started > WATCH_SECONDS else failures + 1
            wait = backoff(failures, base=1.0, cap=30.0)
            log.warning("kopf failed, starting it again", error=problem, retry_in=round(wait, 1))
            await asyncio.sleep(wait)

    async def _run_once(self) -> str | None:
        """Run kopf in a thread until it ends, and return why; None if other kinds are to be followed now.

        The thread is a daemon and is given up after :data:`STOP_SECONDS`, so that it cannot hold up the process.
        """
        stop = threading.Event()
        ended: asyncio.Future[str] = self._main.create_future()

        def work() -> None:
            problem = "kopf ended by itself"
            try:
                asyncio.run(self._operate(stop))
            except Exception as error:
                problem = repr(error)
            with contextlib.suppress(RuntimeError):  # the main loop is closed: nobody waits any more
                self._main.call_soon_threadsafe(ended.set_result, problem)

        self._asked.clear()
        threading.Thread(target=work, name="kopf", daemon=True).start()
        unasked = asyncio.ensure_future(self._lose_unasked())
        changed = asyncio.ensure_future(self._changed.wait())
        either: tuple[asyncio.Future[Any], ...] = (ended, changed)
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return ended.result() if ended.done() else None
        finally:
            unasked.cancel()
            changed.cancel()
            stop.set()
            await asyncio.wait({ended}, timeout=STOP_SECONDS)

    async def _lose_unasked(self) -> None:
        """Give up what kopf does not ask for: a kind that was just installed is served before it is announced."""
        await asyncio.sleep(ASK_SECONDS)
        for follower in self._followers:
            if follower.kind.plural not in self._asked:
                follower.lose(f"the API server does not announce {follower.kind.plural} in its discovery yet")

    async def _operate(self, stop: threading.Event) -> None:
        import kopf

        # kopf warns that it leaves signals alone, which is why it runs in a thread.
        logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._login)
        for kind in {follower.kind for follower in self._followers}:
            _count_events(registry, kind)
        for follower in self._followers:
            follower.register(registry)
        settings = kopf.OperatorSettings()
        settings.execution.executor = LoopExecutor(self._main)
        settings.posting.enabled = False  # Events come from the event recorder
        settings.posting.loggers = False
        settings.scanning.disabled = True  # the kinds are known
        settings.peering.standalone = True  # the Lease elects the leader
        settings.process.ultimate_exiting_timeout = None
        settings.networking.request_timeout = 30.0
        settings.networking.connect_timeout = 5.0
        settings.networking.error_backoffs = (0.1, 0.2, 0.5, 1, 1, 2, 2, 3, 5)  # an API server restarts in seconds
        settings.queueing.exit_timeout = 0.1  # handlers only pass keys on, there is nothing to wait for
        settings.watching.reconnect_backoff = 0.5
        self._settings = settings
        self._set_page()
        settings.watching.server_timeout = WATCH_SECONDS
        settings.watching.inactivity_timeout = SILENT_SECONDS
        try:
            await kopf.operator(registry=registry, settings=settings, clusterwide=True, stop_flag=stop)
        except TooLargeError:
            self._pages.clear()
            raise
        finally:
            stop.set()  # kopf waits for it in a thread of the loop's executor, without which the loop cannot close

    async def _login(self, **_: Any) -> kopf.AiohttpSession:
        """Open kopf's session with the process's credentials; called again after the server has refused them."""
        import kopf

        connection = self._connection
        if self._generation is not None:
            await self._in_main_loop(connection.reload(seen=self._generation))
        self._generation = connection.generation
        headers = await self._in_main_loop(connection.headers())
        headers["User-Agent"] = "berth-operator"
        tracing = aiohttp.TraceConfig()
        tracing.on_request_start.append(self._request_started)
        tracing.on_request_end.append(self._request_answered)
        tracing.on_request_exception.append(self._request_failed)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=connection.ssl_context()),
            headers=headers,
            proxy=connection.proxy,
            trace_configs=[tracing],
            request_class=request_class(connection.server_hostname),
            response_class=MetadataResponse,
        )
        return kopf.AiohttpSession(
            server=connection.server, aiohttp_session=session, default_namespace=connection.namespace
        )

    async def _in_main_loop(self, coroutine: Any) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._main))

    async def _request_started(
        self, _session: aiohttp.ClientSession, _context: SimpleNamespace, params: aiohttp.TraceRequestStartParams
    ) -> None:
        self._asked.add(params.url.name)
        if _watches(params.url):
            self._pages.pop(params.url.name, None)  # it has been read
            self._set_page()
            hasty = self._ages.requested(params.url.name, time.monotonic())
            if hasty:  # kopf itself goes on at once, and never lists
                if hasty % MAX_HASTY == 0:
                    self._main.call_soon_threadsafe(self._changed.set)
                await asyncio.sleep(backoff(hasty))

    async def _request_answered(
        self, _session: aiohttp.ClientSession, _context: SimpleNamespace, params: aiohttp.TraceRequestEndParams
    ) -> None:
        status, followers = params.response.status, self._followers_of(params.url)
        if status in (403, 404):
            for follower in followers:
                answer = f"{status} {params.response.reason}"
                self._main.call_soon_threadsafe(follower.lose, _refused(follower.kind, status, answer))
        if status == 410 and "continue" in params.url.query:
            # It took too long, page by page; kopf ends with it and is started anew.
            self._pages[params.url.name] = int(params.url.query["limit"]) * PAGE_GROWTH
        if status != 200:
            return
        broken = self._ages.was_broken(params.url.name)
        if _watches(params.url):
            self._ages.answered(params.url.name, time.monotonic())
            if broken and followers:
                version = params.url.query.get("resourceVersion", "")
                self._main.call_soon_threadsafe(self._look_back, followers[0], version)
            return
        if "continue" in params.url.query:  # a later page shows the cluster as it was at the first
            return
        for follower in followers:
            self._main.call_soon_threadsafe(follower.listed)

    async def _request_failed(
        self, _session: aiohttp.ClientSession, _context: SimpleNamespace, params: aiohttp.TraceRequestExceptionParams
    ) -> None:
        if isinstance(params.exception, aiohttp.ClientSSLError) and self._generation is not None:
            await self._in_main_loop(self._renew(self._generation))

    async def _renew(self, generation: int) -> None:
        """Start kopf anew where there are newer certificates than those that failed: it keeps what it began with."""
        try:
            if await self._connection.reload(seen=generation):
                self._changed.set()
        except ConnectionConfigError as error:
            log.warning("credentials cannot be renewed", error=str(error))

    def _set_page(self) -> None:
        self._settings.watching.chunk_size = max(self._pages.values(), default=LIST_PAGE)

    def _look_back(self, follower: Follower, version: str) -> None:
        """Have a look at whether a watch may go on from a version; one at a time."""
        kind = follower.kind.plural
        if kind not in self._looks and not self._ended:  # kopf's thread may outlast the operator
            self._looks[kind] = asyncio.ensure_future(self._list_anew_if_gone_back(follower, version))
            self._looks[kind].add_done_callback(lambda _: self._looks.pop(kind))

    async def _list_anew_if_gone_back(self, follower: Follower, version: str) -> None:
        """Start kopf anew if a watch goes on from a version that the API server does not have any more."""
        try:
            if await went_back(follower.client.list_pages(follower.kind, limit=1), version):
                self._changed.set()
        except (ApiError, *TRANSPORT_ERRORS) as error:
            self._ages.doubt(follower.kind.plural)
            log.info("cannot tell whether a watch may go on", resource=follower.kind.plural, error=str(error))

    def _followers_of(self, url: URL) -> list[Follower]:
        return [follower for follower in self._followers if follower.kind.plural == url.name]

    def _age(self, kind: Resource[Any]) -> float | None:
        return self._ages.age(kind.plural, time.monotonic())

    def _stale(self, kind: Resource[Any]) -> str | None:
        """What is wrong with the watch of a kind; nothing before it began, which is for readiness to tell."""
        age = self._age(kind) or 0.0
        return None if age < STALE_SECONDS else f"no response from the API server for {age:.0f} s"


def _watches(url: URL) -> bool:
    return url.query.get("watch") == "true"


def _count_events(registry: kopf.OperatorRegistry, kind: Resource[Any]) -> None:
    import kopf

    @kopf.on.event(*kind.names, registry=registry)
    async def count_event(**event: Any) -> None:
        WATCH_EVENTS.labels(kind.plural, event["type"] or "LISTED").inc()


async def why_not_listed(
    client: ApiClient, kind: Resource[Any], *, namespace: str | None = None, field_selector: str | None = None
) -> str | None:
    """Return why a kind cannot be listed and what to do about it; None when it can. Arguments as of ``list_pages``."""
    try:
        async for _ in client.list_pages(kind, namespace=namespace, field_selector=field_selector, limit=1):
            return None
    except (ApiError, *TRANSPORT_ERRORS) as error:
        return why_refused(kind, error)
    return None


def why_refused(kind: Resource[Any], error: Exception) -> str:
    """Return why a list of a kind failed and what to do about it."""
    if isinstance(error, ApiError):
        return _refused(kind, error.status, str(error))
    return f"API server not reached: {error!r}"


def _refused(kind: Resource[Any], status: int, answer: str) -> str:
    name = f"{kind.plural}.{kind.group}".rstrip(".")
    remedy = "apply the manifests in crds/" if status == 404 else f"allow this account to list and watch {name}"
    return f"{name} cannot be listed ({answer}); {remedy}"
