"""The appgroup controller: what triggers it, and how it starts.

AppGroups arrive through kopf, pods through a list+watch store; both put keys into one work queue, whose
workers bring the status of one AppGroup at a time up to date.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import structlog

from berth.api.labels import LABEL_APPGROUP
from berth.kube.client import TRANSPORT_ERRORS, backoff
from berth.kube.errors import ApiError
from berth.kube.objects import ObjectMeta
from berth.kube.reflector import Reflector
from berth.kube.resources import APP_GROUPS, Resource
from berth.network.groups import GroupKey
from berth.runtime.component import ComponentContext, run_together
from berth.runtime.operator import Operator
from berth.runtime.settings import ComponentSettings
from berth.runtime.workqueue import WorkQueue
from controllers.appgroup import metrics
from controllers.appgroup.pods import GroupPod, PodIndex
from controllers.appgroup.reconciler import Reconciler
from controllers.appgroup.store import AppGroupStore, Change, key_of, version_of

log = structlog.get_logger(__name__)

POD_DELAY: Final = 0.15
"""Seconds for which pod changes of a group are gathered into one status."""
WORKERS: Final = 8
"""AppGroups worked on at once."""
ECHO_LIMIT: Final = 120.0
"""Seconds that an echo may stay away: longer than kopf needs to notice a dead watch (70 s) and to begin anew."""
AUDIT_INTERVAL: Final = 300.0
"""Seconds between two comparisons of the store with a list."""


class _Metadata(msgspec.Struct, gc=False):
    """An object of which only the metadata is decoded."""

    metadata: ObjectMeta


GROUP_PODS: Final = Resource("", "v1", "pods", "Pod", GroupPod)
"""Pods, decoded to the few fields that matter here."""
_AUDIT: Final = Resource(APP_GROUPS.group, APP_GROUPS.version, APP_GROUPS.plural, APP_GROUPS.kind, _Metadata)


class AppGroupController:
    """Orders AppGroups and reports on their pods."""

    name = "appgroup"
    Settings = ComponentSettings

    def __init__(self, context: ComponentContext, _settings: ComponentSettings) -> None:
        """Prepare without I/O."""
        self._context = context
        self._store = AppGroupStore()
        self._pods = PodIndex()
        self._queue: WorkQueue[GroupKey] = WorkQueue()
        self._reconciler = Reconciler(
            client=context.client, recorder=context.recorder, store=self._store, pods=self._pods
        )
        self._reflector: Reflector[GroupPod] = Reflector(context.client, GROUP_PODS, label_selector=LABEL_APPGROUP)
        self._reflector.add_handler(self._on_pod)
        self._operator = Operator(context, name=self.name)
        self._operator.on_event(APP_GROUPS, self._on_appgroup)
        self._delivered = False

    async def run(self) -> None:
        """Work until cancelled."""
        self._add_checks()
        await run_together(self._reflector.run(), self._operator.run(), self._work(), self._audit())

    def _add_checks(self) -> None:
        checks = self._context.checks
        self._context.watch("pods of appgroups", self._reflector)
        checks.add_health("echo of appgroups", self._echo_check)
        checks.add_ready("delivery of appgroups", lambda: None if self._delivered else "first list not delivered")
        metrics.QUEUE_DEPTH.set_function(lambda: len(self._queue))
        metrics.APP_GROUPS.set_function(lambda: len(self._store))
        metrics.PODS.set_function(lambda: len(self._pods))

    def _on_appgroup(self, event_type: str | None, document: Mapping[str, Any]) -> None:
        change = self._store.observe(event_type, document)
        if change is Change.NOTHING:
            return
        key = key_of(document)
        if change is Change.SPEC:
            self._reconciler.spec_seen(key)
        self._queue.add(key)

    def _on_pod(self, old: GroupPod | None, new: GroupPod | None) -> None:
        changed: set[GroupKey] = set()
        if new is not None:
            changed.update(self._pods.update(new))
        elif old is not None:
            changed.update(self._pods.remove(old.metadata))
        for key in changed:
            if key in self._store:
                self._queue.add(key, delay=POD_DELAY)

    async def _work(self) -> None:
        # A status computed before the first list of pods would report none of them as running.
        await self._reflector.synced.wait()
        await self._queue.run(self._reconciler.reconcile, workers=WORKERS)

    async def _audit(self) -> None:
        """Wait until kopf has delivered its first list, then look from time to time for what its watch lost."""
        attempt = 0
        while True:
            try:
                listed, version = await self._list()
            except (ApiError, *TRANSPORT_ERRORS) as error:
                # The operator says so when the kind is missing or may not be listed.
                log.debug("AppGroups could not be listed for comparison", error=str(error) or repr(error))
                await asyncio.sleep(backoff(attempt, base=0.5, cap=10.0))
                attempt += 1
                continue
            if not self._delivered and self._store.missing(listed):
                await asyncio.sleep(backoff(attempt, base=0.1, cap=1.0))
                attempt += 1
                continue
            attempt = 0
            self._delivered = True
            for key in self._store.reconcile_list(listed, list_version=version, now=time.monotonic()):
                log.info("AppGroup vanished without a watch event", appgroup=str(key))
                self._queue.add(key)
            await asyncio.sleep(AUDIT_INTERVAL)

    async def _list(self) -> tuple[dict[GroupKey, int], int]:
        listed: dict[GroupKey, int] = {}
        version = -1
        decoder = msgspec.json.Decoder(_Metadata)
        async for page in self._context.client.list_pages(_AUDIT):
            version = version_of(page.metadata.resource_version)
            for raw in page.items or ():
                metadata = decoder.decode(raw).metadata
                listed[GroupKey(metadata.namespace, metadata.name)] = version_of(metadata.resource_version)
        return listed, version

    def _echo_check(self) -> str | None:
        oldest = self._store.oldest_echo(now=time.monotonic())
        metrics.ECHO_AGE.set(oldest[1] if oldest is not None else 0.0)
        if oldest is None or oldest[1] < ECHO_LIMIT:
            return None
        return f"AppGroup {oldest[0]} has changed, but the watch has not shown it for {oldest[1]:.0f} s"
