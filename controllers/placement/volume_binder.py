"""Gets the claims of decided pods bound before the pods are: writes, then waits for Kubernetes' volume controller.

Each pod with unbound claims has a task of its own here, so that a slow provisioner keeps nobody else waiting. A
write is conditional on the version that the decision was made with; after a Conflict the object is read again and
judged anew. What is written stays written when the process dies: the next one finds it in the claims.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec
import structlog

from berth.kube.client import TRANSPORT_ERRORS, ApiClient, backoff
from berth.kube.errors import ApiError
from berth.kube.objects import PersistentVolumeClaim, Pod
from berth.kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.cache.volume_matching import unbound_claims, volume_plan
from berth.scheduling.cache.volumes import SELECTED_NODE, claimed_by, fully_bound
from controllers.placement.claims import Stage, progress, reservation_patch, selection_patch, version_of

log = structlog.get_logger(__name__)

DEADLINE = 600.0
"""Seconds that the claims of a pod may take until it is planned again; kube-scheduler's bindTimeoutSeconds."""
MAX_CONFLICTS = 5
"""Times that one object may change under our write."""

Done = Callable[[str | None], None]
"""Told what went wrong, or None when the pod can be bound."""


class VolumeError(Exception):
    """The claims cannot be bound for this node; the text says why."""


@dataclass(slots=True)
class _Job:
    pod: Pod
    node: str
    done: Done
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    written: dict[str, int] = field(default_factory=dict)


class VolumeBinder:
    """Prepares the claims of pods that are about to be bound."""

    def __init__(self, client: ApiClient, state: ClusterState, *, deadline: float = DEADLINE) -> None:
        """Prepare.

        Args:
            client: open API client.
            state: the cluster, fed by watches.
            deadline: seconds after which a pod's claims are given up.
        """
        self._client = client
        self._state = state
        self._deadline = deadline
        self._jobs: dict[str, _Job] = {}
        self._new: asyncio.Queue[_Job] = asyncio.Queue()

    def __len__(self) -> int:
        """Number of pods whose claims are at work."""
        return len(self._jobs)

    def needed(self, pod: Pod) -> bool:
        """Whether the pod has claims that must be bound before it is."""
        return bool(unbound_claims(pod, self._state))

    def submit(self, pod: Pod, node: str, done: Done) -> None:
        """Have the pod's claims bound for a node; `done` is called once, from the event loop."""
        job = self._jobs[pod.metadata.uid] = _Job(pod, node, done)
        self._new.put_nowait(job)

    def changed(self) -> None:
        """Storage objects or nodes changed: check all jobs again."""
        for job in self._jobs.values():
            job.changed.set()

    def pod_gone(self, uid: str) -> None:
        """A pod was deleted or has ended: its job ends as well."""
        job = self._jobs.get(uid)
        if job is not None:
            job.changed.set()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._work(await self._new.get()))

    async def _work(self, job: _Job) -> None:
        problem: str | None = None
        limit = asyncio.timeout(self._deadline)
        try:
            async with limit:
                await self._write(job)
                await self._wait(job)
        except VolumeError as error:
            problem = str(error)
        except ApiError as error:
            problem = f"volumes cannot be claimed: {error}"
        except TRANSPORT_ERRORS as error:
            # TimeoutError is among them: ours, or that of a request.
            problem = f"volumes cannot be claimed: {str(error) or repr(error)}"
            if limit.expired():
                problem = f"claims were not bound within {self._deadline:g} s"
        finally:
            if self._jobs.get(job.pod.metadata.uid) is job:
                del self._jobs[job.pod.metadata.uid]
        if problem is not None:
            log.warning("claims not bound", pod=job.pod.key, node=job.node, problem=problem)
        job.done(problem)

    async def _write(self, job: _Job) -> None:
        try:
            plan = volume_plan(job.pod, self._state, job.node)
        except LookupError as error:
            raise VolumeError(str(error)) from error
        for volume_name, key in sorted(plan.reserve.items()):
            with _named(f"volume {volume_name} for claim {key}"):
                await self._reserve(volume_name, key)
        for key in plan.provision:
            with _named(f"claim {key}"):
                job.written[key] = await self._select(key, job.node)

    async def _reserve(self, volume_name: str, key: str) -> None:
        """Set the volume's claimRef to the claim."""
        claim = self._claim(key)
        volume = self._state.volumes.volumes.get(volume_name)
        for attempt in range(MAX_CONFLICTS):
            if volume is None:
                raise VolumeError(f"volume {volume_name} for claim {key} was deleted")
            if volume.spec.claim_ref is not None and not claimed_by(volume, claim):
                raise VolumeError(f"volume {volume_name} was taken by another claim than {key}")
            patch = reservation_patch(volume, claim)
            if patch is None:
                return
            try:
                await self._client.merge_patch(PERSISTENT_VOLUMES, volume_name, patch)
            except ApiError as error:
                if not error.conflict:
                    raise
            else:
                return
            await asyncio.sleep(backoff(attempt))
            volume = await self._client.get(PERSISTENT_VOLUMES, volume_name)
        raise VolumeError(f"volume {volume_name} keeps changing")

    async def _select(self, key: str, node: str) -> int:
        """Annotate the claim with the node; returns the version as of which that is written."""
        claim = self._claim(key)
        for attempt in range(MAX_CONFLICTS):
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if selected == node or fully_bound(claim):
                return version_of(claim)
            if selected is not None:
                raise VolumeError(f"claim {key} is being provisioned for node {selected}")
            try:
                answer = await self._client.merge_patch(
                    PERSISTENT_VOLUME_CLAIMS,
                    claim.metadata.name,
                    selection_patch(claim, node),
                    namespace=claim.metadata.namespace,
                )
            except ApiError as error:
                if not error.conflict:
                    raise
            else:
                return version_of(msgspec.json.decode(answer, type=PersistentVolumeClaim))
            await asyncio.sleep(backoff(attempt))
            fresh = await self._client.get(
                PERSISTENT_VOLUME_CLAIMS, claim.metadata.name, namespace=claim.metadata.namespace
            )
            if fresh.metadata.uid != claim.metadata.uid:
                raise VolumeError(f"claim {key} was deleted")
            claim = fresh
        raise VolumeError(f"claim {key} keeps changing")

    def _claim(self, key: str) -> PersistentVolumeClaim:
        claim = self._state.volumes.claims.get(key)
        if claim is None:
            raise VolumeError(f"claim {key} was deleted")
        return claim

    async def _wait(self, job: _Job) -> None:
        while True:
            job.changed.clear()
            if self._state.record(job.pod.metadata.uid) is None:
                raise VolumeError("the pod has ended or was deleted")
            now = progress(job.pod, job.node, self._state, written=job.written)
            if now.stage is Stage.READY:
                return
            if now.stage is Stage.FAILED:
                raise VolumeError(now.reason)
            await job.changed.wait()


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Say what was deleted when a write, or a second look after a Conflict, does not find it."""
    try:
        yield
    except ApiError as error:
        if not error.not_found:
            raise
        raise VolumeError(f"{what} was deleted") from error
