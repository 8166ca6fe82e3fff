"""From an AppGroup and its pods to its status on the API server."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from berth.api.appgroup import API_VERSION, KIND, AppGroupStatus
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.events import EventRecorder, Reference
from berth.kube.resources import APP_GROUPS
from berth.network.groups import GroupKey
from berth.runtime.seen_versions import SeenVersions
from controllers.appgroup import events, metrics
from controllers.appgroup.plan import plan_spec
from controllers.appgroup.pods import GroupPods
from controllers.appgroup.status import desired_status, read_status

FIELD_MANAGER: Final = "berth-appgroup"
"""Owner of an AppGroup's status in its managedFields."""
LARGE: Final = 500
"""Workloads and pods in a status from which on it is large: a write of thousands takes the API server a second."""


class Reconciler:
    """Brings the status of one AppGroup at a time up to date."""

    def __init__(
        self, *, client: ApiClient, recorder: EventRecorder, pods: GroupPods, versions: SeenVersions[GroupKey]
    ) -> None:
        """Prepare."""
        self._client = client
        self._recorder = recorder
        self._pods = pods
        self._versions = versions
        self._seen: dict[GroupKey, float] = {}
        self._large = asyncio.Lock()

    def seen(self, key: GroupKey) -> None:
        """Note that ``key`` has just changed, for the latency metric."""
        self._seen.setdefault(key, time.monotonic())

    async def reconcile(self, key: GroupKey) -> bool:
        """Write the status of one AppGroup if it is not what it should be; return whether the AppGroup exists.

        Raises:
            ApiError, aiohttp.ClientError, OSError: try again later.
        """
        outcome = "failed"
        with metrics.RECONCILE_DURATION.time():
            try:
                outcome = await self._reconcile(key)
            except ApiError as error:
                self._versions.forget(key)
                if not error.says_gone(APP_GROUPS.plural, key.name):
                    raise
                outcome = "gone"
            finally:
                metrics.RECONCILES.labels(outcome).inc()
        self._seen.pop(key, None)
        return outcome != "gone"

    async def _reconcile(self, key: GroupKey) -> str:
        document = await self._client.get(
            APP_GROUPS.raw, key.name, namespace=key.namespace, not_older_than=self._versions.of(key)
        )
        if document["metadata"].get("deletionTimestamp"):
            return "gone"
        plan = plan_spec(document)
        current = read_status(document)
        desired = desired_status(plan, self._pods.of(key), current, now=datetime.now(UTC))
        if desired == current:
            return "unchanged"
        await self._write(key, document, desired)
        if current.observed_generation != desired.observed_generation and key in self._seen:
            metrics.SPEC_TO_STATUS.observe(time.monotonic() - self._seen[key])
        for note in events.notes(Reference.to(document), plan, before=current, after=desired):
            self._recorder.record(note)
        return "written"

    async def _write(self, key: GroupKey, document: Mapping[str, Any], status: AppGroupStatus) -> None:
        body = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            # The uid makes the write conditional: an object that was deleted and created anew is not meant.
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": document["metadata"]["uid"]},
            "status": status.to_api(),
        }
        large = len(status.topology_order) + len(status.pods_scheduled) > LARGE
        # Several at a time would take the API server's processors from everybody's bindings.
        async with self._large if large else contextlib.nullcontext():
            write = self._client.apply(
                APP_GROUPS, key.name, body, field_manager=FIELD_MANAGER, namespace=key.namespace, subresource="status"
            )
            await self._versions.writing(key, write, generation=document["metadata"].get("generation", 0))
