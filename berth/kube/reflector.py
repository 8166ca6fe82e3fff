"""A local copy of a collection that follows the API server: list, then watch, then list again when needed.

States: listing -> following -> (connection ends) following from the last version -> (410 Gone) listing.
A relist is compared with the copy, so that objects deleted while the watch was broken are reported
as deleted; that is what operator frameworks commonly miss.
"""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Callable
from enum import Enum
from typing import Generic, Protocol, TypeVar

import msgspec
import structlog

from berth.kube.client import TRANSPORT_ERRORS, ApiClient, backoff
from berth.kube.errors import ApiError
from berth.kube.metrics import CACHED_OBJECTS, WATCH_AGE, WATCH_EVENTS, WATCH_RESTARTS
from berth.kube.objects import ObjectMeta
from berth.kube.resources import Resource

log = structlog.get_logger(__name__)


class ChangeType(Enum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class HasMetadata(Protocol):
    """Anything with Kubernetes metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """Name, namespace, uid and resourceVersion at least."""


T = TypeVar("T", bound=HasMetadata)

Handler = Callable[[ChangeType, T], None]
"""Called in the event loop for every change, in order, with the newest (for DELETED: last) object."""


class _WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _ErrorStatus(msgspec.Struct, rename="camel"):
    code: int = 0
    reason: str = ""
    message: str = ""


class _BookmarkObject(msgspec.Struct):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


_EVENT_DECODER = msgspec.json.Decoder(_WatchEvent)
_BOOKMARK_DECODER = msgspec.json.Decoder(_BookmarkObject)
_STATUS_DECODER = msgspec.json.Decoder(_ErrorStatus)


def object_key(metadata: ObjectMeta) -> str:
    """``namespace/name``, or the name alone outside namespaces."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


class Reflector(Generic[T]):
    """Keeps `objects` equal to a collection on the API server and tells handlers what changed."""

    def __init__(
        self,
        client: ApiClient,
        resource: Resource[T],
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        stale_after: float = 180.0,
    ) -> None:
        """Prepare; nothing is read before :meth:`run`.

        Args:
            client: open API client.
            resource: what to follow; its type must have `metadata`.
            namespace: only this namespace.
            label_selector: only objects that match.
            field_selector: only objects that match.
            stale_after: seconds without a word from the server after which :meth:`healthy` is False.
        """
        self.resource = resource
        self.objects: dict[str, T] = {}
        self.synced = asyncio.Event()
        self._client = client
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._stale_after = stale_after
        self._decoder = msgspec.json.Decoder(resource.type)
        self._handlers: list[Handler[T]] = []
        self._batch_handlers: list[Callable[[], None]] = []
        self._version = ""
        self._last_contact = time.monotonic()

    def add_handler(self, handler: Handler[T]) -> None:
        """Have `handler` called for every change from now on; before :meth:`run` it sees everything."""
        self._handlers.append(handler)

    def add_batch_handler(self, handler: Callable[[], None]) -> None:
        """Have `handler` called once after each batch of changes."""
        self._batch_handlers.append(handler)

    @property
    def age(self) -> float:
        """Seconds since the server last answered or sent anything."""
        return time.monotonic() - self._last_contact

    @property
    def healthy(self) -> bool:
        """False once the server has been silent for too long: the copy can no longer be trusted."""
        WATCH_AGE.labels(self.resource.plural).set(self.age)
        return self.age < self._stale_after

    async def run(self) -> None:
        """Follow for ever; ends only by cancellation."""
        failures = 0
        while True:
            try:
                if not self._version:
                    await self._list()
                failures = 0
                await self._follow()
            except ApiError as error:
                if error.expired:
                    WATCH_RESTARTS.labels(self.resource.plural, "expired").inc()
                    log.info("watch expired, listing again", resource=self.resource.plural)
                    self._version = ""
                    continue
                failures = await self._pause(failures, error)
            except TRANSPORT_ERRORS as error:
                failures = await self._pause(failures, error)
            except msgspec.DecodeError as error:
                self._version = ""
                failures = await self._pause(failures, error)

    async def _pause(self, failures: int, error: Exception) -> int:
        WATCH_RESTARTS.labels(self.resource.plural, "error").inc()
        wait = backoff(failures, base=0.1, cap=10.0)
        if isinstance(error, ApiError) and error.retry_after:
            wait = max(wait, error.retry_after)
        level = log.info if failures == 0 else log.warning
        level(
            "watch interrupted", resource=self.resource.plural, error=str(error) or repr(error), retry_in=round(wait, 2)
        )
        await asyncio.sleep(wait)
        return failures + 1

    async def _list(self) -> None:
        first = not self.synced.is_set()
        if first:
            gc.disable()  # a collection per few thousand new objects makes big first lists many times slower
        try:
            fresh: dict[str, T] = {}
            version = ""
            pages = self._client.list_pages(
                self.resource,
                namespace=self._namespace,
                label_selector=self._label_selector,
                field_selector=self._field_selector,
            )
            async for page in pages:
                self._last_contact = time.monotonic()
                version = page.metadata.resource_version
                for raw in page.items or ():
                    item = self._decoder.decode(raw)
                    fresh[object_key(item.metadata)] = item
            self._replace(fresh)
            self._version = version
        finally:
            if first:
                gc.enable()
        self.synced.set()

    def _replace(self, fresh: dict[str, T]) -> None:
        """Swap the copy for a fresh list and report the difference."""
        for key in [key for key in self.objects if key not in fresh]:
            self._change(ChangeType.DELETED, key, self.objects[key])
        for key, item in fresh.items():
            known = self.objects.get(key)
            if known is None:
                self._change(ChangeType.ADDED, key, item)
            elif known.metadata.uid != item.metadata.uid:
                self._change(ChangeType.DELETED, key, known)
                self._change(ChangeType.ADDED, key, item)
            elif known.metadata.resource_version != item.metadata.resource_version:
                self._change(ChangeType.MODIFIED, key, item)
        self._end_batch()

    async def _follow(self) -> None:
        chunks = self._client.watch_chunks(
            self.resource,
            resource_version=self._version,
            namespace=self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            timeout_seconds=random.randint(290, 590),  # noqa: S311 - spreads reconnects, not a secret
        )
        started = time.monotonic()
        async for lines in chunks:
            self._last_contact = time.monotonic()
            for line in lines:
                if line:
                    self._apply(line)
            self._end_batch()
        WATCH_RESTARTS.labels(self.resource.plural, "ended").inc()
        if time.monotonic() - started < 1.0:
            await asyncio.sleep(backoff(1))  # a server that ends every watch at once must not be hammered

    def _apply(self, line: bytes) -> None:
        event = _EVENT_DECODER.decode(line)
        WATCH_EVENTS.labels(self.resource.plural, event.type).inc()
        if event.type == "BOOKMARK":
            self._version = _BOOKMARK_DECODER.decode(event.object).metadata.resource_version
            return
        if event.type == "ERROR":
            status = _STATUS_DECODER.decode(event.object)
            # Any error inside the stream leaves gaps unknown, so the version is given up as after a 410.
            raise ApiError(status=410, reason=status.reason or "Error", message=status.message)
        item = self._decoder.decode(event.object)
        key = object_key(item.metadata)
        known = self.objects.get(key)
        if event.type == "DELETED":
            if known is not None:
                self._change(ChangeType.DELETED, key, item)
        elif known is None:
            self._change(ChangeType.ADDED, key, item)
        elif known.metadata.uid != item.metadata.uid:
            self._change(ChangeType.DELETED, key, known)
            self._change(ChangeType.ADDED, key, item)
        else:
            self._change(ChangeType.MODIFIED, key, item)
        self._version = item.metadata.resource_version

    def _change(self, change: ChangeType, key: str, item: T) -> None:
        if change is ChangeType.DELETED:
            del self.objects[key]
        else:
            self.objects[key] = item
        for handler in self._handlers:
            try:
                handler(change, item)
            except Exception:
                # One odd object must not stop the watch for all others.
                log.exception("handler failed", resource=self.resource.plural, object=key, change=change.value)

    def _end_batch(self) -> None:
        CACHED_OBJECTS.labels(self.resource.plural).set(len(self.objects))
        for handler in self._batch_handlers:
            handler()
