"""A tenant: creates objects in a namespace of its own, a bounded number at a time, and removes them again."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import Node
from berth.kube.resources import (
    APP_GROUPS,
    CONFIGMAPS,
    NAMESPACES,
    NETWORK_TOPOLOGIES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    Resource,
)

GROUP_LABEL = "appgroup.diktyo.x-k8s.io"
WORKLOAD_LABEL = "appgroup.diktyo.x-k8s.io.workload"
Workloads: TypeAlias = Mapping[str, Mapping[str, Mapping[str, str | int]]]
"""What each workload depends on, with the fields of the dependency."""
KINDS: tuple[Resource[Any], ...] = (
    PODS,
    APP_GROUPS,
    NETWORK_TOPOLOGIES,
    CONFIGMAPS,
    SERVICES,
    PERSISTENT_VOLUME_CLAIMS,
)


class Tenant:
    """Somebody with rights in one namespace."""

    def __init__(self, client: ApiClient, namespace: str, *, nodes: Sequence[Node], parallel: int = 4) -> None:
        """Prepare; `parallel` requests at a time at most."""
        self.client = client
        self.namespace = namespace
        self.nodes = nodes
        """the cluster's nodes, which everybody may see"""
        self.refusals: Counter[str] = Counter()
        """what the API server did not take, by its words"""
        self._slots = asyncio.Semaphore(parallel)

    async def open(self) -> None:
        """Create the namespace if it is not there."""
        with self._counted():
            await self.client.create(NAMESPACES, {"metadata": {"name": self.namespace}})

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        try:
            yield
        except ApiError as error:
            if error.status not in (404, 409):
                self.refusals[str(error)[:80]] += 1
        except TRANSPORT_ERRORS as error:
            self.refusals[repr(error)[:80]] += 1

    async def create(self, resource: Resource[Any], body: dict[str, Any]) -> None:
        """Create an object; a refusal is counted and nothing else."""
        async with self._slots:
            with self._counted():
                typed = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
                await self.client.create(resource, typed, namespace=self.namespace)

    async def create_everywhere(self, resource: Resource[Any], body: dict[str, Any]) -> None:
        """Create an object of no namespace, if it is not there."""
        async with self._slots:
            with self._counted():
                typed = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
                await self.client.create(resource, typed)

    async def create_all(self, resource: Resource[Any], bodies: Iterable[dict[str, Any]]) -> None:
        """Create objects, `parallel` at a time."""
        await asyncio.gather(*(self.create(resource, body) for body in bodies))

    async def patch(self, resource: Resource[Any], name: str, body: dict[str, Any]) -> None:
        """Change an object by a merge patch."""
        async with self._slots:
            with self._counted():
                await self.client.merge_patch(resource, name, body, namespace=self.namespace)

    async def patch_status(self, name: str, status: dict[str, Any]) -> None:
        """Change a pod's status, as its kubelet would."""
        async with self._slots:
            with self._counted():
                await self.client.strategic_patch(
                    PODS, name, {"status": status}, namespace=self.namespace, subresource="status"
                )

    async def apply_status(self, resource: Resource[Any], name: str, status: dict[str, Any]) -> None:
        """Write a status, as who may write that of the kind can."""
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "status": status}
        async with self._slots:
            with self._counted():
                await self.client.apply(
                    resource, name, body, field_manager="tenant", namespace=self.namespace, subresource="status"
                )

    async def delete(self, resource: Resource[Any], name: str) -> None:
        """Delete an object."""
        async with self._slots:
            with self._counted():
                await self.client.delete(resource, name, namespace=self.namespace)

    async def clear(self) -> None:
        """Delete everything that the tenant made."""
        for resource in KINDS:
            with self._counted():
                found = await self.client.list_all(resource, namespace=self.namespace)
                await asyncio.gather(*(self.delete(resource, item.metadata.name) for item in found))


def pod(
    name: str,
    *,
    group: str = "",
    workload: str = "",
    labels: dict[str, str] | None = None,
    requests: dict[str, str] | None = None,
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod for Berth that ends at once when it is deleted."""
    own = {GROUP_LABEL: group, WORKLOAD_LABEL: workload} if group else {}
    resources = {"requests": {"cpu": "1m"} if requests is None else requests}
    resources["limits"] = {key: value for key, value in resources["requests"].items() if "/" in key}
    return {
        "metadata": {"name": name, "labels": {**own, **(labels or {})}, **(metadata or {})},
        "spec": {
            "schedulerName": "berth-scheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "main", "resources": resources}],
            **spec,
        },
    }


def app_group(name: str, workloads: Workloads) -> dict[str, Any]:
    """An AppGroup: what each workload depends on, with fields such as minBandwidth."""
    listed = [
        {
            "workload": _deployment(workload),
            "dependencies": [{"workload": _deployment(to), **rest} for to, rest in dependencies.items()],
        }
        for workload, dependencies in workloads.items()
    ]
    spec = {"numMembers": len(workloads), "topologySortingAlgorithm": "KahnSort", "workloads": listed}
    return {"metadata": {"name": name}, "spec": spec}


def _deployment(name: str) -> dict[str, str]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "selector": name}
