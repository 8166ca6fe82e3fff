"""Gets the claims of decided pods bound before the pods are: writes, then waits for Kubernetes' volume controller.

A write is conditional on the version that the decision was made with; after a Conflict the object is read again and
judged anew. What is written stays written when the process dies: the next one finds it in the claims.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog

from berth.kube.client import TRANSPORT_ERRORS, ApiClient, backoff
from berth.kube.decoding import ObjectDecoder
from berth.kube.errors import ApiError, readable
from berth.kube.meta import object_key
from berth.kube.objects import Node, PersistentVolume, PersistentVolumeClaim, Pod
from berth.kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, version_number
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.cache.volume_matching import unbound_claims, volume_plan
from berth.scheduling.cache.volumes import SELECTED_NODE, StorageObject, claim_keys, claimed_by, fully_bound
from controllers.placement.claims import VolumeError, Written, reservation_patch, selection_patch, unfinished

log = structlog.get_logger(__name__)

DEADLINE = 600.0
"""Seconds that the claims of a pod may take until it is scheduled again; kube-scheduler's bindTimeoutSeconds."""
MAX_CONFLICTS = 5
"""Times that one object may change under our write."""

_Object = tuple[type, str]
"""Kind and key of an object that is waited for."""


@dataclass(slots=True, eq=False)
class _Waiter:
    """A pod whose claims are waited for."""

    changed: asyncio.Event = field(default_factory=asyncio.Event)
    follows: set[_Object] = field(default_factory=set)


