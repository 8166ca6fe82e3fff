"""A faulty network: an HTTP proxy between a controller and the real API server.

    with FaultProxy(cluster, directory=tmp_path) as proxy:
        rule = proxy.add(Fault.RESET_AFTER, times=3)     # the first three bindings are written, their answers lost
        controller = ControllerProcess.start(["placement"], kubeconfig=proxy.kubeconfig, ...)
        ...
        proxy.wait_hits(rule, 3)

Everything passes through unchanged, watches as streams, unless a rule matches. A rule matches requests by method,
path and body, bindings by default, and is used up after ``times`` requests. ``Fault.HOLD`` keeps requests back until
:meth:`FaultProxy.release`. Every binding that came by is kept in :attr:`FaultProxy.bindings` with what became of it.

The proxy runs in a thread with an event loop of its own, so that plain test functions can use it.
"""

from __future__ import annotations

import asyncio
import http
import json
import re
import socket
import ssl
import struct
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Self, TypeVar

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

from hack.harness.cluster import PATIENCE, eventually
from hack.localcluster import LocalCluster

T = TypeVar("T")

BINDINGS = r"/api/v1/namespaces/[^/]+/pods/[^/]+/binding"
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "upgrade", "host", "te", "trailer", "content-length"}
_END = 3600.0


class Fault(Enum):
    """What happens to a request."""

    ANSWER = "answer"
    """an error status instead of forwarding"""
    ANSWER_AFTER = "answer after"
    """forwarded; an error status instead of the answer"""
    RESET = "reset"
    """the connection is reset without forwarding"""
    RESET_AFTER = "reset after"
    """forwarded; the connection is reset instead of an answer"""
    HANG = "hang"
    """never forwarded, never answered"""
    HANG_AFTER = "hang after"
    """forwarded, never answered"""
    SILENCE = "silence"
    """forwarded and answered, but of a watch only that it has begun"""
    HOLD = "hold"
    """forwarded and answered as soon as it is released"""


@dataclass(eq=False)
class Rule:
    """A fault and the requests that it meets."""

    fault: Fault
    """what happens"""
    method: str = "POST"
    """HTTP method"""
    path: str = BINDINGS
    """regular expression of the whole path"""
    body: str = ""
    """regular expression that is looked for in the body"""
    times: int | None = None
    """requests that it meets; None for all"""
    status: int = 500
    """status of ANSWER and ANSWER_AFTER"""
    retry_after: int | None = None
    """Retry-After header of the same, seconds"""
    hits: int = 0
    """requests that it met so far; of those that are forwarded under it, those that the API server has answered"""
    taken: int = 0
    """requests that it met, answered or not"""
    released: asyncio.Event = field(default_factory=asyncio.Event)
    """set when held requests may go on"""

    def matches(self, method: str, path: str, body: bytes) -> bool:
        """Whether it meets this request."""
        left = self.times is None or self.taken < self.times
        if not left or method != self.method or not re.fullmatch(self.path, path):
            return False
        return not self.body or re.search(self.body.encode(), body, re.DOTALL) is not None


@dataclass(frozen=True)
class Binding:
    """A binding that came by."""

    pod: str
    """name of the pod"""
    node: str
    """name of the node it asked for"""
    fault: Fault | None
    """what was done to it"""
    status: int
    """what the API server answered, 0 when it was not forwarded"""


