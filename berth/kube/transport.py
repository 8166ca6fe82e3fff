"""A client's requests on their way to the API server.

Most go over :class:`~berth.kube.http_pool.HttpPool`; watches, whose answers do not end, and all that goes through a
proxy, over aiohttp.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import aiohttp
from yarl import URL

from berth.kube.connection import Connection
from berth.kube.http_answer import LARGEST_BODY, HttpAnswer, TooLargeError
from berth.kube.http_pool import CONNECT_SECONDS, HttpPool
from berth.kube.precedence import Precedence


class Transport:
    """All connections of one client.

    Raises in every method:
        aiohttp.ClientError, OSError (with TimeoutError): there was no answer.
        ConnectionConfigError: the credentials cannot be read.
    """

    def __init__(self, connection: Connection, *, user_agent: str) -> None:
        """Prepare."""
        self.writes = Precedence()
        """taken by all requests but reads"""
        self._connection = connection
        self._user_agent = user_agent
        self._pool = HttpPool(connection, user_agent=user_agent)
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> None:
        """Begin to take requests.

        Raises:
            ConnectionConfigError: the certificates are unusable.
        """
        self._connection.ssl_context()
        connector = aiohttp.TCPConnector(limit=0)
        self._session = aiohttp.ClientSession(connector=connector, headers={"User-Agent": self._user_agent})

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None
            await self._pool.close()

    async def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str],
        body: bytes | None,
        seconds: float,
        largest: int = LARGEST_BODY,
    ) -> HttpAnswer:
        """Send one request and read its answer, within so many seconds and bytes."""
        session = self._open()
        with nullcontext() if method == "GET" else self.writes.taken():
            if not self._connection.proxy:
                return await self._pool.request(
                    method, path, params=params, headers=headers, body=body, seconds=seconds, largest=largest
                )
            # Not rounded up to whole seconds: a write that ends too late would be one without leadership.
            timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS, ceil_threshold=math.inf)
            async with session.request(
                method, self._url(path), params=params, data=body, headers=headers, timeout=timeout, **self._route()
            ) as response:
                body = await read_body(response.content, largest)
                return HttpAnswer(response.status, body, response.headers.get("Retry-After"))

    async def watch(self, path: str, *, params: dict[str, str], silence_seconds: float) -> aiohttp.ClientResponse:
        """Begin a watch; the answer is to be read and released by the caller, and ends when nothing comes so long."""
        session, headers = self._open(), await self._connection.headers()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=silence_seconds)
        return await session.get(self._url(path), params=params, headers=headers, timeout=timeout, **self._route())

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("ApiClient is used outside its 'async with' block")
        return self._session

    def _url(self, path: str) -> URL:
        return URL(self._connection.server + path, encoded=True)

    def _route(self) -> dict[str, Any]:
        """TLS and proxy, per request: renewed client certificates then need no new session.

        No redirects: something on the way would have a Binding turned into a GET of its login page.
        """
        route: dict[str, Any] = {"ssl": self._connection.ssl_context(), "allow_redirects": False}
        if self._connection.server_hostname:
            route["server_hostname"] = self._connection.server_hostname
        if self._connection.proxy:
            route["proxy"] = self._connection.proxy
        return route


async def read_body(content: aiohttp.StreamReader, largest: int) -> bytes:
    """Read the body of an answer of aiohttp to its end.

    Raises:
        TooLargeError: it has more bytes than that.
    """
    parts: list[bytes] = []
    size = 0
    async for part in content.iter_any():
        size += len(part)
        if size > largest:
            raise TooLargeError(f"a body of more than {largest} bytes")
        parts.append(part)
    return b"".join(parts)
