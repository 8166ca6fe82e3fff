"""A server in the place of the latency controller: HTTPS on this machine, which keeps what it is told."""

from __future__ import annotations

import asyncio
import base64
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from aiohttp import web

from berth.api.latency_exchange import (
    PROBES_PATH,
    ROUND_TRIPS_PATH,
    Identity,
    Instructions,
    ProbeAnswer,
    ProbeAnswers,
    ProbeOrder,
    ProbeOrders,
    RoundTrips,
)

CERTIFICATE = Path(__file__).resolve().parents[1] / "data" / "server-certificate"
KEY = b"a key of 32 bytes, as random go."


def instructions(policy: str = "near", *, key: bytes = KEY, interval: float = 0.5, **more: object) -> Instructions:
    """What a controller with a policy says."""
    identity = more.pop("identity", Identity())
    return Instructions(policy, base64.b64encode(key).decode(), identity, interval=interval, **more)  # type: ignore[arg-type]


class LatencyController:
    """The running server."""

    def __init__(self) -> None:
        """Prepare; it answers what :attr:`answer` says."""
        self.messages: list[RoundTrips] = []
        """all that came, refused or not"""
        self.tokens: list[str] = []
        """what they showed"""
        self.port = 0
        """where it listens on 127.0.0.1"""
        self.answers: list[ProbeAnswer] = []
        """all that node agents told"""
        self.orders: asyncio.Queue[tuple[ProbeOrder, ...]] = asyncio.Queue()
        """what they are told, one at a time"""
        self.refusals = 0
        """messages of node agents that are refused from now on"""
        self.retry_after = ""
        """what refusals say in that header; empty: nothing"""
        self._news = asyncio.Condition()
        self.says(Instructions(interval=0.5))

    @property
    def url(self) -> str:
        """Where it is."""
        return f"https://127.0.0.1:{self.port}"

    def says(self, what: Instructions | bytes, *, status: int = 200) -> None:
        """Set the answer."""
        self._status, self._body = status, what if isinstance(what, bytes) else msgspec.json.encode(what)

    async def message(self, number: int) -> RoundTrips:
        """The message of this number, counted from 0, once it is there."""
        async with asyncio.timeout(120), self._news:
            await self._news.wait_for(lambda: len(self.messages) > number)
        return self.messages[number]

    async def answered(self, count: int) -> list[ProbeAnswer]:
        """What agents told, once there are so many answers."""
        async with asyncio.timeout(120), self._news:
            await self._news.wait_for(lambda: len(self.answers) >= count)
        return self.answers

    async def probes(self, request: web.Request) -> web.Response:
        """Take a message of a node agent."""
        message = msgspec.json.decode(await request.read(), type=ProbeAnswers)
        if self.refusals:
            self.refusals -= 1
            return web.Response(status=503, headers=self._headers())
        async with self._news:
            self.tokens.append(request.headers.get("Authorization", ""))
            self.answers += message.answers
            self._news.notify_all()
        orders = () if message.answers else await self.orders.get()
        return web.Response(body=msgspec.json.encode(ProbeOrders(orders)))

    async def handle(self, request: web.Request) -> web.Response:
        """Take a message."""
        message = msgspec.json.decode(await request.read(), type=RoundTrips)
        async with self._news:
            self.tokens.append(request.headers.get("Authorization", ""))
            self.messages.append(message)
            self._news.notify_all()
        return web.Response(status=self._status, body=self._body, headers={"Location": "/elsewhere", **self._headers()})

    def _headers(self) -> dict[str, str]:
        return {"Retry-After": self.retry_after} if self.retry_after else {}


def certificate_for(name: str, directory: Path) -> Path:
    """Make a certificate for a DNS name, its own authority, and return the directory that it is in."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    command += ["-keyout", str(directory / "server.key"), "-out", str(directory / "server.crt")]
    subprocess.run(command, check=True, capture_output=True)
    return directory


@asynccontextmanager
async def latency_controller(port: int = 0, certificate: Path = CERTIFICATE) -> AsyncIterator[LatencyController]:
    """Run one with the certificate of a directory."""
    controller = LatencyController()
    app = web.Application(client_max_size=2**22)
    app.router.add_post(ROUND_TRIPS_PATH, controller.handle)
    app.router.add_post(PROBES_PATH, controller.probes)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "server.crt", certificate / "server.key")
    try:
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
        controller.port = runner.addresses[0][1]
        yield controller
    finally:
        await runner.cleanup()
