"""A small, fast client of the Kubernetes API: JSON through msgspec.

Only what Berth needs: get, paged list, watch lines, create, merge patch, server-side apply, delete.
Requests that are safe to repeat are repeated after 429, 5xx and connection errors, with jittered
backoff that honours Retry-After; creations are not, because their answer may be lost after they took effect.
After 401, or when TLS fails, certificates and credentials are read again and any request is sent once more, since a
refused one had no effect.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
import structlog

from berth.kube.backoff import backoff as backoff
from berth.kube.connection import Connection, ConnectionConfigError
from berth.kube.decoding import ObjectDecoder
from berth.kube.errors import ApiError, error_from_response, readable, unreadable
from berth.kube.http_answer import HttpAnswer, TooLargeError
from berth.kube.in_turns import in_turns
from berth.kube.lines import Lines
from berth.kube.lists import RawList, read_list
from berth.kube.meta import name_of
from berth.kube.metrics import API_LATENCY, API_REQUESTS
from berth.kube.page_size import LIST_PAGE, PAGE_GROWTH, PageSize
from berth.kube.request import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Request, selection
from berth.kube.resources import Resource
from berth.kube.transport import Transport, read_body

T = TypeVar("T")

log = structlog.get_logger(__name__)

USER_AGENT = "berth"
LARGEST_REFUSAL = 2**20
"""Bytes that are read of the refusal of a watch."""
TRANSPORT_ERRORS = (aiohttp.ClientError, OSError, ConnectionConfigError)
"""What a broken connection raises (TimeoutError is an OSError), and credentials that cannot be read at the moment;
ApiError is an answer and not among them."""
_TLS_ERRORS = (ssl.SSLError, aiohttp.ClientSSLError)


class ApiClient:
    """One connection pool to one API server.

    Raises in every method:
        ApiError: the server answered with an error status, or what answered was no API server (status 502).
        aiohttp.ClientError, OSError (with TimeoutError): it could not be reached, also after the retries.
        ConnectionConfigError: the credentials cannot be read, also after the retries.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        user_agent: str = USER_AGENT,
        max_connections: int = 64,
        timeout: float = 30.0,
        retries: int = 4,
        before_write: Callable[[], float] | None = None,
    ) -> None:
        """Prepare; connections are made inside the context.

        Args:
            connection: server and credentials.
            user_agent: name in the API server's audit log.
            max_connections: upper bound of simultaneous requests, apart from watches; at least 1.
            timeout: seconds that one request (not a watch) may take.
            retries: how often a repeatable request is tried again.
            before_write: says, just before every request that is no read, how many seconds it may take; or raises.
        """
        if max_connections < 1:
            raise ValueError(f"max_connections {max_connections} lets no request through")
        self.connection = connection
        self._transport = Transport(connection, user_agent=user_agent)
        self.writes = self._transport.writes
        """What may be asked to go before something else: requests that are no reads, while they are under way."""
        # Before `before_write` is asked: what it allows must not wait.
        self._slots = asyncio.Semaphore(max_connections)
        self._connections = max_connections
        self._before_write = before_write
        self._seconds = timeout
        self._retries = retries
        self._page_factors: dict[str, int] = {}  # by path, of lists that have expired and not been read since

    def widen(self, connections: int) -> None:
        """Have so many simultaneous requests at most, if that is more than before."""
        while self._connections < connections:
            self._connections += 1
            self._slots.release()

    async def __aenter__(self) -> Self:
        """Begin.

        Raises:
            ConnectionConfigError: the certificates are unusable.
        """
        self._transport.open()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close all connections."""
        await self._transport.close()

    async def get(
        self, resource: Resource[T], name: str, *, namespace: str | None = None, not_older_than: str = ""
    ) -> T:
        """Read one object, the newest or one that is not older than a resourceVersion: that costs the server less."""
        params = {"resourceVersion": not_older_than} if not_older_than else None
        body = await self._repeat(Request("GET", resource, resource.path(namespace, name), params=params))
        with readable(body):
            found = ObjectDecoder(resource.type).decode(body)
            if name_of(found) != name:
                raise ValueError(f"not {resource.kind} {name}")
        return found

    async def list_pages(
        self,
        resource: Resource[T],
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = LIST_PAGE,
    ) -> AsyncGenerator[RawList, None]:
        """Read a collection page by page; the pages are one consistent snapshot.

        Raises:
            ApiError: with :attr:`ApiError.expired` when the snapshot was compacted away between two pages; those of the
                next attempt are larger.
        """
        path = resource.path(namespace)
        factor = self._page_factors.get(path, 1)
        params, size = selection(label_selector, field_selector), PageSize(limit, factor=factor)
        while True:
            params["limit"] = str(size.limit)
            try:
                body = await self._repeat(
                    Request("GET", resource, path, params=params, largest=size.largest, verb="LIST")
                )
            except TooLargeError:
                if size.shrink():
                    continue
                raise
            except ApiError as error:
                if error.expired and "continue" in params:
                    self._page_factors[path] = factor * PAGE_GROWTH
                raise
            with readable(body):
                page = read_list(body, resource.kind)
                if page.metadata.continue_ and page.metadata.continue_ == params.get("continue"):
                    raise ValueError("a list that goes on where it is")
            size.read(len(page.items or ()), len(body))
            yield page
            if not page.metadata.continue_:
                self._page_factors.pop(path, None)
                return
            params["continue"] = page.metadata.continue_

    async def list_all(
        self,
        resource: Resource[T],
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> list[T]:
        """Read a whole collection."""
        decoder = ObjectDecoder(resource.type)
        found: list[T] = []
        while True:
            pages = self.list_pages(
                resource, namespace=namespace, label_selector=label_selector, field_selector=field_selector
            )
            try:
                async for page in pages:
                    async for item in in_turns(page.items or ()):
                        with readable(bytes(item)):
                            found.append(decoder.decode(item))
            except ApiError as error:
                if not (error.expired and found):
                    raise
                found.clear()
            else:
                return found

    async def create(
        self,
        resource: Resource[Any],
        body: Any,
        *,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
        repeat: bool = False,
    ) -> bytes:
        """POST an object (or a subresource such as a pod's binding); returns the server's answer.

        Args:
            resource: kind of the object, or of the object with the subresource.
            body: what to send.
            namespace: where.
            name: the object that has the subresource.
            subresource: e.g. ``binding``.
            repeat: send again on trouble as reads are; a Conflict may then be the answer to our own first try.
                By default the request is sent exactly once.
        """
        request = Request("POST", resource, resource.path(namespace, name, subresource), body)
        return await (self._repeat(request) if repeat else self._once(request))

    async def replace(self, resource: Resource[Any], name: str, body: Any, *, namespace: str | None = None) -> bytes:
        """PUT an object; the resourceVersion in it makes the write conditional."""
        return await self._once(Request("PUT", resource, resource.path(namespace, name), body))

    async def merge_patch(
        self,
        resource: Resource[Any],
        name: str,
        body: Any,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> bytes:
        """PATCH with a JSON merge patch; repeated on trouble because it is idempotent."""
        path = resource.path(namespace, name, subresource)
        params = {"fieldManager": field_manager} if field_manager else None
        return await self._repeat(Request("PATCH", resource, path, body, MERGE_PATCH, params))

    async def set_status(
        self, resource: Resource[Any], name: str, status: Any, *, field_manager: str, namespace: str | None = None
    ) -> bytes:
        """Set the status to this and nothing else, whoever has written into it; idempotent, so repeated on trouble."""
        path, body = resource.path(namespace, name, "status"), [{"op": "add", "path": "/status", "value": status}]
        params = {"fieldManager": field_manager}
        return await self._repeat(Request("PATCH", resource, path, body, JSON_PATCH, params))

    async def strategic_patch(
        self,
        resource: Resource[Any],
        name: str,
        body: Any,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> bytes:
        """PATCH a built-in kind with a strategic merge patch (lists merge by key); repeated on trouble."""
        path = resource.path(namespace, name, subresource)
        return await self._repeat(Request("PATCH", resource, path, body, STRATEGIC_PATCH))

    async def apply(
        self,
        resource: Resource[Any],
        name: str,
        body: Any,
        *,
        field_manager: str,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> bytes:
        """Server-side apply with our field manager, which takes the fields over; idempotent, so repeated on trouble."""
        path, params = resource.path(namespace, name, subresource), {"fieldManager": field_manager, "force": "true"}
        return await self._repeat(Request("PATCH", resource, path, body, APPLY_PATCH, params, verb="APPLY"))

    async def delete(self, resource: Resource[Any], name: str, *, namespace: str | None = None) -> None:
        """Delete an object; one that is already gone is fine."""
        try:
            await self._repeat(Request("DELETE", resource, resource.path(namespace, name)))
        except ApiError as error:
            if not error.not_found:
                raise

    async def watch_chunks(
        self,
        resource: Resource[Any],
        *,
        resource_version: str,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        timeout_seconds: int = 300,
        silence_seconds: float = 90.0,
        begun: Callable[[], None] | None = None,
    ) -> AsyncGenerator[list[bytes], None]:
        """Follow a collection; yields the complete lines of every network read, so that a burst is one batch.

        Args:
            resource: what to watch.
            resource_version: where to start, from a list or the last event seen.
            namespace: only this namespace.
            label_selector: only objects that match.
            field_selector: only objects that match.
            timeout_seconds: the server ends the watch after this long.
            silence_seconds: a connection that says nothing for so long (bookmarks come every minute) is broken.
            begun: called when the server has agreed to the watch, which may have no news for long.
        """
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
            **selection(label_selector, field_selector),
        }
        generation = self.connection.generation
        try:
            response = await self._transport.watch(
                resource.path(namespace), params=params, silence_seconds=silence_seconds
            )
        except aiohttp.ClientSSLError:
            await self._renew(generation)
            raise
        async with response:
            API_REQUESTS.labels("WATCH", resource.plural, str(response.status)).inc()
            if response.status == 401:
                await self._renew(generation)
            if response.status != 200:
                async with asyncio.timeout(self._seconds):
                    words = await read_body(response.content, LARGEST_REFUSAL)
                raise error_from_response(response.status, words, response.headers.get("Retry-After"))
            if begun is not None:
                begun()
            reader = Lines()
            async for chunk in response.content.iter_any():
                if lines := reader.feed(chunk):
                    yield lines

    async def _repeat(self, request: Request) -> bytes:
        """Send a request that may safely arrive twice."""
        for attempt in range(self._retries + 1):
            try:
                return await self._once(request)
            except ApiError as error:
                if not error.retryable or attempt == self._retries:
                    raise
                await asyncio.sleep(max(error.retry_after or 0.0, backoff(attempt)))
            except TooLargeError:
                raise  # as it would be again
            except TRANSPORT_ERRORS:
                if attempt == self._retries:
                    raise
                await asyncio.sleep(backoff(attempt))
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _once(self, request: Request) -> bytes:
        """Send a request once, or twice if certificates or credentials have been renewed since the first failed."""
        for final in (False, True):
            generation = self.connection.generation
            try:
                status, answer, retry_after = await self._send(request)
            except _TLS_ERRORS:
                # Without a handshake nothing has arrived, so that any request may be sent again.
                if final or not await self._renew(generation):
                    raise
                continue
            if status != 401 or final or not await self._renew(generation):
                break
        if status >= 300:
            raise error_from_response(status, answer, retry_after)
        if not (answer[:99].lstrip()[:1] == b"{" and answer[-99:].rstrip()[-1:] == b"}"):
            raise unreadable(status, answer, "no JSON object")
        return answer

    async def _send(self, request: Request) -> HttpAnswer:
        async with self._slots:
            headers = await self.connection.headers()
            if request.body is not None:
                headers["Content-Type"] = request.content_type
            data = request.encoded()
            verb, plural = request.verb or request.method, request.resource.plural
            limit = self._before_write if request.method != "GET" else None
            seconds = self._seconds if limit is None else min(self._seconds, limit())
            started = time.perf_counter()
            try:
                answer = await self._transport.send(
                    request.method, request.path, params=request.params, headers=headers, body=data, seconds=seconds,
                    largest=request.largest,
                )  # fmt: skip
            except TRANSPORT_ERRORS:
                API_REQUESTS.labels(verb, plural, "error").inc()
                raise
        API_LATENCY.labels(verb, plural).observe(time.perf_counter() - started)
        API_REQUESTS.labels(verb, plural, str(answer.status)).inc()
        return answer

    async def _renew(self, generation: int) -> bool:
        """Read refused credentials again; False when there are no newer ones."""
        try:
            return await self.connection.reload(seen=generation)
        except ConnectionConfigError as error:
            log.warning("credentials cannot be renewed", error=str(error))
            return False
