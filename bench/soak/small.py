"""What a tenant can do with thousands of small objects, with Services and claims, and with objects that come and go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from bench.soak.tenant import Tenant, Workloads, app_group, pod
from berth.kube.resources import (
    APP_GROUPS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    STORAGE_CLASSES,
)

GROUPS: Final = 1500
"""Small AppGroups."""
CHANGES: Final = 100
"""Changes of a Service, or of an AppGroup, one after another."""
PAUSE: Final = 0.05
"""Seconds between two of them."""
CLAIMS: Final = 1000
"""Claims of one pod."""
FLOOD: Final = 84
"""Pods at a time in a flood."""
FLOOD_TIMES: Final = 60
"""How often, which makes 5040 pods."""
FLOOD_PACE: Final = 1.0
"""Seconds from one time to the next."""
LONG: Final = "n" * 63
"""The longest value that a label may have."""


async def small_groups(tenant: Tenant) -> None:
    """Thousands of small AppGroups with bandwidth, all of them called through Services that change all the time."""
    tree: Workloads = {"a": {"b": {"minBandwidth": "1k"}}, "b": {}}
    names = [f"small-{n}" for n in range(GROUPS)]
    await tenant.create_all(APP_GROUPS, [app_group(name, tree) for name in names])
    await tenant.create_all(PODS, [pod(f"{name}-{w}", group=name, workload=w) for name in names for w in "ab"])
    await _flip(tenant, "small")


async def edited_all_the_time(tenant: Tenant) -> None:
    """A group of 600 pods whose AppGroup changes every 50 ms while it is planned and bound."""
    trees: list[Workloads] = [{"a": {"b": {}}, "b": {}}, {"a": {}, "b": {"a": {}}}]
    await tenant.create(APP_GROUPS, app_group("edited", trees[0]))

    async def edit() -> None:
        for turn in range(4 * CHANGES):
            await tenant.patch(APP_GROUPS, "edited", {"spec": app_group("edited", trees[turn % 2])["spec"]})
            await asyncio.sleep(PAUSE)

    await asyncio.gather(edit(), tenant.create_all(PODS, _members("edited", 300)))


async def services_for_all(tenant: Tenant) -> None:
    """200 Services that select every pod of a group, and change what they do."""
    await tenant.create(APP_GROUPS, app_group("served", {"a": {"b": {"maxNetworkCost": 5}}, "b": {"a": {}}}))
    await tenant.create_all(PODS, _members("served", 100))
    bodies = [_service(f"served-{n}", {"appgroup.diktyo.x-k8s.io": "served"}) for n in range(200)]
    await tenant.create_all(SERVICES, bodies)
    await _flip(tenant, "served")


async def widest_labels(tenant: Tenant) -> None:
    """Pods with a thousand labels of the greatest length, no two alike, and rules that ask for all of them."""
    turn = time.monotonic_ns()
    for number in range(20):
        labels = {f"k{turn}-{number}-{n}"[:63].ljust(63, "x"): LONG for n in range(1000)}
        selector = {"labelSelector": {"matchLabels": labels}, "namespaceSelector": dict[str, Any]()}
        term = {"topologyKey": "kubernetes.io/hostname", **selector}
        rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        await tenant.create(PODS, pod(f"wide-{number}", labels=labels, affinity=rules))


async def claims(tenant: Tenant) -> None:
    """Pods with a thousand claims that wait for them."""
    body = {
        "metadata": {"name": "soak-wait"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    await tenant.create_everywhere(STORAGE_CLASSES, body)
    spec = {
        "storageClassName": "soak-wait",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    names = [f"claim-{n}" for n in range(CLAIMS)]
    await tenant.create_all(PERSISTENT_VOLUME_CLAIMS, [{"metadata": {"name": name}, "spec": spec} for name in names])
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    await tenant.create_all(PODS, [pod(f"claims-{n}", volumes=volumes) for n in range(5)])


async def ports(tenant: Tenant) -> None:
    """A group of 60 pods with a thousand host ports each, no two with the same."""
    await tenant.create(APP_GROUPS, app_group("ports", {"a": {"b": {}}, "b": {}}))
    bodies = []
    for number in range(60):
        wanted = range(1000 * number + 1, 1000 * number + 1001)
        listed = [{"containerPort": port, "hostPort": port} for port in wanted]
        containers = [{"name": "main", "image": "main", "ports": listed}]
        bodies.append(pod(f"ports-{number}", group="ports", workload="ab"[number % 2], containers=containers))
    await tenant.create_all(PODS, bodies)


async def all_different(tenant: Tenant) -> None:
    """A group of 1000 pods that all ask for different amounts."""
    await tenant.create(APP_GROUPS, app_group("unlike", {"a": {"b": {"maxNetworkCost": 50}}, "b": {}}))
    requests = [{"cpu": "1m", "memory": f"{n + 1}Ki"} for n in range(500)]
    bodies = [
        pod(f"unlike-{w}-{n}", group="unlike", workload=w, requests=amounts)
        for n, amounts in enumerate(requests)
        for w in "ab"
    ]
    await tenant.create_all(PODS, bodies)


async def flood(tenant: Tenant) -> None:
    """5040 pods of no application within a minute, if the API server takes them as quickly."""
    begin = time.monotonic()
    for turn in range(FLOOD_TIMES):
        await tenant.create_all(PODS, [pod(f"flood-{turn}-{n}") for n in range(FLOOD)])
        await asyncio.sleep(max(0.0, begin + (turn + 1) * FLOOD_PACE - time.monotonic()))


def _members(group: str, count: int) -> list[dict[str, Any]]:
    return [pod(f"{group}-{w}-{n}", group=group, workload=w) for n in range(count) for w in "ab"]


def _service(name: str, selector: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"selector": selector, "ports": [{"port": 80}]}}


async def _flip(tenant: Tenant, name: str) -> None:
    await tenant.create(SERVICES, _service(name, {"appgroup.diktyo.x-k8s.io.workload": "b"}))
    for turn in range(CHANGES):
        policy = "Cluster" if turn % 2 else "Local"
        await tenant.patch(SERVICES, name, {"spec": {"internalTrafficPolicy": policy}})
        await asyncio.sleep(PAUSE)


SMALL_ACTS: Final[Sequence[Callable[[Tenant], Awaitable[None]]]] = (
    small_groups,
    edited_all_the_time,
    services_for_all,
    widest_labels,
    claims,
    ports,
    all_different,
    flood,
)
