"""What a tenant can do with objects of a megabyte, as many as a ResourceQuota leaves him, and with many small ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from bench.soak.tenant import Tenant, Workloads, app_group
from berth.api.labels import LABEL_ZONE as ZONE
from berth.kube.resources import APP_GROUPS, CONFIGMAPS, NETWORK_TOPOLOGIES, Resource

QUOTA: Final = 20
"""Large objects at a time: more would hold up the API server itself, which a ResourceQuota is there for."""
WORKLOADS: Final = 2000
"""Of a large AppGroup, with five dependencies each."""
PLACES: Final = 10_000
"""Zones that a large NetworkTopology connects."""
NAMED: Final = 300
"""NetworkTopologies that each name a ConfigMap of their own."""
EDITS: Final = 2
"""Changes of each object."""


async def large_groups(tenant: Tenant) -> None:
    """AppGroups of a megabyte, each edited so that its order is computed and written again."""
    names = [f"large-{n}" for n in range(QUOTA)]
    tree: Workloads = {f"w{n}": {f"w{(n + k) % WORKLOADS}": {} for k in range(1, 6)} for n in range(WORKLOADS)}
    await tenant.create_all(APP_GROUPS, [app_group(name, tree) for name in names])
    for turn in range(EDITS):
        algorithm = "KahnSort" if turn % 2 else "TarjanSort"
        await _edit(tenant, APP_GROUPS, names, {"spec": {"topologySortingAlgorithm": algorithm}})


async def large_statuses(tenant: Tenant) -> None:
    """Small AppGroups with a status of a megabyte that their controller did not write."""
    names = [f"written-{n}" for n in range(QUOTA)]
    await tenant.create_all(APP_GROUPS, [app_group(name, {"a": {"b": {}}, "b": {}}) for name in names])
    workload = {"kind": "Deployment", "name": "w", "selector": "s" * 100}
    order = [{"workload": {**workload, "name": f"w{n}"}, "index": n + 1} for n in range(6000)]
    for _ in range(EDITS):
        for name in names:
            await tenant.apply_status(APP_GROUPS, name, {"topologyOrder": order})


async def large_topologies(tenant: Tenant) -> None:
    """NetworkTopologies that each connect thousands of zones in a chain, edited and labelled."""
    names = [f"large-{n}" for n in range(QUOTA)]
    origins = [
        {"origin": f"zone-{n}", "costList": [{"destination": f"zone-{n + 1}", "networkCost": 5}]} for n in range(PLACES)
    ]
    weights = [{"name": "UserDefined", "topologyList": [{"topologyKey": ZONE, "originList": origins}]}]
    spec = {"configmapName": "", "weights": weights}
    await tenant.create_all(NETWORK_TOPOLOGIES, [_topology(name, spec) for name in names])
    for turn in range(EDITS):
        await _edit(tenant, NETWORK_TOPOLOGIES, names, {"metadata": {"labels": {"turn": str(turn)}}})


async def named_configmaps(tenant: Tenant) -> None:
    """Hundreds of NetworkTopologies, each with the measurements of a ConfigMap of its own, which change."""
    names = [f"named-{n}" for n in range(NAMED)]
    a, b = (node.metadata.name for node in tenant.nodes[:2])
    key = f"netperf.p90.latency.milliseconds.origin.{a}.destination.{b}"
    await tenant.create_all(CONFIGMAPS, [{"metadata": {"name": name}, "data": {key: "1"}} for name in names])
    bodies = [_topology(name, {"configmapName": name, "weights": []}) for name in names]
    await tenant.create_all(NETWORK_TOPOLOGIES, bodies)
    for turn in range(EDITS):
        await _edit(tenant, CONFIGMAPS, names, {"data": {key: str(turn + 2)}})


def _topology(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


async def _edit(tenant: Tenant, resource: Resource[Any], names: Sequence[str], change: dict[str, Any]) -> None:
    for name in names:
        await tenant.patch(resource, name, change)


LARGE_ACTS: Final[Sequence[Callable[[Tenant], Awaitable[None]]]] = (
    large_groups,
    large_statuses,
    large_topologies,
    named_configmaps,
)
