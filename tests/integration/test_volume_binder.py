"""The writes of the volume binder against a real API server, with a cache that is older than the truth.

What a controller sees late in a race, these tests hand over on purpose: the cache is filled from the API server once,
then somebody changes the objects, and only then the binder writes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import msgspec
import pytest

from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import Pod
from berth.kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, Resource
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.volumes import SELECTED_NODE
from controllers.placement import volume_binder
from controllers.placement.claims import VolumeError
from controllers.placement.volume_binder import VolumeBinder
from hack.localcluster import LocalCluster
from tests.support.kube import client_of
from tests.support.placement import lone, zoned

NODE = "n1"


@dataclass
class Storage:
    """A static and a dynamic claim, with all that they need, and the binder's late cache of them."""

    client: ApiClient
    namespace: str
    cache: Cache
    names: list[tuple[Resource[Any], str]]

    @property
    def volume(self) -> str:
        return f"{self.namespace}-v1"

    async def make(self, resource: Resource[Any], name: str, body: dict[str, Any]) -> None:
        """Create an object outside namespaces, deleted afterwards."""
        head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
        await self.client.create(resource, head | body)
        self.names.append((resource, name))

    async def claim(self, name: str, class_name: str) -> None:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "resources": {"requests": {"storage": "1Gi"}},
        }
        body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
        await self.client.create(PERSISTENT_VOLUME_CLAIMS, body, namespace=self.namespace)

    async def look(self) -> None:
        """Have the cache know what the API server knows now, volumes available as their controller would say."""
        for storage_class in await self.client.list_all(STORAGE_CLASSES):
            self.cache.update_storage(storage_class)
        for volume in await self.client.list_all(PERSISTENT_VOLUMES):
            volume.status.phase = "Available"
            self.cache.update_storage(volume)
        for claim in await self.client.list_all(PERSISTENT_VOLUME_CLAIMS, namespace=self.namespace):
            self.cache.update_storage(claim)

    async def read(self, resource: Resource[Any], name: str) -> Any:
        namespace = self.namespace if resource.namespaced else None
        return await self.client.get(resource, name, namespace=namespace)

    async def patch(self, resource: Resource[Any], name: str, body: dict[str, Any]) -> None:
        namespace = self.namespace if resource.namespaced else None
        await self.client.merge_patch(resource, name, body, namespace=namespace)

    async def delete(self, resource: Resource[Any], name: str) -> None:
        """Delete an object and wait until it is gone: Kubernetes' own controller takes its finalizer away."""
        namespace = self.namespace if resource.namespaced else None
        await self.client.delete(resource, name, namespace=namespace)
        while await self.is_there(resource, name):
            await asyncio.sleep(0.05)

    async def is_there(self, resource: Resource[Any], name: str) -> bool:
        try:
            await self.read(resource, name)
        except ApiError as error:
            if not error.not_found:
                raise
            return False
        return True

    def user(self, claim: str) -> Pod:
        """A pod of the claim, assumed on the node."""
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        pod = lone(f"user-of-{claim}", namespace=self.namespace, spec={"volumes": volumes})
        self.cache.assume(pod, NODE)
        return pod

    async def bind(
        self, pod: Pod, *, deadline: float = 60.0, then: Callable[[VolumeBinder], Awaitable[None]] | None = None
    ) -> str | None:
        """Have the claims of one pod bound; returns why that failed, None when they are bound."""
        binder = VolumeBinder(self.client, self.cache.state, idle=partial(asyncio.sleep, 0))

        async def bound() -> None:
            await binder.wait(pod, NODE, await binder.claim(pod, NODE))

        with mock.patch.object(volume_binder, "DEADLINE", deadline):
            binding = asyncio.create_task(bound())
            try:
                if then is not None:
                    await then(binder)
                await asyncio.wait_for(binding, 120)
            except VolumeError as error:
                return str(error)
            finally:
                binding.cancel()
                await asyncio.gather(binding, return_exceptions=True)
        return None


