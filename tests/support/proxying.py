"""Applications that answer byte for byte as a test says, a proxy before them, and clients that send raw bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from berth.runtime.proxy.exchange import Exchange
from berth.runtime.proxy.forwarding import Forwarding
from berth.runtime.proxy.memory import memory_used
from berth.runtime.proxy.pool import UpstreamPool
from berth.runtime.proxy.server import ProxyServer
from berth.runtime.proxy.upstream import Address

Script = Callable[["Visit"], Awaitable[None]]


@dataclass
class Visit:
    """A connection to an application."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int
    """how many connections there were before"""

    async def head(self) -> bytes:
        """The head of the next request."""
        return await self.reader.readuntil(b"\r\n\r\n")

    async def say(self, data: bytes) -> None:
        """Send as it is."""
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """End it as a process that is killed does."""
        self.writer.transport.abort()


@dataclass
class Application:
    """An application that does what its script says on each connection."""

    script: Script
    heads: list[bytes] = field(default_factory=list)
    visits: int = 0
    address: Address = field(default_factory=lambda: Address("", 0))


@asynccontextmanager
async def application(script: Script, host: str = "127.0.0.1") -> AsyncIterator[Application]:
    """Run one."""
    app = Application(script)
    tasks: set[asyncio.Task[None]] = set()
    over = False

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if over:  # accepted before, and made known afterwards
            writer.transport.abort()
            return
        task = asyncio.create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = Visit(reader, writer, app.visits)
        app.visits += 1
        original = visit.head

        async def head() -> bytes:
            found = await original()
            app.heads.append(found)
            return found

        visit.head = head  # type: ignore[method-assign]
        try:
            await app.script(visit)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(accepted, host, 0)
    host, port = server.sockets[0].getsockname()[:2]
    app.address = Address(host, port)
    try:
        yield app
    finally:
        over = True
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answering(answer: bytes) -> Script:
    """Answers every request, which has no body, with the same bytes."""

    async def script(visit: Visit) -> None:
        while True:
            await visit.head()
            await visit.say(answer)

    return script


async def read_body(visit: Visit, head: bytes) -> bytes:
    """The body of the request that visits, given its head."""
    if b"Content-Length: " in head:
        return await visit.reader.readexactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]))
    whole = b""
    while size := int((await visit.reader.readline()).split(b";")[0], 16):
        whole += await visit.reader.readexactly(size)
        await visit.reader.readline()
    await visit.reader.readline()
    return whole


@dataclass
class Proxy:
    """A proxy under test."""

    server: ProxyServer
    forwarding: Forwarding
    pool: UpstreamPool
    done: list[Exchange]
    """exchanges that have ended"""
    failures: list[str]
    """failures of attempts, as they were told"""

    async def ask(self, data: bytes) -> bytes:
        """Send bytes by a connection of its own and return all that comes until the proxy closes it."""
        async with self.client() as (reader, writer):
            writer.write(data)
            await writer.drain()
            return await reader.read()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Connect."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        try:
            yield reader, writer
        finally:
            writer.close()


@asynccontextmanager
async def proxy(
    *addresses: Address, memory: tuple[int, Callable[[], int]] | None = None, **options: object
) -> AsyncIterator[Proxy]:
    """Run a proxy that tries addresses in this order, the last again where there is no other.

    `memory` says how much it may have, and what tells how much it has.
    """
    pool = UpstreamPool()
    forwarding = Forwarding(pool)
    done: list[Exchange] = []
    failures: list[str] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        def choose(failed: list[Address]) -> Address | None:
            left = [address for address in addresses if address not in failed]
            return left[0] if left else addresses[-1] if addresses else None

        exchange = Exchange(request, choose, b"berth", **options)  # type: ignore[arg-type]
        exchange.on_failure = lambda _address, error: failures.append(error.failure)
        try:
            return await forwarding.forward(exchange)
        finally:
            done.append(exchange)

    limit, used = memory or (None, memory_used)
    server = ProxyServer(handle, host="127.0.0.1", port=0, pool=pool, limit=limit, used=used)
    await server.start()
    try:
        yield Proxy(server, forwarding, pool, done, failures)
    finally:
        await server.stop(seconds=0)
        await pool.close()


def get(path: str = "/", *fields: str, method: str = "GET", last: bool = True) -> bytes:
    """A request without body; the last one of its connection unless said otherwise."""
    lines = [f"{method} {path} HTTP/1.1", "Host: shop.example", *fields, *(["Connection: close"] if last else [])]
    return "\r\n".join([*lines, "", ""]).encode()


def post(body: str, *fields: str, chunked: bool = False) -> bytes:
    """A request with a body, the last one of its connection."""
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
    text = f"{len(body):x}\r\n{body}\r\n0\r\n\r\n" if chunked else body
    return get("/", length, *fields, method="POST") + text.encode()


def body_of(answer: bytes) -> bytes:
    """What is behind the head of an answer, as it came."""
    return answer.partition(b"\r\n\r\n")[2]


def status_of(answer: bytes) -> int:
    """Status of an answer."""
    return int(answer.split(b" ", 2)[1])
