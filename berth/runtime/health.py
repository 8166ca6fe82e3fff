"""/healthz, /readyz and /metrics over HTTP."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from berth.runtime.site import Site

MAX_CONNECTIONS: Final = 128
"""Connections at a time: the kubelet and Prometheus have a few, and whoever reaches the port could take all memory."""

REST: Final = 9.0
"""For how many times as long as a page of metrics took no other is made."""

Check = Callable[[], str | None]
"""Returns None when all is well, otherwise what is wrong."""


class Checks:
    """Named health and readiness checks of one process."""

    def __init__(self) -> None:
        """Start without checks: healthy and ready."""
        self._health: list[tuple[str, Check]] = []
        self._ready: list[tuple[str, Check]] = []

    def add_health(self, name: str, check: Check) -> None:
        """A failing health check means: restart me. Several checks may have the same name; one raising has failed."""
        self._health.append((name, check))

    def add_ready(self, name: str, check: Check) -> None:
        """A failing readiness check means: I am not up to date yet."""
        self._ready.append((name, check))

    def health(self) -> dict[str, str]:
        """Failing health checks and what they say."""
        return self._failing(self._health)

    def ready(self) -> dict[str, str]:
        """Failing health and readiness checks and what they say."""
        return self._failing([*self._health, *self._ready])

    @staticmethod
    def _failing(checks: list[tuple[str, Check]]) -> dict[str, str]:
        failing: dict[str, str] = {}
        for name, check in checks:
            try:
                problem = check()
            except Exception as error:
                problem = f"the check itself failed: {error!r}"
            if problem is not None:
                # Two components in one process may both follow pods; neither problem may hide the other.
                failing[name] = f"{failing[name]}; {problem}" if name in failing else problem
        return failing


def _answer(failing: dict[str, str]) -> web.Response:
    if not failing:
        return web.Response(text="ok\n")
    return web.Response(status=503, text="".join(f"{name}: {problem}\n" for name, problem in failing.items()))


class _MetricsPage:
    """The process's metrics as text. It is made in the event loop, and anybody may ask for it.

    So it is made in a tenth of the time at the most, once for all who have asked since the last one.
    """

    def __init__(self) -> None:
        self._next: asyncio.Task[bytes] | None = None
        self._rested = -math.inf

    async def next(self) -> bytes:
        """The page as it is when this is asked for, or somewhat later."""
        if self._next is None:
            self._next = asyncio.create_task(self._make())
        return await asyncio.shield(self._next)  # others wait for it as well

    async def _make(self) -> bytes:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._rested - loop.time()))
        self._next = None
        began = loop.time()
        try:
            return generate_latest()
        finally:
            self._rested = loop.time() + REST * (loop.time() - began)


@web.middleware
async def _once(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer one request of a connection: who asks again and again without a pause would leave no time for others."""
    try:
        response = await handler(request)
    except web.HTTPException as error:
        error.force_close()
        raise
    response.force_close()
    return response


class HealthPortError(Exception):
    """The health server cannot listen where it should."""


class HealthServer:
    """Serves the checks and the process's metrics."""

    def __init__(self, checks: Checks, *, host: str, port: int) -> None:
        """Prepare; port 0 picks a free one, readable as :attr:`port` after start."""
        self._checks = checks
        self._metrics_page = _MetricsPage()
        app = web.Application(middlewares=[_once])
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        self._host = host
        self._site = Site(app, host=host, port=port, most=MAX_CONNECTIONS)

    async def start(self) -> None:
        """Listen.

        Raises:
            HealthPortError: address or port cannot be used; the text says what to do.
        """
        try:
            await self._site.start()
        except (OSError, OverflowError) as error:
            raise HealthPortError(
                f"cannot listen on {self._host}:{self.port} for /healthz and /metrics: {error}; "
                "choose another --health-port (0: any free one) or --health-host"
            ) from error

    async def stop(self) -> None:
        """Stop listening."""
        await self._site.stop()

    @property
    def port(self) -> int:
        """Port that it listens on."""
        return self._site.port

    async def _healthz(self, _request: web.Request) -> web.Response:
        return _answer(self._checks.health())

    async def _readyz(self, _request: web.Request) -> web.Response:
        return _answer(self._checks.ready())

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=await self._metrics_page.next(), headers={"Content-Type": CONTENT_TYPE_LATEST})
