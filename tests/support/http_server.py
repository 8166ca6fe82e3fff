"""A server of raw HTTP on this event loop, which counts its connections: for what happens below requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from kubernetes_asyncio.client import Configuration

from berth.kube.connection import Connection

Script = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
"""Answers a request: its head and body as they came."""


class HttpServer:
    """The running server."""

    def __init__(self, script: Script) -> None:
        """Prepare."""
        self.connections = 0
        """how many were made"""
        self.requests: list[bytes] = []
        """all that came"""
        self.port = 0
        """where it listens on 127.0.0.1"""
        self.tasks: set[asyncio.Task[None] | None] = set()
        """of the connections"""
        self._script = script

    def connection(self, path: str = "") -> Connection:
        """A connection to it, with a path before those of the API."""
        configuration = Configuration()
        configuration.host = f"http://127.0.0.1:{self.port}{path}"
        return Connection(configuration=configuration, namespace="default")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until its end."""
        self.connections += 1
        self.tasks.add(asyncio.current_task())
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                request = head + await reader.readexactly(int(length or 0))
                self.requests.append(request)
                await self._script(request, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client, or the test, has ended
        finally:
            writer.close()


@asynccontextmanager
async def http_server(script: Script) -> AsyncIterator[HttpServer]:
    """Serve inside the block."""
    server = HttpServer(script)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        tasks = [task for task in server.tasks if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def says_ok(request: bytes, writer: asyncio.StreamWriter) -> None:
    """Answer 201 with an empty object."""
    writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")