class VolumeBinder:
    """Prepares the claims of pods that are about to be bound."""

    def __init__(self, client: ApiClient, state: ClusterState, *, idle: Callable[[], Awaitable[None]]) -> None:
        """Prepare; `state` is kept up to date by watches, `idle` waits until no plan is being made with it."""
        self._client = client
        self._idle = idle
        self._state = state
        self._waiting: dict[str, _Waiter] = {}  # by uid of the pod
        self._following: defaultdict[_Object, set[str]] = defaultdict(set)  # by what the pods wait for

    def needed(self, pod: Pod) -> bool:
        """Whether the pod has claims that must be bound before it is."""
        return bool(unbound_claims(pod, self._state))

    def storage_changed(self, item: StorageObject) -> None:
        """A storage object came, changed or went: check those pods again that wait for it."""
        self._wake(type(item), object_key(item.metadata))

    def node_gone(self, name: str) -> None:
        """A node was deleted: check those pods again whose volumes are bound for it."""
        self._wake(Node, name)

    def pod_gone(self, uid: str) -> None:
        """A pod was deleted or has ended: there is nothing to wait for."""
        waiter = self._waiting.get(uid)
        if waiter is not None:
            waiter.changed.set()

    def _wake(self, kind: type, key: str) -> None:
        for uid in self._following.get((kind, key), ()):
            self._waiting[uid].changed.set()

    async def claim(self, pod: Pod, node: str) -> Written:
        """Write which volumes a pod's claims are to have, for a node; a few requests, and :meth:`wait` is to follow.

        Raises:
            VolumeError: the claims cannot be bound for that node, or the API server refuses it or does not answer.
        """
        try:
            return await self._write(pod, node)
        except ApiError as error:
            raise VolumeError(f"volumes cannot be claimed: {error}") from error
        except TRANSPORT_ERRORS as error:
            raise VolumeError(f"volumes cannot be claimed: {str(error) or repr(error)}") from error

    async def wait(self, pod: Pod, node: str, written: Written) -> None:
        """Wait until the claims of a pod are bound, after :meth:`claim`.

        Raises:
            VolumeError: they cannot be, or not in time.
        """
        uid = pod.metadata.uid
        self._leave(uid)
        waiter = self._waiting[uid] = _Waiter()
        try:
            async with asyncio.timeout(DEADLINE):
                await self._wait(pod, node, waiter, written=written)
        except TimeoutError as error:
            raise VolumeError(f"claims were not bound within {DEADLINE:g} s") from error
        except VolumeError:
            raise
        except Exception as error:
            # One odd object must not stop the others.
            log.exception("volumes cannot be judged", pod=pod.key)
            raise VolumeError(f"volumes cannot be judged: {error!r}") from error
        finally:
            if self._waiting.get(uid) is waiter:
                self._leave(uid)

    def _follow(self, pod: Pod, node: str, waiter: _Waiter, *, reserved: Iterable[str]) -> None:
        """Note what a pod waits for: its claims, the volumes reserved for them or that they have, and its node."""
        claims = claim_keys(pod)
        known = [claim for key in claims if (claim := self._state.volumes.claims.get(key)) is not None]
        objects: set[_Object] = {(Node, node), *((PersistentVolume, name) for name in reserved)}
        objects |= {(PersistentVolumeClaim, key) for key in claims}
        objects |= {(PersistentVolume, claim.spec.volume_name) for claim in known if claim.spec.volume_name}
        for one in waiter.follows - objects:
            self._forget(one, pod.metadata.uid)
        for one in objects - waiter.follows:
            self._following[one].add(pod.metadata.uid)
        waiter.follows = objects

    def _leave(self, uid: str) -> None:
        waiter = self._waiting.pop(uid, None)
        for one in waiter.follows if waiter is not None else ():
            self._forget(one, uid)

    def _forget(self, followed: _Object, uid: str) -> None:
        self._following[followed].discard(uid)
        if not self._following[followed]:
            del self._following[followed]

    async def _write(self, pod: Pod, node: str) -> Written:
        try:
            plan = volume_plan(pod, self._state, node)
        except LookupError as error:
            raise VolumeError(str(error)) from error
        written = Written(reserved=plan.reserve)
        for volume_name, key in sorted(plan.reserve.items()):
            with _named(f"volume {volume_name} for claim {key}"):
                written.volumes[volume_name] = await self._reserve(volume_name, key)
        for key in plan.provision:
            with _named(f"claim {key}"):
                written.claims[key] = await self._select(key, node)
        return written

    async def _reserve(self, volume_name: str, key: str) -> int:
        """Set the volume's claimRef to the claim; returns the version as of which that is written."""
        claim = self._claim(key)
        volume = self._state.volumes.volumes.get(volume_name)
        for attempt in range(MAX_CONFLICTS):
            if volume is None:
                raise VolumeError(f"volume {volume_name} for claim {key} was deleted")
            if volume.spec.claim_ref is not None and not claimed_by(volume, claim):
                raise VolumeError(f"volume {volume_name} was taken by another claim than {key}")
            patch = reservation_patch(volume, claim)
            if patch is None:
                return version_number(volume.metadata.resource_version)
            try:
                answer = await self._client.merge_patch(PERSISTENT_VOLUMES, volume_name, patch)
            except ApiError as error:
                if not error.conflict:
                    raise
            else:
                return _version(answer, PersistentVolume)
            await asyncio.sleep(backoff(attempt))
            volume = await self._client.get(PERSISTENT_VOLUMES, volume_name)
        raise VolumeError(f"volume {volume_name} keeps changing")

    async def _select(self, key: str, node: str) -> int:
        """Annotate the claim with the node; returns the version as of which that is written."""
        claim = self._claim(key)
        for attempt in range(MAX_CONFLICTS):
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if selected == node or fully_bound(claim):
                return version_number(claim.metadata.resource_version)
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
                return _version(answer, PersistentVolumeClaim)
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

    async def _wait(self, pod: Pod, node: str, waiter: _Waiter, *, written: Written) -> None:
        while True:
            waiter.changed.clear()
            await self._idle()
            if self._state.record(pod.metadata.uid) is None:
                raise VolumeError("the pod has ended or was deleted")
            if not unfinished(pod, node, self._state, written=written):
                return
            written.note_shown(pod, node, self._state)
            if self._waiting.get(pod.metadata.uid) is waiter:
                self._follow(pod, node, waiter, reserved=written.reserved)
            await waiter.changed.wait()


def _version(answer: bytes, kind: type[PersistentVolume] | type[PersistentVolumeClaim]) -> int:
    """Version of a storage object as the API server returns it after a write."""
    with readable(answer):
        return version_number(ObjectDecoder(kind).decode(answer).metadata.resource_version)


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Say what was deleted when a write, or a second look after a Conflict, does not find it."""
    try:
        yield
    except ApiError as error:
        if not error.not_found:
            raise
        raise VolumeError(f"{what} was deleted") from error
