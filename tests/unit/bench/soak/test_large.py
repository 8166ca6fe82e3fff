"""What the hostile tenant makes with large objects: large enough to hurt, few enough for the API server."""

from __future__ import annotations

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
from tests.support.stored import Stored

LARGE = 500_000
"""Bytes from which on an object is large."""
ETCD_LIMIT = 1_500_000
"""Bytes of an object that are stored at the most."""
MODELS: dict[str, Any] = {"appgroups": AppGroup, "networktopologies": NetworkTopology}


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