@pytest.fixture
async def storage(cluster: LocalCluster, namespace: str) -> AsyncIterator[Storage]:
    async with client_of(cluster) as client:
        made = Storage(client, namespace, Cache(clock=time.monotonic), [])
        made.cache.update_node(zoned(NODE))
        for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("disk", "berth-test.example/disk")):
            await made.make(
                STORAGE_CLASSES,
                f"{namespace}-{name}",
                {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"},
            )
        await made.make(
            PERSISTENT_VOLUMES,
            made.volume,
            {
                "spec": {
                    "capacity": {"storage": "2Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "storageClassName": f"{namespace}-local",
                    "hostPath": {"path": "/data"},
                }
            },
        )
        await made.claim("static", f"{namespace}-local")
        await made.claim("dynamic", f"{namespace}-disk")
        await made.look()
        yield made
        for resource, name in made.names:
            await client.delete(resource, name)


async def follow(storage: Storage, binder: VolumeBinder, claim: str) -> None:
    """Play the watches until the claim is bound."""
    while (await storage.read(PERSISTENT_VOLUME_CLAIMS, claim)).status.phase != "Bound":
        await asyncio.sleep(0.05)
    await storage.look()
    binder.storage_changed(storage.cache.state.volumes.claims[f"{storage.namespace}/{claim}"])


async def test_a_volume_that_changed_in_the_meantime_is_read_again(storage: Storage) -> None:
    pod = storage.user("static")
    await storage.patch(PERSISTENT_VOLUMES, storage.volume, {"metadata": {"labels": {"touched": "yes"}}})
    assert await storage.bind(pod, then=lambda binder: follow(storage, binder, "static")) is None
    volume = await storage.read(PERSISTENT_VOLUMES, storage.volume)
    assert volume.spec.claim_ref.name == "static"


async def test_a_volume_that_another_claim_took_is_left_to_it(storage: Storage) -> None:
    pod = storage.user("static")
    await storage.claim("thief", f"{storage.namespace}-local")
    thief = await storage.read(PERSISTENT_VOLUME_CLAIMS, "thief")
    reference = {"namespace": storage.namespace, "name": "thief", "uid": thief.metadata.uid}
    await storage.patch(PERSISTENT_VOLUMES, storage.volume, {"spec": {"claimRef": reference}})
    assert await storage.bind(pod) == (
        f"volume {storage.volume} was taken by another claim than {storage.namespace}/static"
    )
    volume = await storage.read(PERSISTENT_VOLUMES, storage.volume)
    assert volume.spec.claim_ref.name == "thief"


async def test_a_claim_that_changed_in_the_meantime_is_read_again(storage: Storage) -> None:
    pod = storage.user("dynamic")
    await storage.patch(PERSISTENT_VOLUME_CLAIMS, "dynamic", {"metadata": {"labels": {"touched": "yes"}}})
    assert await storage.bind(pod, deadline=3.0) == "claims were not bound within 3 s"
    claim = await storage.read(PERSISTENT_VOLUME_CLAIMS, "dynamic")
    assert claim.metadata.annotations[SELECTED_NODE] == NODE


async def test_a_claim_selected_for_another_node_is_not_overwritten(storage: Storage) -> None:
    pod = storage.user("dynamic")
    await storage.patch(PERSISTENT_VOLUME_CLAIMS, "dynamic", {"metadata": {"annotations": {SELECTED_NODE: "n9"}}})
    assert await storage.bind(pod) == f"claim {storage.namespace}/dynamic is being provisioned for node n9"
    claim = await storage.read(PERSISTENT_VOLUME_CLAIMS, "dynamic")
    assert claim.metadata.annotations[SELECTED_NODE] == "n9"


async def test_a_claim_that_was_deleted(storage: Storage) -> None:
    pod = storage.user("dynamic")
    await storage.delete(PERSISTENT_VOLUME_CLAIMS, "dynamic")
    assert await storage.bind(pod) == f"claim {storage.namespace}/dynamic was deleted"


async def test_a_volume_that_was_deleted(storage: Storage) -> None:
    pod = storage.user("static")
    await storage.delete(PERSISTENT_VOLUMES, storage.volume)
    assert await storage.bind(pod) == (f"volume {storage.volume} for claim {storage.namespace}/static was deleted")


async def test_a_pod_that_goes_ends_the_wait(storage: Storage) -> None:
    pod = storage.user("dynamic")

    async def go(binder: VolumeBinder) -> None:
        while SELECTED_NODE not in (await storage.read(PERSISTENT_VOLUME_CLAIMS, "dynamic")).metadata.annotations:
            await asyncio.sleep(0.05)
        storage.cache.delete_pod(pod)
        binder.pod_gone(pod.metadata.uid)

    assert await storage.bind(pod, then=go) == "the pod has ended or was deleted"


async def test_a_node_that_goes_ends_the_wait(storage: Storage) -> None:
    pod = storage.user("dynamic")
    storage.cache.delete_node(zoned(NODE))
    assert await storage.bind(pod) == f"node {NODE} is not known"


async def test_what_was_written_before_a_crash_is_not_written_again(storage: Storage) -> None:
    claim = await storage.read(PERSISTENT_VOLUME_CLAIMS, "static")
    reference = {"namespace": storage.namespace, "name": "static", "uid": claim.metadata.uid}
    await storage.patch(PERSISTENT_VOLUMES, storage.volume, {"spec": {"claimRef": reference}})
    await storage.patch(PERSISTENT_VOLUME_CLAIMS, "dynamic", {"metadata": {"annotations": {SELECTED_NODE: NODE}}})
    await storage.look()
    before = await storage.read(PERSISTENT_VOLUME_CLAIMS, "dynamic")
    assert await storage.bind(storage.user("dynamic"), deadline=0.2) == "claims were not bound within 0.2 s"
    after = await storage.read(PERSISTENT_VOLUME_CLAIMS, "dynamic")
    # Kubernetes' own controller may have named the provisioner meanwhile.
    assert before.metadata.annotations.items() <= after.metadata.annotations.items()
    assert msgspec.to_builtins(before.spec) == msgspec.to_builtins(after.spec)
    binding = storage.bind(storage.user("static"), then=lambda binder: follow(storage, binder, "static"))
    assert await binding is None
