"""A local copy of a collection that follows the API server: list, then watch, then list again when needed.

States: listing -> following -> (connection ends) following from the last version -> (410 Gone) listing.
A relist is compared with the copy, object by object, so that those deleted while the watch was broken are
reported as deleted; that is what operator frameworks commonly miss. Listing also begins anew when the API server has
gone back behind the last version, as to a backup of etcd, or a watch says nothing at all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, Generic, TypedDict, TypeVar, cast

import aiohttp
import msgspec
import structlog

from berth.kube.backoff import PAUSE_SECONDS, backoff, wait_after
from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.decoding import ObjectDecoder, at_any_depth
from berth.kube.errors import ApiError, error_from_event
from berth.kube.history import went_back
from berth.kube.in_turns import in_turns
from berth.kube.interning import PodInterning
from berth.kube.jitter import jitter
from berth.kube.memory import collection_paused
from berth.kube.meta import HasMetadata, equal, object_key
from berth.kube.metrics import CACHED_OBJECTS, HANDLER_FAILURES, UNREADABLE, WATCH_AGE, WATCH_EVENTS, WATCH_RESTARTS
from berth.kube.objects import Pod
from berth.kube.resources import Resource, version_number
from berth.kube.watch_lines import EVENT_DECODER, IDENTITY_DECODER, key_of, named

log = structlog.get_logger(__name__)

CHANGES = ("ADDED", "MODIFIED", "DELETED")
"""Types of watch events that carry an object."""
MAX_FRUITLESS = 3
"""Watches in a row that may break off before a line was whole; after one more everything is listed, which may work."""

T = TypeVar("T", bound=HasMetadata)

Handler = Callable[[T | None, T | None], None]
"""Called in the event loop for every change, in order, with the object before and after: None before one that is new,
None after one that is gone. What is gone is handed over as it was last."""


class _Selection(TypedDict):
    namespace: str | None
    label_selector: str | None
    field_selector: str | None


_running: dict[str, list[Reflector[Any]]] = {}
"""Running reflectors by resource, for the gauges: one process may follow a resource in several namespaces."""


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
        silence_seconds: float = 90.0,
    ) -> None:
        """Prepare; nothing is read before :meth:`run`.

        Args:
            client: open API client.
            resource: what to follow; its type must have `metadata`.
            namespace: only this namespace.
            label_selector: only objects that match.
            field_selector: only objects that match.
            stale_after: seconds without a word from the server after which :attr:`healthy` is False.
            silence_seconds: a watch that says nothing for so long is given up; bookmarks come about once a minute.
        """
        self.resource = resource
        self.objects: dict[str, T] = {}
        self.synced = asyncio.Event()
        self.tried = asyncio.Event()
        self.refusal: ApiError | None = None
        """the API server's last answer, if it lets nobody list or watch this, as where a right is missing"""
        self.refused_seconds = PAUSE_SECONDS
        """seconds from one attempt to the next at most while there is a refusal"""
        self._client = client
        self._selection = _Selection(namespace=namespace, label_selector=label_selector, field_selector=field_selector)
        self._stale_after = stale_after
        self._silence_seconds = silence_seconds
        self._decoder = ObjectDecoder(resource.type)
        # One pass over a line is half as fast again as finding the object first and then decoding it.
        event_type = msgspec.defstruct("WatchEvent", [("type", str), ("object", resource.type)], gc=False)
        self._event_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(event_type)
        self._interning = PodInterning() if issubclass(resource.type, Pod) else None
        self._handlers: list[Handler[T]] = []
        self._batch_handlers: list[Callable[[], None]] = []
        self._version = ""
        self._broken = False
        self._fruitless = 0
        self.failures = 0
        """attempts to list or follow that failed, one after the other"""
        self._last_contact: float | None = None
        self._counts: dict[str, int] = {}

    def add_handler(self, handler: Handler[T]) -> None:
        """Have `handler` called for every change from now on; before :meth:`run` it sees everything.

        A handler that raises is logged and counted in berth_handler_failures_total; the others are called all the same.
        """
        self._handlers.append(handler)

    def add_batch_handler(self, handler: Callable[[], None]) -> None:
        """Have `handler` called once after each batch of changes, with the same care for one that raises."""
        self._batch_handlers.append(handler)

    @property
    def age(self) -> float:
        """Seconds since the server last answered or sent anything; 0 while :meth:`run` does not run."""
        return 0.0 if self._last_contact is None else time.monotonic() - self._last_contact

    @property
    def healthy(self) -> bool:
        """False once the server has been silent for too long: the copy can no longer be trusted."""
        return self.age < self._stale_after

    def offer(self, item: T) -> bool:
        """Take in an object that was read by itself, if the watch has yet to show it; return whether it was taken.

        One from which the watch is on or that it is beyond is known, or has been deleted since.
        """
        key, version = object_key(item.metadata), version_number(item.metadata.resource_version)
        if not self._version or key in self.objects or version <= version_number(self._version):
            return False
        if self._interning is not None:
            self._interning(cast("Pod", item))
        self._change(key, None, item)
        self._end_batch()
        return True

    async def run(self) -> None:
        """Follow for ever; ends only by cancellation."""
        self._last_contact = time.monotonic()
        self._register()
        try:
            while True:
                await self._step()
        finally:
            self._last_contact = None
            _running[self.resource.plural].remove(self)

    def _register(self) -> None:
        plural = self.resource.plural
        running = _running.setdefault(plural, [])
        running.append(self)
        WATCH_AGE.labels(plural).set_function(lambda: max((r.age for r in running), default=0.0))
        CACHED_OBJECTS.labels(plural).set_function(lambda: sum(len(r.objects) for r in running))

    async def _step(self) -> None:
        """List if need be, follow until the watch ends, and wait if it ended in trouble."""
        try:
            if self._broken and self._version:
                pages = self._client.list_pages(self.resource, **self._selection, limit=1)
                if self._fruitless > MAX_FRUITLESS or await went_back(pages, self._version):
                    self._version, self._fruitless = "", 0
            if not self._version:
                await self._list()
            self._broken = False
            await self._follow()
        except ApiError as error:
            self._fruitless = 0
            self.refusal = None if error.retryable or error.expired else error
            if error.expired or (self.failures >= 3 and error.status != 429):
                # A server that answers and yet refuses the watch again and again may not know the version. One that is
                # overloaded knows it, and a list is the last thing that it needs.
                self._version = ""
            if error.expired and self.failures == 0:
                # The first time this is the ordinary end of an old version; when repeated it is trouble.
                self.failures = 1
                WATCH_RESTARTS.labels(self.resource.plural, "expired").inc()
                log.info("watch expired, listing again", resource=self.resource.plural, reason=error.reason)
                return
            await self._pause(error)
        except TRANSPORT_ERRORS as error:
            self._broken = True
            await self._pause(error)
        except ValueError as error:  # what msgspec raises for bytes that are not the API's JSON
            self._version = ""
            await self._pause(error)

    async def _pause(self, error: Exception) -> None:
        WATCH_RESTARTS.labels(self.resource.plural, "error").inc()
        wait = wait_after(error, self.failures, cap=self.refused_seconds if error is self.refusal else PAUSE_SECONDS)
        level = log.info if self.failures == 0 else log.warning
        hint = {"hint": "is the kind installed?"} if isinstance(error, ApiError) and error.not_found else {}
        level(
            "watch interrupted",
            resource=self.resource.plural,
            error=str(error) or repr(error),
            retry_in=round(wait, 2),
            **hint,
        )
        self.failures += 1
        self.tried.set()
        await asyncio.sleep(wait)

    async def _list(self) -> None:
        with collection_paused(active=not self.synced.is_set()):
            fresh: dict[str, T] = {}
            if self._interning is not None:
                self._interning = PodInterning()  # without what a list that was broken off has left
            version = ""
            pages = self._client.list_pages(self.resource, **self._selection)
            async with aclosing(pages):
                async for page in pages:
                    self._last_contact = time.monotonic()
                    version = page.metadata.resource_version
                    async for raw in in_turns(page.items or ()):
                        self._take(raw, fresh)
            self._replace(fresh)
            self._version = version
        self.synced.set()
        self.tried.set()

    def _take(self, raw: msgspec.Raw, fresh: dict[str, T]) -> None:
        """Add one object of a list to `fresh`; one that cannot be read stays as it was known."""
        try:
            item = named(self._decoder.decode(raw))
        except ValueError as error:
            key = self._unreadable(raw, error)
            if key in self.objects:
                fresh[key] = self.objects[key]
        else:
            if self._interning is not None:
                self._interning(cast("Pod", item))
            fresh[object_key(item.metadata)] = item

    def _unreadable(self, raw: msgspec.Raw, error: ValueError) -> str:
        """Report an object that does not decode (one odd object must not stop the rest); returns its key."""
        key = key_of(raw)
        UNREADABLE.labels(self.resource.plural).inc()
        log.error("object left out, it cannot be read", resource=self.resource.plural, object=key, error=str(error))
        return key

    def _replace(self, fresh: dict[str, T]) -> None:
        """Swap the copy for a fresh list and report the difference."""
        for key in [key for key in self.objects if key not in fresh]:
            self._change(key, self.objects[key], None)
        for key, item in fresh.items():
            known = self.objects.get(key)
            if known is None:
                self._change(key, None, item)
            elif known.metadata.uid != item.metadata.uid:
                self._change(key, known, None)
                self._change(key, None, item)
            elif not equal(known, item):
                self._change(key, known, item)
        self._end_batch()

    async def _follow(self) -> None:
        plural = self.resource.plural
        seconds = round(jitter(290, 590))
        chunks = self._client.watch_chunks(
            self.resource,
            resource_version=self._version,
            **self._selection,
            timeout_seconds=seconds,
            silence_seconds=self._silence_seconds,
            begun=self._begun,
        )
        started = time.monotonic()
        self._fruitless += 1
        try:
            async with aclosing(chunks):
                async for lines in chunks:
                    self._last_contact = time.monotonic()
                    try:
                        for line in lines:
                            if line:
                                self._apply(line)
                    finally:
                        self._end_batch()
                    self._fruitless = 0
                    if time.monotonic() - started >= 1.0:  # a server that lets go at once is not to be hammered
                        self.failures = 0
        except aiohttp.ConnectionTimeoutError:
            raise  # a server that was not reached says nothing about the version
        except TimeoutError:
            if self._fruitless:
                self._version = ""
            raise
        WATCH_RESTARTS.labels(plural, "ended").inc()
        self._broken = time.monotonic() - started < seconds - 1  # as by an API server that stops
        if time.monotonic() - started >= 1.0:
            self.failures = 0
        else:  # a server that ends every watch at once must not be hammered
            self.failures += 1
            await asyncio.sleep(backoff(self.failures))

    def _begun(self) -> None:
        self.refusal = None

    def _apply(self, line: bytes) -> None:
        """Take in one line of a watch."""
        at_any_depth(self._apply_line, line)

    def _apply_line(self, line: bytes) -> None:
        try:
            event = self._event_decoder.decode(line)
        except ValueError as error:
            self._apply_other(line, error)
            return
        if event.type not in CHANGES or not event.object.metadata.name:
            self._apply_other(line, ValueError(f"watch event of unknown type {event.type!r}"))
            return
        self._counts[event.type] = self._counts.get(event.type, 0) + 1
        self._apply_object(event.type, event.object)

    def _apply_object(self, kind: str, item: T) -> None:
        """Take in an object that was added, modified or deleted, unless a later one was taken in by :meth:`offer`."""
        if self._interning is not None and kind != "DELETED":
            self._interning(cast("Pod", item))
        key = object_key(item.metadata)
        known, version = self.objects.get(key), version_number(item.metadata.resource_version)
        if known is not None and 0 <= version < version_number(known.metadata.resource_version):
            pass  # a copy that went back would have pods planned by it
        elif kind == "DELETED":
            if known is not None:
                self._change(key, item if item.metadata.uid == known.metadata.uid else known, None)
        elif known is not None and known.metadata.uid != item.metadata.uid:
            self._change(key, known, None)
            self._change(key, None, item)
        else:
            self._change(key, known, item)
        self._version = item.metadata.resource_version

    def _apply_other(self, line: bytes, error: ValueError) -> None:
        """Take in a bookmark, an error, or an object that is read with care or cannot be read.

        Raises:
            ApiError: the server ends the watch, with the status that it gives; or its version went back, with status
                410, because what happened in between is unknown.
            ValueError: the line is no watch event.
        """
        event = EVENT_DECODER.decode(line)
        self._counts[event.type] = self._counts.get(event.type, 0) + 1
        if event.type == "ERROR":
            raise error_from_event(event.object)
        if event.type in CHANGES:
            try:
                item = named(self._decoder.decode(event.object))
            except ValueError as odd:
                error = odd
            else:
                self._apply_object(event.type, item)
                return
        version = IDENTITY_DECODER.decode(event.object).metadata.resource_version
        if event.type == "BOOKMARK":
            if 0 <= version_number(version) < version_number(self._version):
                message = f"the server is at version {version}, behind {self._version}"
                raise ApiError(status=410, reason="VersionWentBack", message=message)
        elif event.type in CHANGES:
            key = self._unreadable(event.object, error)
            if event.type == "DELETED" and key in self.objects:
                self._change(key, self.objects[key], None)
        else:
            raise error
        self._version = version or self._version

    def _change(self, key: str, old: T | None, new: T | None) -> None:
        if self._interning is not None and key in self.objects:
            self._interning.replaced(cast("Pod", self.objects[key]), cast("Pod | None", new))
        if new is None:
            del self.objects[key]
        else:
            self.objects[key] = new
        for handler in self._handlers:
            try:
                handler(old, new)
            except Exception:
                # One odd object must not stop the watch for all others.
                HANDLER_FAILURES.labels(self.resource.plural).inc()
                log.exception("handler failed", resource=self.resource.plural, object=key)

    def _end_batch(self) -> None:
        for kind, count in self._counts.items():
            WATCH_EVENTS.labels(self.resource.plural, kind).inc(count)
        self._counts.clear()
        for handler in self._batch_handlers:
            try:
                handler()
            except Exception:
                HANDLER_FAILURES.labels(self.resource.plural).inc()
                log.exception("batch handler failed", resource=self.resource.plural)
