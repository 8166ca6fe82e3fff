"""LatencyPolicies as placement follows them: where pods are awaited, and how far users are.

Nobody waits for them but the pods of a workload that has one. The latency controller writes where a pod is awaited
before it has the pod created, and the watch may show that later than the pod. So the policy is read by itself once such
a pod has come: what is read then is what was written before, whoever was started anew meanwhile. In a cluster without
the kind, or without the latency controller, no workload has users whose latency is known.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

import structlog

from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
from berth.kube.meta import object_key
from berth.kube.objects import CustomObject, Pod
from berth.kube.owners import owner_of
from berth.kube.reflector import Handler, Reflector
from berth.kube.resources import LATENCY_POLICIES, version_number
from berth.runtime.component import run_together
from berth.runtime.workqueue import WorkQueue
from berth.scheduling.cache.user_latency import UserLatencyTable

log = structlog.get_logger(__name__)

WORKERS: Final = 8
"""Policies that are read at once; of one namespace, a quarter."""
TRY_SECONDS: Final = 5.0
"""Seconds that reading one may take."""
RETRY_SECONDS: Final = 2.0
"""Greatest time between two tries: PATIENCE is to end soon after it is over."""
PATIENCE: Final = 30.0
"""Seconds after which a pod is placed by what is known, where the policy can't be read for so long."""


class _Waiting(NamedTuple):
    """A pod that is not placed yet."""

    pod: Pod
    """as it came"""
    since: float
    """monotonic time at which it came"""


class _Read(NamedTuple):
    """A policy that was read by itself, and which the watch has yet to show."""

    uid: str
    """its own"""
    version: int
    """its resourceVersion"""


class LatencyPolicies:
    """Keeps the table of users' latency, and pods from being placed by what is older than they are."""

    def __init__(
        self,
        client: ApiClient,
        table: UserLatencyTable,
        *,
        schedulers: frozenset[str],
        heard: Callable[[Iterable[Pod]], None],
        deferring: Callable[[Handler[CustomObject], str], Handler[CustomObject]],
        idle: Callable[[], Awaitable[None]],
    ) -> None:
        """Prepare.

        Args:
            client: open API client.
            table: what plugins and the cycle go by.
            schedulers: names of the schedulers whose pods count.
            heard: called with pods that need not wait any more.
            deferring: keeps a handler from the table while a plan is made.
            idle: waits until no plan is made.
        """
        self._client = client
        self._table = table
        self._schedulers = schedulers
        self._heard = heard
        self._idle = idle
        self._waiting: dict[str, dict[str, _Waiting]] = {}
        self._read: dict[str, _Read] = {}
        self._queue: WorkQueue[str] = WorkQueue(lambda workload: workload.partition("/")[0], last_retry=RETRY_SECONDS)
        self.watch: Reflector[CustomObject] = Reflector(client, LATENCY_POLICIES)
        self.watch.add_handler(deferring(self.on_policy, LATENCY_POLICIES.plural))

    async def run(self) -> None:
        """Follow policies until cancelled."""
        await run_together(self.watch.run(), self._queue.run(self._look, workers=WORKERS))

    async def asked(self) -> None:
        """Wait until they have been listed, or the API server did not have them at the first try."""
        await self.watch.tried.wait()

    def on_policy(self, old: CustomObject | None, new: CustomObject | None) -> None:
        """A policy came, changed or went."""
        item = new or old
        if item is None:
            return
        key = object_key(item.metadata)
        read = self._read.get(key)
        if new is not None and read is not None and version_number(new.metadata.resource_version) < read.version:
            return  # the pods that it was read for were placed by a later one
        if new is None and read is not None and item.metadata.uid != read.uid:
            return  # another of that name was read since
        self._read.pop(key, None)
        if new is not None:
            self._take(new)
        else:
            self._table.forget(key)

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """One that begins to wait is not placed before the policy of its workload was read."""
        if new is not None and self._waits(new) and not (old is not None and self._waits(old)):
            self.came(new)

    def came(self, pod: Pod) -> None:
        """A pod waits, as far as is known since just now; nothing changes for one that waits already."""
        workload, uid = owner_of(pod), pod.metadata.uid
        if uid not in self._table.unheard and self._table.first(workload) is not None:
            self._table.unheard.add(uid)
            self._waiting.setdefault(workload, {})[uid] = _Waiting(pod, time.monotonic())
            self._queue.add(workload)

    def _waits(self, pod: Pod) -> bool:
        ours = pod.spec.scheduler_name in self._schedulers and not pod.spec.node_name and not pod.finished
        return ours and pod.metadata.deletion_timestamp is None and not pod.spec.scheduling_gates

    async def _look(self, workload: str) -> bool:
        """Read the policy of a workload for the pods that have come by now; who comes from now on needs another look.

        Raises:
            ApiError, ValueError, aiohttp.ClientError, OSError: try again later.
        """
        waiting = self._waiting.pop(workload, {})
        if waiting and not _patient(waiting):
            # Many others are read, each for as long as that may take.
            await self._end_unread(workload, waiting, "its turn came too late")
            return False
        try:
            await self._refresh(workload)
        except (ApiError, ValueError, *TRANSPORT_ERRORS) as error:
            again = not isinstance(error, ValueError) and (not isinstance(error, ApiError) or error.retryable)
            patient = _patient(waiting) if again else {}
            if len(patient) < len(waiting):
                late = {uid: each for uid, each in waiting.items() if uid not in patient}
                await self._end_unread(workload, late, repr(error))
            if patient:
                self._waiting[workload] = patient | self._waiting.get(workload, {})
                raise
        else:
            await self._end(waiting)
        return False

    async def _refresh(self, workload: str) -> None:
        """Read the policy that counts; one that is gone, or is about another workload by now, leaves that to the next.

        Raises:
            ApiError, ValueError, aiohttp.ClientError, OSError: it could not be read.
        """
        while (key := self._table.first(workload)) is not None:
            namespace, _, name = key.partition("/")
            found, before = None, self.watch.objects.get(key)
            try:
                async with asyncio.timeout(TRY_SECONDS):
                    found = await self._client.get(LATENCY_POLICIES, name, namespace=namespace)
            except ApiError as error:
                if not error.says_gone(LATENCY_POLICIES.plural, name):
                    raise
            await self._idle()
            known = self.watch.objects.get(key)
            if found is None:
                # The watch may have shown meanwhile that it was made anew.
                if known is None or (before is not None and known.metadata.uid == before.metadata.uid):
                    self._read.pop(key, None)
                    self._table.forget(key)
                continue
            version = version_number(found.metadata.resource_version)
            if known is None or version_number(known.metadata.resource_version) < version or key in self._read:
                self._read[key] = _Read(found.metadata.uid, version)
                self._take(found)
            if self._table.first(workload) == key:
                return

    def _take(self, policy: CustomObject) -> None:
        problem = self._table.update(policy)
        if problem is not None:
            log.warning("latency policy ignored", object=object_key(policy.metadata), problem=problem)

    async def _end_unread(self, workload: str, waiting: dict[str, _Waiting], error: str) -> None:
        log.warning("pods placed by what was known of their users", workload=workload, error=error)
        await self._end(waiting)

    async def _end(self, waiting: dict[str, _Waiting]) -> None:
        """Let pods be placed."""
        await self._idle()
        self._table.unheard.difference_update(waiting)
        self._heard(each.pod for each in waiting.values())


def _patient(waiting: dict[str, _Waiting]) -> dict[str, _Waiting]:
    """Those pods whose time is not over yet."""
    late = time.monotonic() - PATIENCE
    return {uid: each for uid, each in waiting.items() if each.since > late}
