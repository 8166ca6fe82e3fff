"""From an AppGroup and its pods to its status on the API server."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from cachetools import LRUCache

from berth.api.appgroup import API_VERSION, KIND, AppGroupStatus
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.events import EventRecorder
from berth.kube.resources import APP_GROUPS
from berth.network.groups import GroupKey
from controllers.appgroup import events, metrics
from controllers.appgroup.plan import SpecPlan, plan_spec
from controllers.appgroup.pods import PodIndex
from controllers.appgroup.status import desired_status, read_status
from controllers.appgroup.store import AppGroupStore

FIELD_MANAGER: Final = "berth-appgroup"
"""Owner of an AppGroup's status in its managedFields."""

PLANS_KEPT: Final = 256
"""Plans kept from one pod change to the next; others are computed again, which takes milliseconds."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Reconciler:
    """Brings the status of one AppGroup at a time up to date."""

    def __init__(
        self,
        *,
        client: ApiClient,
        recorder: EventRecorder,
        store: AppGroupStore,
        pods: PodIndex,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        """Prepare; ``clock`` gives the time of transitions."""
        self._client = client
        self._recorder = recorder
        self._store = store
        self._pods = pods
        self._clock = clock
        self._plans: LRUCache[GroupKey, tuple[str, SpecPlan]] = LRUCache(maxsize=PLANS_KEPT)
        self._seen: dict[GroupKey, float] = {}

    def spec_seen(self, key: GroupKey) -> None:
        """Note that a new spec of ``key`` has just arrived, for the latency metric."""
        self._seen.setdefault(key, time.monotonic())

    async def reconcile(self, key: GroupKey) -> None:
        """Write the status of one AppGroup if it is not what it should be.

        Raises:
            ApiError, aiohttp.ClientError, TimeoutError: it could not be written; worth trying again.
        """
        with metrics.RECONCILE_DURATION.time():
            try:
                outcome = await self._reconcile(key)
            except BaseException:
                metrics.RECONCILES.labels("failed").inc()
                raise
        metrics.RECONCILES.labels(outcome).inc()
        seen = self._seen.pop(key, None)
        if seen is not None and outcome == "written":
            metrics.SPEC_TO_STATUS.observe(time.monotonic() - seen)

    async def _reconcile(self, key: GroupKey) -> str:
        document = self._store.get(key)
        if document is None or document["metadata"].get("deletionTimestamp"):
            self._plans.pop(key, None)
            return "gone"
        plan = self._plan(key, document)
        current = read_status(document)
        desired = desired_status(plan, tuple(self._pods.of(key)), current, now=self._clock())
        if desired == current:
            return "unchanged"
        if not await self._write(key, document, desired):
            return "gone"
        regarding = events.reference(document)
        for note in events.notes(regarding, plan, before=current, after=desired):
            self._recorder.record(note)
        return "written"

    def _plan(self, key: GroupKey, document: Mapping[str, Any]) -> SpecPlan:
        """Return the plan of the object's spec, kept from pod change to pod change."""
        uid = str(document["metadata"].get("uid", ""))
        kept = self._plans.get(key)
        if kept is not None and kept[0] == uid and kept[1].generation == document["metadata"].get("generation"):
            return kept[1]
        plan = plan_spec(document)
        self._plans[key] = (uid, plan)
        return plan

    async def _write(self, key: GroupKey, document: Mapping[str, Any], status: AppGroupStatus) -> bool:
        """Apply the status; False when the object is gone or has been replaced by another of its name."""
        body = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            # The uid makes the write conditional: an object that was deleted and created anew is not meant.
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": document["metadata"]["uid"]},
            "status": status.to_api(),
        }
        try:
            answer = await self._client.apply(
                APP_GROUPS,
                key.name,
                body,
                field_manager=FIELD_MANAGER,
                namespace=key.namespace,
                subresource="status",
            )
        except ApiError as error:
            if error.not_found or error.conflict:
                if await self._exists(key, document["metadata"]["uid"]):
                    raise
                return False
            raise
        self._store.wrote(msgspec.json.decode(answer), now=time.monotonic())
        return True

    async def _exists(self, key: GroupKey, uid: str) -> bool:
        """Return whether the very object still exists; if not, the store drops it unless it knows its successor."""
        try:
            found = await self._client.get(APP_GROUPS, key.name, namespace=key.namespace)
        except ApiError as error:
            if not error.not_found:
                raise
        else:
            if found.metadata.uid == uid:
                return True
        self._store.forget(key, uid=uid)
        self._plans.pop(key, None)
        return False
