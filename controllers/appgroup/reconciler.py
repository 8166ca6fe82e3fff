"""From an AppGroup and its pods to its status on the API server."""

from __future__ import annotations

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
from controllers.appgroup.large_statuses import LargeStatuses
from controllers.appgroup.plan import plan_spec
from controllers.appgroup.pods import GroupPods
from controllers.appgroup.status import desired_status, read_status

FIELD_MANAGER: Final = "berth-appgroup"
"""Owner of an AppGroup's status in its managedFields."""
LARGE: Final = 500
"""Workloads and pods in a status above which it is large."""


class Reconciler:
    """Brings the status of one AppGroup at a time up to date."""

    def __init__(
        self,
        *,
        client: ApiClient,
        recorder: EventRecorder,
        pods: GroupPods,
        versions: SeenVersions[GroupKey],
        large: LargeStatuses,
    ) -> None:
        """Prepare; what is large is handed over to ``large``."""
        self._client = client
        self._recorder = recorder
        self._pods = pods
        self._versions = versions
        self._seen: dict[GroupKey, float] = {}
        self._large = large

    def seen(self, key: GroupKey) -> None:
        """Note that ``key`` has just changed, for the latency metric."""
        self._seen.setdefault(key, time.monotonic())

    async def reconcile(self, key: GroupKey) -> bool:
        """Write the status of one AppGroup if it is not what it should be; return whether the AppGroup exists.

        One whose status is large is handed over instead.

        Raises:
            ApiError, aiohttp.ClientError, OSError: try again later.
        """
        if key in self._large:
            self._large.add(key)
            return True
        return await self._pass(key, large=False)

    async def reconcile_large(self, key: GroupKey) -> bool:
        """Do the same for one that was handed over."""
        return await self._pass(key, large=True)

    async def _pass(self, key: GroupKey, *, large: bool) -> bool:
        outcome = "failed"
        with metrics.RECONCILE_DURATION.time():
            try:
                outcome = await self._reconcile(key, large=large)
            except ApiError as error:
                self._versions.forget(key)
                if not error.says_gone(APP_GROUPS.plural, key.name):
                    raise
                outcome = "gone"
            finally:
                metrics.RECONCILES.labels(outcome).inc()
        if outcome == "postponed":
            self._large.add(key)
        else:
            self._seen.pop(key, None)
        return outcome != "gone"

    async def _reconcile(self, key: GroupKey, *, large: bool) -> str:
        document = await self._client.get(
            APP_GROUPS.raw, key.name, namespace=key.namespace, not_older_than=self._versions.of(key)
        )
        if document["metadata"].get("deletionTimestamp"):
            return "gone"
        plan = plan_spec(document)
        current = read_status(document)
        desired = desired_status(plan, self._pods.of(key), current, now=datetime.now(UTC))
        is_large = len(desired.topology_order) + len(desired.pods_scheduled) > LARGE
        if desired == current:
            return "unchanged"
        if is_large and not large:
            return "postponed"
        await self._write(key, document, desired)
        if not is_large:
            self._large.discard(key)
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
        write = self._client.apply(
            APP_GROUPS, key.name, body, field_manager=FIELD_MANAGER, namespace=key.namespace, subresource="status"
        )
        await self._versions.writing(key, write, generation=document["metadata"].get("generation", 0))
