"""What the benchmark's own watches see of the pods and of their Events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from berth.kube.client import ApiClient
from berth.kube.meta import ObjectMeta
from berth.kube.objects import Pod
from berth.kube.reflector import Reflector
from berth.kube.resources import EVENTS, PODS, Resource
from hack.harness.observe import PodLog

SILENCE = 3.0
"""Seconds without an Event after which no more are expected."""


class Regarding(msgspec.Struct):
    """The object that an Event is about."""

    uid: str = ""


class ScheduledEvent(msgspec.Struct):
    """What is read of an Event."""

    metadata: ObjectMeta
    regarding: Regarding = msgspec.field(default_factory=Regarding)


_EVENTS: Resource[ScheduledEvent] = Resource(EVENTS.group, EVENTS.version, EVENTS.plural, EVENTS.kind, ScheduledEvent)


class StuckError(Exception):
    """Nothing happened any more before all was done."""


class Observer:
    """Times of creations, bindings and Events, by pod uid."""

    def __init__(self, patience: float) -> None:
        """Start empty; `patience` is how many seconds may pass without news until one waits no longer."""
        self.pods = PodLog()
        self.told: dict[str, float] = {}
        """when the pod's Event Scheduled appeared"""
        self.attempted: set[str] = set()
        """pods with a condition PodScheduled"""
        self._patience = patience
        self._news = 0.0
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def following(self, client: ApiClient) -> AsyncIterator[None]:
        """Watch inside the block."""
        pods: Reflector[Pod] = Reflector(client, PODS)
        told = Reflector(client, _EVENTS, field_selector="reason=Scheduled")
        pods.add_handler(self._pod)
        told.add_handler(self._event)
        watches: tuple[Reflector[Any], ...] = (pods, told)
        for watch in watches:
            watch.add_batch_handler(self._changed.set)
        tasks = [asyncio.create_task(watch.run()) for watch in watches]
        try:
            for watch in watches:
                await watch.synced.wait()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        self.pods.note(old, new)
        if new is None:
            return
        uid = new.metadata.uid
        if new.spec.node_name and not (old is not None and old.spec.node_name):
            self._news = time.monotonic()
        if uid not in self.attempted and any(c.type == "PodScheduled" for c in new.status.conditions):
            self.attempted.add(uid)
            self._news = time.monotonic()

    def _event(self, _old: ScheduledEvent | None, new: ScheduledEvent | None) -> None:
        if new is not None:
            self.told.setdefault(new.regarding.uid, time.monotonic())

    async def all_bound(self, uids: Collection[str]) -> None:
        """Wait until these pods have a node.

        Raises:
            StuckError: some have none, and no pod got one for longer than the patience.
        """
        await self._until(lambda: [uid for uid in uids if uid not in self.pods.bound], "without a node")

    async def all_attempted(self, uids: Collection[str]) -> None:
        """Wait until these pods have been looked at.

        Raises:
            StuckError: as for :meth:`all_bound`.
        """
        await self._until(
            lambda: [uid for uid in uids if uid not in self.attempted and uid not in self.pods.bound], "never looked at"
        )

    async def _until(self, missing: Callable[[], list[str]], what: str) -> None:
        self._news = time.monotonic()
        while left := missing():
            if time.monotonic() - self._news > self._patience:
                raise StuckError(f"{len(left)} pods {what}, such as {self._example(left[0])}")
            await self._wait()

    def _example(self, uid: str) -> str:
        pod = self.pods.pods.get(uid)
        if pod is None:
            return f"one of uid {uid} that was never seen"
        said = [f"{c.reason}: {c.message}" for c in pod.status.conditions if c.type == "PodScheduled"]
        return f"{pod.key} ({said[0] if said else 'no condition'})"

    async def _wait(self) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(0.5):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def all_told(self, uids: Iterable[str], *, silence: float = SILENCE) -> None:
        """Wait for the Events of those that have a node, until none came for `silence` seconds: some may be dropped."""
        uids = [uid for uid in uids if uid in self.pods.bound]
        known, since = -1, time.monotonic()
        while any(uid not in self.told for uid in uids) and time.monotonic() - since < silence:
            if len(self.told) != known:
                known, since = len(self.told), time.monotonic()
            await self._wait()
