"""Kubernetes Events: what Berth tells people about an object, readable with ``kubectl describe``.

Writing never delays the caller: notes go to a bounded queue and a few writers drain it. The same note
about the same object is counted in the Event's series instead of being written again, at intervals
that double up to half an hour: a pod which stays pending for a day costs some fifty writes, and its
Event never runs out meanwhile (the API server keeps Events for an hour after the last write).
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import structlog
from cachetools import TTLCache

from berth.api.text import shortened
from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
from berth.kube.metrics import EVENTS_DROPPED
from berth.kube.objects import ObjectMeta
from berth.kube.resources import EVENTS

log = structlog.get_logger(__name__)

NOTE_LIMIT = 1024
"""Bytes; events.k8s.io refuses longer notes."""
NAME_LIMIT = 128
"""Bytes of reportingInstance, reason and action that events.k8s.io accepts."""
FIRST_INTERVAL = 30.0
"""Seconds before a repeated note is written for the first time."""
LONGEST_INTERVAL = 1800.0
"""Seconds between writes of a repeated note at most, half of the time that an Event lives."""
CAPACITY = 10_000
"""Notes that may wait; more are dropped and counted in berth_events_dropped_total."""
WRITERS = 4
"""Concurrent requests."""


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

    @classmethod
    def to(cls, document: Mapping[str, Any]) -> Reference:
        """Reference to an object as the API server shows it."""
        metadata = document["metadata"]
        return cls(
            document["apiVersion"], document["kind"], metadata.get("namespace", ""), metadata["name"], metadata["uid"]
        )


@dataclass(frozen=True, slots=True)
class Note:
    """One thing to say."""

    regarding: Reference
    """the object it is about"""
    reason: str
    """one CamelCase word for machines, e.g. FailedScheduling"""
    message: str
    """a sentence for people; cut at 1024 bytes of UTF-8"""
    action: str
    """what was being done, e.g. Binding"""
    warning: bool = False
    """True for type Warning, False for Normal"""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """the same for programs, on the Event"""


@dataclass(slots=True)
class Series:
    """How often a note came since it was first recorded, and when that is worth a write."""

    event_name: str
    """metadata.name of the Event"""
    next_write: float
    """time of the next write on the clock that :meth:`due` is asked with, seconds"""
    count: int = 1
    """occurrences"""
    interval: float = FIRST_INTERVAL
    """seconds from one write to the next"""
    written: bool = False
    """True once the Event is known to exist"""

    def due(self, now: float) -> bool:
        """Count one more occurrence; True if the Event should be written now."""
        self.count += 1
        if now < self.next_write:
            return False
        self.interval = min(self.interval * 2, LONGEST_INTERVAL)
        self.next_write = now + self.interval
        return True


class EventRecorder:
    """Writes Events in the background."""

    def __init__(self, client: ApiClient, *, controller: str, instance: str) -> None:
        """Prepare.

        Args:
            client: open API client.
            controller: reporting controller, e.g. ``berth.dev/placement``.
            instance: name of this process.
        """
        self._client = client
        self._controller = controller
        self._instance = shortened(instance, NAME_LIMIT)
        self._queue: asyncio.Queue[tuple[Note, Series]] = asyncio.Queue(maxsize=CAPACITY)
        self._series: TTLCache[tuple[str, str, str], Series] = TTLCache(maxsize=20_000, ttl=2 * LONGEST_INTERVAL)

    def record(self, note: Note) -> None:
        """Queue a note; never blocks and never raises."""
        note = replace(note, message=shortened(note.message, NOTE_LIMIT))
        key = (note.regarding.uid, note.reason, note.message)
        now = time.monotonic()
        series = self._series.get(key)
        if series is None:
            series = Series(self._name(note), next_write=now + FIRST_INTERVAL)
        elif not series.due(now):
            return
        try:
            self._queue.put_nowait((note, series))
        except asyncio.QueueFull:
            EVENTS_DROPPED.labels("queue_full").inc()
            series.next_write = now  # the next occurrence may have more luck
        # Stored again at every write, which begins its time to live anew.
        self._series[key] = series

    async def run(self) -> None:
        """Write until cancelled; then what still waits is written for at most two seconds."""
        tasks = [asyncio.create_task(self._drain()) for _ in range(WRITERS)]
        try:
            # Not gather: that would cancel the writers together with us, and what waits would be lost.
            await asyncio.wait(tasks)
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
                if error.status not in (403, 404):
                    log.warning("event refused", reason=note.reason, error=str(error))
                EVENTS_DROPPED.labels("refused").inc()
            except TRANSPORT_ERRORS as error:
                log.info("event not written", reason=note.reason, error=str(error) or repr(error))
                EVENTS_DROPPED.labels("unreachable").inc()
            except Exception:
                # A note that cannot even be encoded must not take the writer with it.
                log.exception("event not written", reason=note.reason)
                EVENTS_DROPPED.labels("invalid").inc()
            finally:
                self._queue.task_done()

    async def _write(self, note: Note, series: Series) -> None:
        namespace = note.regarding.namespace or "default"
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if series.written and await self._count(series, namespace, now):
            return
        # New, never arrived, or run out in the meantime.
        body = self._body(note, name=series.event_name, namespace=namespace, now=now)
        try:
            await self._client.create(EVENTS, body, namespace=namespace, repeat=True)
        except ApiError as error:
            # Names are stable, so a conflict is our own Event: its answer was lost, or it is older than our memory.
            if not error.conflict:
                raise
        series.written = True

    async def _count(self, series: Series, namespace: str, now: str) -> bool:
        """Write how often the note came; False if its Event is not there."""
        patch = {"series": {"count": series.count, "lastObservedTime": now}}
        try:
            await self._client.merge_patch(EVENTS, series.event_name, patch, namespace=namespace)
        except ApiError as error:
            if not error.not_found:
                raise
            return False
        return True

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
            "metadata": {"name": name, "namespace": namespace, "annotations": dict(note.annotations)},
            "eventTime": now,
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": shortened(note.action, NAME_LIMIT),
            "reason": shortened(note.reason, NAME_LIMIT),
            "note": note.message,
            "type": "Warning" if note.warning else "Normal",
            "regarding": regarding,
        }

    def _name(self, note: Note) -> str:
        """Stable per object, reason, message and process, so that a repeated write meets its own Event."""
        text = "\0".join((note.regarding.uid, note.reason, note.message, self._instance))
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        return f"{note.regarding.name[:200].rstrip('-.')}.{digest}"
