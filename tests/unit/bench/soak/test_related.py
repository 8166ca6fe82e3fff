"""What the hostile tenant makes of rules between pods: as many as it says, each one that the API server stores."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from bench.soak import related
from bench.soak.hostile import ACTS, Act
from bench.soak.related import RELATED_ACTS
from bench.soak.tenant import Tenant
from berth.kube.client import ApiClient
from berth.kube.objects import Node, ObjectMeta
from berth.kube.resources import APP_GROUPS, PODS, Resource
from tests.support.stored import Stored

ETCD_LIMIT = 1_500_000
"""Bytes of an object that are stored at the most."""


@pytest.mark.parametrize(
    ("act", "made"),
    [
        pytest.param(related.topology_keys, {APP_GROUPS: 1, PODS: 60}, id="keys"),
        pytest.param(related.everybody, {PODS: 20}, id="everybody"),
        pytest.param(related.backwards, {APP_GROUPS: 1, PODS: 400}, id="chain"),
    ],
)
async def test_an_act_makes_what_it_says(act: Act, made: dict[Resource[Any], int]) -> None:
    stored = Stored()
    tenant = Tenant(cast(ApiClient, stored), "hostile", nodes=[Node(metadata=ObjectMeta(name="n1"))])
    await act(tenant)
    assert not tenant.refusals
    kinds = [plural for plural, _ in stored.objects]
    assert {plural: kinds.count(plural) for plural in kinds} == {kind.plural: count for kind, count in made.items()}
    assert max(len(msgspec.json.encode(body)) for body in stored.objects.values()) < ETCD_LIMIT
    await tenant.clear()
    assert not stored.objects


def test_the_hostile_tenant_plays_them() -> None:
    assert set(RELATED_ACTS) <= set(ACTS)
