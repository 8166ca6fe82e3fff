"""What the hostile tenant makes with large objects: large enough to hurt, few enough for the API server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from bench.soak.hostile import ACTS, Act
from bench.soak.large import LARGE_ACTS, NAMED, QUOTA, large_groups, large_statuses, large_topologies, named_configmaps
from bench.soak.tenant import Tenant
from berth.api.appgroup import AppGroup
from berth.api.networktopology import NetworkTopology
from berth.kube.client import ApiClient
from berth.kube.objects import Node, ObjectMeta
from berth.kube.resources import APP_GROUPS, NETWORK_TOPOLOGIES, Resource

LARGE = 500_000
"""Bytes from which on an object is large."""
ETCD_LIMIT = 1_500_000
"""Bytes of an object that are stored at the most."""
MODELS: dict[str, Any] = {"appgroups": AppGroup, "networktopologies": NetworkTopology}


class Stored:
    """An API server that takes everything."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.writes = 0

    async def create(self, resource: Resource[Any], body: dict[str, Any], *, namespace: str) -> None:
        metadata = {**body["metadata"], "namespace": namespace}
        self.objects[resource.plural, body["metadata"]["name"]] = {**body, "metadata": metadata}

    async def merge_patch(self, resource: Resource[Any], name: str, body: dict[str, Any], **_: Any) -> None:
        known = self.objects[resource.plural, name]
        self.objects[resource.plural, name] = {
            **known,
            **{part: {**known.get(part, {}), **fields} for part, fields in body.items()},
        }
        self.writes += 1

    async def apply(
        self, resource: Resource[Any], name: str, body: dict[str, Any], *, subresource: str, **_: Any
    ) -> None:
        self.objects[resource.plural, name][subresource] = body[subresource]
        self.writes += 1

    async def list_all(self, resource: Resource[Any], **_: Any) -> list[Any]:
        names = [name for plural, name in self.objects if plural == resource.plural]
        return [SimpleNamespace(metadata=ObjectMeta(name=name)) for name in names]

    async def delete(self, resource: Resource[Any], name: str, **_: Any) -> None:
        del self.objects[resource.plural, name]


@pytest.mark.parametrize(
    ("act", "kind", "objects", "large"),
    [
        pytest.param(large_groups, APP_GROUPS, QUOTA, QUOTA, id="groups"),
        pytest.param(large_statuses, APP_GROUPS, QUOTA, QUOTA, id="statuses"),
        pytest.param(large_topologies, NETWORK_TOPOLOGIES, QUOTA, QUOTA, id="topologies"),
        pytest.param(named_configmaps, NETWORK_TOPOLOGIES, NAMED, 0, id="named ConfigMaps"),
    ],
)
async def test_an_act_makes_what_the_api_server_takes(act: Act, kind: Resource[Any], objects: int, large: int) -> None:
    stored = Stored()
    nodes = [Node(metadata=ObjectMeta(name=name)) for name in ("n1", "n2")]
    tenant = Tenant(cast(ApiClient, stored), "hostile", nodes=nodes)
    await act(tenant)
    assert not tenant.refusals
    assert stored.writes >= objects, "each is changed"
    sizes = [len(msgspec.json.encode(body)) for body in stored.objects.values()]
    assert sum(size > LARGE for size in sizes) == large
    assert max(sizes) < ETCD_LIMIT
    found = [body for (plural, _), body in stored.objects.items() if plural == kind.plural]
    assert len(found) == objects
    assert MODELS[kind.plural].parse(found[0]).metadata.namespace == "hostile"
    await tenant.clear()
    assert not stored.objects


def test_the_hostile_tenant_plays_them() -> None:
    assert set(LARGE_ACTS) <= set(ACTS)
    names = [act.__name__ for act in ACTS]
    assert len(names) == len(set(names)), "a name chooses an act on the command line"
