"""Kubernetes Events: what Berth tells people about an object, readable with ``kubectl describe``.

Writing never delays the caller: notes go to a bounded queue and a few writers drain it, in turns by namespace. Notes of
one object, reason and action are one series, whatever their texts; :mod:`berth.kube.event_series` says which of them
are written.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import monotonic
from typing import Any

import structlog

from berth.api.text import on_one_line, shortened
from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
from berth.kube.event_series import Series, SeriesMemory
from berth.kube.fair_queue import FairQueue
from berth.kube.metrics import EVENTS_DROPPED
from berth.kube.objects import ObjectMeta
from berth.kube.precedence import Precedence
from berth.kube.resources import EVENTS

log = structlog.get_logger(__name__)

NOTE_LIMIT = 1024
"""Bytes; events.k8s.io refuses longer notes."""
NAME_LIMIT = 128
"""Bytes of reportingInstance, reason and action that events.k8s.io accepts."""
CAPACITY = 10_000
"""Notes that may wait; of more, the oldest of the namespace with most are dropped, counted in
berth_events_dropped_total."""
WRITERS = 24
"""Concurrent requests, up to three quarters of them in one namespace. A write waits for etcd to store it, side by side
with others: with four at a time, Events came long after what they tell."""
GIVE_WAY_SECONDS = 3.0
"""Seconds from when it was told for which an Event gives way to other writes: pods are to be bound first."""
FORBIDDEN_SECONDS = 60.0
"""Seconds between two lines of the log about Events that may not be written: without the right, none may."""
SHUTDOWN_SECONDS = 2.0
"""Seconds for which what still waits is written when the process ends."""


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
    """a sentence for people; written on one line, and cut at 1024 bytes of UTF-8"""
    action: str
    """what was being done, e.g. Binding"""
    warning: bool = False
    """True for type Warning, False for Normal"""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """the same for programs, on the Event"""


class EventRecorder:
    """Writes Events in the background."""

    def __init__(self, client: ApiClient, *, controller: str, instance: str, gives_way_to: Precedence) -> None:
        """Prepare.

        Args:
            client: open API client.
            controller: reporting controller, e.g. ``berth.dev/placement``.
            instance: name of this process.
            gives_way_to: writes that are to go first.
        """
        self._client = client
        self._controller = controller
        self._instance = shortened(instance, NAME_LIMIT)
        self._queue: FairQueue[tuple[Note, Series, float]] = FairQueue(WRITERS, capacity=CAPACITY)
        self._series = SeriesMemory()
        self._others = gives_way_to
        self._told_forbidden = -FORBIDDEN_SECONDS

    def record(self, note: Note) -> None:
        """Queue a note; never blocks and never raises."""
        note = replace(note, message=shortened(on_one_line(note.message), NOTE_LIMIT))
        key = (note.regarding.uid, note.reason, note.action)
        now = monotonic()
        series = self._series.due(key, self._name(note), now)
        if series is None:
            return
        dropped = self._queue.put(note.regarding.namespace, (note, series, now))
        if dropped is not None:
            EVENTS_DROPPED.labels("queue_full").inc()
            _, series, _ = dropped
            series.next_write = now  # the next occurrence may have more luck

    async def run(self) -> None:
        """Write until cancelled; then what still waits is written for at most :data:`SHUTDOWN_SECONDS`."""
        tasks = [asyncio.create_task(self._drain()) for _ in range(WRITERS)]
        try:
            # Not gather: that would cancel the writers together with us, and what waits would be lost.
            await asyncio.wait(tasks)
        finally:
            try:
                async with asyncio.timeout(SHUTDOWN_SECONDS):
                    await self._queue.join()
            except TimeoutError:
                EVENTS_DROPPED.labels("shutdown").inc(len(self._queue))
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _drain(self) -> None:
        while True:
            turn = await self._queue.get()
            note, series, told = turn.item
            try:
                await self._others.give_way(told + GIVE_WAY_SECONDS - monotonic())
                async with self._queue.patience(turn):
                    await self._write(note, series)
            except ApiError as error:
                self._tell(note, error)
                EVENTS_DROPPED.labels("refused").inc()
            except TRANSPORT_ERRORS as error:
                log.info("event not written", reason=note.reason, error=str(error) or repr(error))
                EVENTS_DROPPED.labels("unreachable").inc()
            except Exception:
                # A note that cannot even be encoded must not take the writer with it.
                log.exception("event not written", reason=note.reason)
                EVENTS_DROPPED.labels("invalid").inc()
            finally:
                self._queue.done(turn)

    def _tell(self, note: Note, error: ApiError) -> None:
        """Log a refusal, unless the namespace is gone or being deleted: that is ordinary at an object's end."""
        if error.not_found or (error.status == 403 and "because it is being terminated" in error.message):
            return
        if error.status == 403:
            now = monotonic()
            if now - self._told_forbidden < FORBIDDEN_SECONDS:
                return
            self._told_forbidden = now
        log.warning("event refused", reason=note.reason, error=str(error))

    async def _write(self, note: Note, series: Series) -> None:
        namespace, name = note.regarding.namespace or "default", self._name(note)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        # Another text may have come since, while this one waited in the queue.
        if series.event_name == name and series.written and await self._count(series, name, namespace, now):
            return
        # New, never arrived, or run out in the meantime.
        body = self._body(note, name=name, namespace=namespace, now=now)
        try:
            await self._client.create(EVENTS, body, namespace=namespace, repeat=True)
        except ApiError as error:
            if not error.conflict:
                raise
            # Names are stable, so this is our own Event: its answer was lost, its text was another's turn in between,
            # or it is older than our memory.
            if series.count > 1:
                await self._count(series, name, namespace, now)
        if series.event_name == name:
            series.written = True

    async def _count(self, series: Series, name: str, namespace: str, now: str) -> bool:
        """Write how often the note came; False if its Event is not there."""
        patch = {"series": {"count": series.count, "lastObservedTime": now}}
        try:
            await self._client.merge_patch(EVENTS, name, patch, namespace=namespace)
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
        """Stable per object, reason, action, text and process, so that a repeated write meets its own Event."""
        text = "\0".join((note.regarding.uid, note.reason, note.action, note.message, self._instance))
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        return f"{note.regarding.name[:200].rstrip('-.')}.{digest}"
