"""Kubernetes Events: what Berth tells people about an object, readable with ``kubectl describe``.

Writing never delays the caller: notes go to a bounded queue and a few writers drain it. The same note
about the same object is counted in the Event's series instead of being written again, at intervals
that double, so that a pod which stays pending for a day leaves a handful of writes.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog
from cachetools import TTLCache

from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
from berth.kube.metrics import EVENTS_DROPPED
from berth.kube.objects import ObjectMeta
from berth.kube.resources import EVENTS

log = structlog.get_logger(__name__)

NOTE_LIMIT = 1024
"""events.k8s.io refuses longer notes."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The object that an Event is about."""

    api_version: str
    """e.g. ``v1`` or ``appgroup.diktyo.x-k8s.io/v1alpha1``"""
    kind: str
    """e.g. ``Pod``"""
    namespace: str
    """empty for kinds outside namespaces"""
    name: str
    """metadata.name"""
    uid: str
    """metadata.uid"""

    @classmethod
    def of(cls, metadata: ObjectMeta, *, kind: str, api_version: str = "v1") -> Reference:
        """Reference to an object by its metadata."""
        return cls(api_version, kind, metadata.namespace, metadata.name, metadata.uid)


@dataclass(frozen=True, slots=True)
class Note:
    """One thing to say."""

    regarding: Reference
    """the object it is about"""
    reason: str
    """one CamelCase word for machines, e.g. FailedScheduling"""
    message: str
    """a sentence for people; cut at 1024 characters"""
    action: str
    """what was being done, e.g. Binding"""
    warning: bool = False
    """True for type Warning, False for Normal"""


@dataclass(slots=True)
class _Series:
    """How often a note came since it was first written."""

    event_name: str
    count: int
    next_write: float
    interval: float


class EventRecorder:
    """Writes Events in the background."""

    def __init__(
        self, client: ApiClient, *, controller: str, instance: str, capacity: int = 10_000, writers: int = 4
    ) -> None:
        """Prepare.

        Args:
            client: open API client.
            controller: reporting controller, e.g. ``berth.dev/placement``.
            instance: name of this process.
            capacity: notes that may wait; more are dropped and counted in berth_events_dropped_total.
            writers: concurrent requests.
        """
        self._client = client
        self._controller = controller
        self._instance = instance
        self._queue: asyncio.Queue[tuple[Note, _Series | None]] = asyncio.Queue(maxsize=capacity)
        self._writers = writers
        self._series: TTLCache[tuple[str, str, str], _Series] = TTLCache(maxsize=20_000, ttl=3600)

    def record(self, note: Note) -> None:
        """Queue a note; never blocks and never raises."""
        message = note.message if len(note.message) <= NOTE_LIMIT else note.message[: NOTE_LIMIT - 1] + "…"
        note = Note(note.regarding, note.reason, message, note.action, note.warning)
        key = (note.regarding.uid, note.reason, message)
        series = self._series.get(key)
        now = time.monotonic()
        if series is not None:
            series.count += 1
            if now < series.next_write:
                return
            series.interval *= 2
            series.next_write = now + series.interval
            item: tuple[Note, _Series | None] = (note, series)
        else:
            self._series[key] = _Series(self._name(note), count=1, next_write=now + 30.0, interval=30.0)
            item = (note, None)
        try:
            self._queue.put_nowait(item)
        except asyncio.QueueFull:
            EVENTS_DROPPED.labels("queue_full").inc()

    async def run(self) -> None:
        """Write until cancelled; then what still waits is written for at most two seconds."""
        tasks = [asyncio.create_task(self._drain()) for _ in range(self._writers)]
        try:
            await asyncio.gather(*tasks)
        finally:
            try:
                async with asyncio.timeout(2.0):
                    await self._queue.join()
            except TimeoutError:
                EVENTS_DROPPED.labels("shutdown").inc(self._queue.qsize())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _drain(self) -> None:
        while True:
            note, series = await self._queue.get()
            try:
                await self._write(note, series)
            except ApiError as error:
                # 404: the namespace is gone, 403: it is being deleted; both are ordinary at an object's end.
                if error.status not in (403, 404, 409):
                    log.warning("event refused", reason=note.reason, error=str(error))
                EVENTS_DROPPED.labels("refused").inc()
            except TRANSPORT_ERRORS:
                EVENTS_DROPPED.labels("unreachable").inc()
            finally:
                self._queue.task_done()

    async def _write(self, note: Note, series: _Series | None) -> None:
        namespace = note.regarding.namespace or "default"
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if series is not None:
            patch = {"series": {"count": max(2, series.count), "lastObservedTime": now}}
            try:
                await self._client.merge_patch(EVENTS, series.event_name, patch, namespace=namespace)
                return
            except ApiError as error:
                if not error.not_found:
                    raise
                # The Event has run out in the meantime: write it anew.
        name = series.event_name if series is not None else self._name(note)
        await self._client.create(
            EVENTS, self._body(note, name=name, namespace=namespace, now=now), namespace=namespace
        )

    def _body(self, note: Note, *, name: str, namespace: str, now: str) -> dict[str, Any]:
        regarding = {
            "apiVersion": note.regarding.api_version,
            "kind": note.regarding.kind,
            "name": note.regarding.name,
            "uid": note.regarding.uid,
        }
        if note.regarding.namespace:
            regarding["namespace"] = note.regarding.namespace
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": now,
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": note.action,
            "reason": note.reason,
            "note": note.message,
            "type": "Warning" if note.warning else "Normal",
            "regarding": regarding,
        }

    def _name(self, note: Note) -> str:
        """Stable per object, reason, message and process, so that a repeated write meets its own Event."""
        text = "\0".join((note.regarding.uid, note.reason, note.message, self._instance))
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        return f"{note.regarding.name[:200]}.{digest}"