class FaultProxy:
    """Reverse proxy in front of one cluster's API server."""

    def __init__(self, cluster: LocalCluster, *, directory: Path) -> None:
        """Prepare; entering the ``with`` block starts it and writes :attr:`kubeconfig` into `directory`."""
        self._cluster = cluster
        self.kubeconfig = directory / "faulty.kubeconfig"
        """Kubeconfig of the administrator, through the proxy."""
        self.bindings: list[Binding] = []
        """Every binding so far."""
        self._rules: list[Rule] = []
        self._watches: set[asyncio.Transport] = set()
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="faults", daemon=True)

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        assert self._started.wait(PATIENCE), "the proxy does not start"
        return self

    def __exit__(self, *_: object) -> None:
        """Let everything go and stop."""
        self.clear()
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=60)

    # Rules

    def add(self, fault: Fault, **arguments: Any) -> Rule:
        """Add a rule, arguments as the fields of :class:`Rule`; the first rule that matches counts."""
        rule = Rule(fault, **arguments)
        self._rules.append(rule)
        return rule

    def release(self, rule: Rule) -> None:
        """End a rule and let the requests go on that it holds."""
        self._in_loop(self._release(rule))

    def clear(self) -> None:
        """End all rules."""
        for rule in list(self._rules):
            self.release(rule)

    def wait_hits(self, rule: Rule, count: int = 1, *, timeout: float = PATIENCE) -> None:
        """Wait until a rule has met so many requests."""
        eventually(
            lambda: rule.hits, accept=lambda hits: hits >= count, timeout=timeout, what=f"{count} x {rule.fault.value}"
        )

    def cut_watches(self) -> int:
        """Reset the connections of all watches that are open now; returns their number."""
        return self._in_loop(self._cut())

    async def _release(self, rule: Rule) -> None:
        if rule in self._rules:
            self._rules.remove(rule)
        rule.released.set()

    async def _cut(self) -> int:
        watches = [transport for transport in self._watches if not transport.is_closing()]
        for transport in watches:
            _reset(transport)
        return len(watches)

    def _in_loop(self, coroutine: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None, "the proxy does not run"
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=PATIENCE)

    # Serving

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        connector = aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context(cafile=str(self._cluster.ca_file)))
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False, timeout=timeout) as session:
            self._session = session
            # Not aiohttp's Application: that would answer some requests by itself.
            server = web.Server(self._handle, handler_cancellation=True)
            runner = web.ServerRunner(server, shutdown_timeout=0.5)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self._write_kubeconfig(runner.addresses[0][1])
            self._started.set()
            await self._stop.wait()
            await runner.cleanup()

    def _write_kubeconfig(self, port: int) -> None:
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "faulty",
            "contexts": [{"name": "faulty", "context": {"cluster": "faulty", "user": "admin"}}],
            "clusters": [{"name": "faulty", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "admin", "user": {"token": self._cluster.token}}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(document))

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        rule = next((rule for rule in self._rules if rule.matches(request.method, request.path, body)), None)
        if rule is None:
            return await self._forward(request, body, None)
        rule.taken += 1
        fault = rule.fault
        # Who waits for a hit kills the client, say, and with it what is not forwarded yet.
        if fault in (Fault.ANSWER_AFTER, Fault.RESET_AFTER, Fault.HANG_AFTER):
            await self._forward(request, body, fault)
        rule.hits += 1
        if fault is Fault.SILENCE:
            return await self._forward(request, body, fault)
        if fault is Fault.HOLD:
            await rule.released.wait()
            return await self._forward(request, body, fault)
        if fault in (Fault.ANSWER, Fault.RESET, Fault.HANG):
            self._note(request, body, fault, 0)
        if fault in (Fault.ANSWER, Fault.ANSWER_AFTER):
            return _refusal(rule)
        if fault in (Fault.HANG, Fault.HANG_AFTER):
            await asyncio.sleep(_END)
        _reset(request.transport)
        return web.Response(status=500)

    async def _forward(self, request: web.BaseRequest, body: bytes, fault: Fault | None) -> web.StreamResponse:
        """Send the request on and the answer back; an answer of a request under a fault goes nowhere else."""
        url = URL(self._cluster.server + request.raw_path, encoded=True)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        watch = request.query.get("watch") == "true"
        with self._cuttable(request.transport if watch else None):
            async with self._session.request(request.method, url, data=body or None, headers=headers) as answer:
                kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
                if not watch or answer.status != http.HTTPStatus.OK:
                    content = await answer.read()
                    self._note(request, body, fault, answer.status)
                    return web.Response(status=answer.status, headers=kept, body=content)
                stream = web.StreamResponse(status=answer.status, headers=kept)
                await stream.prepare(request)
                try:
                    async for chunk in answer.content.iter_any():
                        if fault is not Fault.SILENCE:
                            await stream.write(chunk)
                    if fault is Fault.SILENCE:
                        await asyncio.sleep(_END)
                    await stream.write_eof()
                except (aiohttp.ClientError, ConnectionError):
                    _reset(request.transport)
                return stream

    @contextmanager
    def _cuttable(self, transport: asyncio.Transport | None) -> Iterator[None]:
        """A watch may be cut from when it is sent on, and not from its answer on: who cuts would miss a late one."""
        if transport is None:
            yield
            return
        self._watches.add(transport)
        try:
            yield
        finally:
            self._watches.discard(transport)

    def _note(self, request: web.BaseRequest, body: bytes, fault: Fault | None, status: int) -> None:
        if request.method == "POST" and re.fullmatch(BINDINGS, request.path):
            node = json.loads(body)["target"]["name"]
            self.bindings.append(Binding(request.path.split("/")[-2], node, fault, status))


def _refusal(rule: Rule) -> web.Response:
    """A refusal as the API server words it."""
    reasons = {400: "BadRequest", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 429: "TooManyRequests"}
    reason = (reasons | {500: "InternalError", 503: "ServiceUnavailable"})[rule.status]
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": "injected by the test",
        "reason": reason,
        "code": rule.status,
    }
    headers = {} if rule.retry_after is None else {"Retry-After": str(rule.retry_after)}
    return web.json_response(status, status=rule.status, headers=headers)


def _reset(transport: asyncio.Transport | None) -> None:
    """Break the client's connection with a TCP reset."""
    if transport is None or transport.is_closing():
        return
    connection: socket.socket | None = transport.get_extra_info("socket")
    if connection is not None:
        # Closing with a linger time of zero sends RST instead of FIN.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
