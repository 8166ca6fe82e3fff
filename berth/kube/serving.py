"""/healthz, /readyz and /metrics over HTTP."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

Check = Callable[[], str | None]
"""Returns None when all is well, otherwise what is wrong."""


class Checks:
    """Named health and readiness checks of one process."""

    def __init__(self) -> None:
        """Start without checks: healthy and ready."""
        self._health: dict[str, Check] = {}
        self._ready: dict[str, Check] = {}

    def add_health(self, name: str, check: Check) -> None:
        """A failing health check means: restart me."""
        self._health[name] = check

    def add_ready(self, name: str, check: Check) -> None:
        """A failing readiness check means: I am not up to date yet."""
        self._ready[name] = check

    def health(self) -> dict[str, str]:
        """Failing health checks and what they say."""
        return self._failing(self._health)

    def ready(self) -> dict[str, str]:
        """Failing health and readiness checks and what they say."""
        return self._failing(self._health) | self._failing(self._ready)

    @staticmethod
    def _failing(checks: dict[str, Check]) -> dict[str, str]:
        return {name: problem for name, check in checks.items() if (problem := check()) is not None}


def _answer(failing: dict[str, str]) -> web.Response:
    if not failing:
        return web.Response(text="ok\n")
    return web.Response(status=503, text="".join(f"{name}: {problem}\n" for name, problem in failing.items()))


class HealthServer:
    """Serves the checks and the process's metrics."""

    def __init__(self, checks: Checks, *, host: str, port: int) -> None:
        """Prepare; port 0 picks a free one, readable as :attr:`port` after start."""
        self._checks = checks
        self._host = host
        self.port = port
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the port is taken; choose another with --health-port.
        """
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self.port)
        await site.start()
        self.port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _healthz(self, _request: web.Request) -> web.Response:
        return _answer(self._checks.health())

    async def _readyz(self, _request: web.Request) -> web.Response:
        return _answer(self._checks.ready())

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})
