"""Tells people and other controllers that a pod has no node: its condition PodScheduled, as kube-scheduler does.

Cluster autoscalers act on its reason Unschedulable; a pod that waits for its AppGroup, or whose planning ended with an
error, has another. Writes are queued in turns by namespace, at most one waits per pod and one is under way, so that the
newest is the last. A condition that is already there is not written again.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import NamedTuple

import structlog

from berth.api.text import on_one_line
from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
from berth.kube.fair_queue import FairQueue, Turn
from berth.kube.objects import Pod
from berth.kube.resources import PODS

log = structlog.get_logger(__name__)

CONDITION = "PodScheduled"
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
WRITERS = 4
"""Requests in flight at the most."""
CAPACITY = 50_000
"""Pods that may wait, those included that have gone meanwhile; of more, the oldest of the namespace with most are left
out."""
MAX_CONFLICTS = 5
"""Times that a pod may change under our write."""


class _Why(NamedTuple):
    reason: str
    message: str


class PodConditions:
    """Writes PodScheduled=False conditions in the background."""

    def __init__(self, client: ApiClient) -> None:
        """Prepare."""
        self._client = client
        self._queue: FairQueue[str] = FairQueue(WRITERS, capacity=CAPACITY)
        self._waiting: dict[str, tuple[Pod, _Why] | None] = {}  # by uid; None: there is nothing to say any more
        self._at_work: set[str] = set()
        self._written: dict[str, _Why] = {}

    def unschedulable(self, pod: Pod, message: str) -> None:
        """No node takes the pod: have the condition written unless it says the same already."""
        self._note(pod, UNSCHEDULABLE, message)

    def failed(self, pod: Pod, message: str) -> None:
        """Planning the pod ended with an error: have the condition written unless it says the same already."""
        self._note(pod, SCHEDULER_ERROR, message)

    def waiting(self, pod: Pod, *, reason: str, message: str) -> None:
        """The pod is not planned yet: have the condition written unless it says the same already."""
        self._note(pod, reason, message)

    def _note(self, pod: Pod, reason: str, message: str) -> None:
        uid, why = pod.metadata.uid, _Why(reason, on_one_line(message))
        self._drop(uid)
        written = self._written.get(uid)
        if written == why:
            return
        if written is None and _says(pod, why):
            return
        known = uid in self._waiting
        self._waiting[uid] = (pod, why)
        if not known and uid not in self._at_work:
            self._put(pod.metadata.namespace, uid)

    def _put(self, namespace: str, uid: str) -> None:
        dropped = self._queue.put(namespace, uid)
        if dropped is not None:
            del self._waiting[dropped]  # mostly a pod long gone; another has it written when it fails again

    def changed(self, old: Pod, new: Pod) -> None:
        """The watch shows other conditions: one that somebody replaced, or etcd lost in a restore, is told anew."""
        written = self._written.get(new.metadata.uid)
        if written is not None and _says(old, written) and not _says(new, written):
            del self._written[new.metadata.uid]

    def forget(self, uid: str) -> None:
        """The pod is placed or gone: say nothing more about it."""
        self._drop(uid)
        self._written.pop(uid, None)

    def _drop(self, uid: str) -> None:
        if uid in self._waiting:
            self._waiting[uid] = None

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(self._drain())

    async def _drain(self) -> None:
        while True:
            turn = await self._queue.get()
            found = self._waiting.pop(turn.item, None)
            try:
                if found is None:
                    await asyncio.sleep(0)  # there may be many of these
                else:
                    await self._try(turn, *found)
            finally:
                self._queue.done(turn)

    async def _try(self, turn: Turn[str], pod: Pod, why: _Why) -> None:
        uid, there = turn.item, False
        self._at_work.add(uid)
        self._written[uid] = why
        try:
            async with self._queue.patience(turn):
                there = await self._write(pod, why)
        except ApiError as error:
            if not error.not_found:
                log.warning("condition not written", pod=pod.key, error=str(error))
        except TRANSPORT_ERRORS as error:
            log.warning("condition not written", pod=pod.key, error=str(error) or repr(error))
        except Exception:
            # One odd pod must not stop the others.
            log.exception("condition not written", pod=pod.key)
        finally:
            self._at_work.discard(uid)
        if not there:
            self._written.pop(uid, None)
        if uid in self._waiting:
            self._put(turn.namespace, uid)  # it was told something else meanwhile

    async def _write(self, pod: Pod, why: _Why) -> bool:
        """Write the condition; False if the pod is gone or bound, or changes all the time."""
        # The uid leaves a namesake alone that was created in the meantime, the version a pod that was bound since.
        for _ in range(MAX_CONFLICTS):
            metadata = {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version}
            body = {"metadata": metadata, "status": {"conditions": [_condition(pod, why)]}}
            try:
                await self._client.strategic_patch(
                    PODS, pod.metadata.name, body, namespace=pod.metadata.namespace, subresource="status"
                )
            except ApiError as error:
                if not error.conflict:
                    raise
            else:
                return True
            current = await self._client.get(PODS, pod.metadata.name, namespace=pod.metadata.namespace)
            if current.metadata.uid != pod.metadata.uid or current.spec.node_name:
                return False
            pod = current
        return False


def _says(pod: Pod, why: _Why) -> bool:
    return any(
        known.type == CONDITION and known.status == "False" and (known.reason, known.message) == why
        for known in pod.status.conditions
    )


def _condition(pod: Pod, why: _Why) -> dict[str, str]:
    """What to merge into the pod's condition; its time stays while its status does."""
    condition = {"type": CONDITION, "status": "False", "reason": why.reason, "message": why.message}
    if not any(known.type == CONDITION and known.status == "False" for known in pod.status.conditions):
        condition["lastTransitionTime"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return condition
