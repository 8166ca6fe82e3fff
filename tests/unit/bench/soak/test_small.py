"""What the hostile tenant makes of small objects: as many as it says, each one that the API server stores."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from bench.soak import small
from bench.soak.hostile import ACTS, Act
from bench.soak.small import SMALL_ACTS
from bench.soak.tenant import Tenant
from berth.kube.client import ApiClient
from berth.kube.objects import Node, ObjectMeta
from berth.kube.resources import APP_GROUPS, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, STORAGE_CLASSES, Resource
from tests.support.stored import Stored

ETCD_LIMIT = 1_500_000
"""Bytes of an object that are stored at the most."""


@pytest.mark.parametrize(
    ("act", "made", "writes"),
    [
        pytest.param(small.small_groups, {APP_GROUPS: 20, PODS: 40, SERVICES: 1}, 5, id="groups"),
        pytest.param(small.edited_all_the_time, {APP_GROUPS: 1, PODS: 600}, 20, id="edited"),
        pytest.param(small.services_for_all, {APP_GROUPS: 1, PODS: 200, SERVICES: 201}, 5, id="services"),
        pytest.param(small.widest_labels, {PODS: 20}, 0, id="labels"),
        pytest.param(small.claims, {PODS: 5, PERSISTENT_VOLUME_CLAIMS: 1000, STORAGE_CLASSES: 1}, 0, id="claims"),
        pytest.param(small.ports, {APP_GROUPS: 1, PODS: 60}, 0, id="ports"),
        pytest.param(small.all_different, {APP_GROUPS: 1, PODS: 1000}, 0, id="all-different"),
        pytest.param(small.flood, {PODS: 5040}, 0, id="flood"),
    ],
)
async def test_an_act_makes_what_it_says(
    act: Act, made: dict[Resource[Any], int], writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"GROUPS": 20, "CHANGES": 5, "PAUSE": 0.0, "FLOOD_PACE": 0.0}.items():
        monkeypatch.setattr(small, name, value)
    stored = Stored()
    nodes = [Node(metadata=ObjectMeta(name="n1"))]
    tenant = Tenant(cast(ApiClient, stored), "hostile", nodes=nodes)
    await act(tenant)
    assert not tenant.refusals
    assert stored.writes == writes
    kinds = [plural for plural, _ in stored.objects]
    assert {plural: kinds.count(plural) for plural in kinds} == {kind.plural: count for kind, count in made.items()}
    assert max(len(msgspec.json.encode(body)) for body in stored.objects.values()) < ETCD_LIMIT
    for (plural, _), body in stored.objects.items():
        for key, value in body["metadata"].get("labels", {}).items():
            assert max(len(key), len(value)) <= 63, plural
    await tenant.clear()
    assert {plural for plural, _ in stored.objects} <= {STORAGE_CLASSES.plural}, "which is everybody's"


def test_the_hostile_tenant_plays_them() -> None:
    assert set(SMALL_ACTS) <= set(ACTS)
