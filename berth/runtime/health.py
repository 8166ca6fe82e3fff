"""/healthz, /readyz and /metrics over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from berth.runtime.site import Site

MAX_CONNECTIONS: Final = 128
"""Connections at a time: the kubelet and Prometheus have a few, and whoever reaches the port could take all memory."""

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


class HealthPortError(Exception):
    """The health server cannot listen where it should."""


class HealthServer:
    """Serves the checks and the process's metrics."""

    def __init__(self, checks: Checks, *, host: str, port: int) -> None:
        """Prepare; port 0 picks a free one, readable as :attr:`port` after start."""
        self._checks = checks
        app = web.Application()
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
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})
