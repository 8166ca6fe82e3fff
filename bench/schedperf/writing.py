"""Requests of the benchmark: creating objects of any kind, and replacing them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from bench.schedperf.manifests import NewPod
from bench.schedperf.operations import LeftOutError
from bench.schedperf.templates import Manifest
from berth.kube import resources as kinds
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.resources import Resource

T = TypeVar("T")

AT_A_TIME = 30
"""Creations in flight, as in scheduler_perf."""
_KINDS: dict[str, Resource[Any]] = {
    resource.kind: resource
    for resource in (
        kinds.NODES, kinds.PODS, kinds.SERVICES, kinds.NAMESPACES, kinds.PERSISTENT_VOLUMES,
        kinds.PERSISTENT_VOLUME_CLAIMS, kinds.STORAGE_CLASSES, kinds.CSI_NODES,
    )
}  # fmt: skip


def resource_of(manifest: Manifest) -> Resource[Any]:
    """The resource of an object.

    Raises:
        LeftOutError: its kind is not known here.
    """
    found = _KINDS.get(manifest["kind"])
    if found is None:
        raise LeftOutError(f"objects of kind {manifest['kind']} are not understood")
    return found


@dataclass(frozen=True)
class _Subresource(Resource[Any]):
    """A part of objects as a resource of its own, so that it can be replaced like one."""

    part: str = ""

    @classmethod
    def of(cls, whole: Resource[Any], part: str) -> _Subresource:
        return cls(whole.group, whole.version, whole.plural, whole.kind, dict, whole.namespaced, part)

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        return super().path(namespace, name, subresource or self.part)


async def replace(client: ApiClient, manifest: Manifest, *, namespace: str | None, subresources: Iterable[str]) -> None:
    """Replace an object, or these subresources of it, and then its status."""
    whole = resource_of(manifest)
    targets: list[Resource[Any]] = [_Subresource.of(whole, part) for part in subresources] or [whole]
    for target in (*targets, _Subresource.of(whole, "status")):
        await client.replace(target, manifest["metadata"]["name"], manifest, namespace=namespace)


async def in_parallel(call: Callable[[T], Awaitable[Any]], items: Iterable[T]) -> None:
    """Make a call with each item, in their order, some at a time."""
    queue = iter(items)

    async def worker() -> None:
        for item in queue:
            await call(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_A_TIME):
            group.create_task(worker())


async def create(client: ApiClient, manifest: Manifest, *, namespace: str | None = None) -> dict[str, Any]:
    """Create an object; returns its metadata."""
    answer = await client.create(resource_of(manifest), manifest, namespace=namespace)
    metadata: dict[str, Any] = json.loads(answer)["metadata"]
    return metadata


async def create_namespace(client: ApiClient, manifest: Manifest) -> None:
    """Create a namespace that may exist already; it has the labels afterwards."""
    try:
        await client.create(kinds.NAMESPACES, manifest)
    except ApiError as error:
        if not error.conflict:
            raise
        labels = {"metadata": {"labels": manifest["metadata"].get("labels", {})}}
        await client.merge_patch(kinds.NAMESPACES, manifest["metadata"]["name"], labels)


async def create_pod(client: ApiClient, new: NewPod, *, namespace: str) -> dict[str, Any]:
    """Create a pod after its claim and its volume, both of them bound; returns its metadata."""
    if new.claim is not None and new.volume is not None:
        claim, volume = new.claim["metadata"]["name"], new.volume["metadata"]["name"]
        bound = {"status": {"phase": "Bound"}}
        await client.create(kinds.PERSISTENT_VOLUME_CLAIMS, new.claim, namespace=namespace)
        await client.strategic_patch(
            kinds.PERSISTENT_VOLUME_CLAIMS, claim, bound, namespace=namespace, subresource="status"
        )
        await client.create(kinds.PERSISTENT_VOLUMES, new.volume)
        await client.strategic_patch(kinds.PERSISTENT_VOLUMES, volume, bound, subresource="status")
    return await create(client, new.pod, namespace=namespace)


async def delete_pod(client: ApiClient, name: str, namespace: str) -> None:
    """Delete a pod with its own grace period."""
    await client.delete(kinds.PODS, name, namespace=namespace)
