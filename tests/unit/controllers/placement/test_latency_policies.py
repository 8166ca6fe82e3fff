"""LatencyPolicies reach what plugins read, and leave it again."""

from __future__ import annotations

from typing import Any, cast

import pytest

from berth.kube.client import ApiClient
from berth.kube.objects import CustomObject
from berth.scheduling.cache.user_latency import UserLatencyTable
from controllers.placement.latency_policies import LatencyPolicies

WEB = "shop/Deployment/web"


def policy(**spec: Any) -> CustomObject:
    nodes = [{"node": "a", "p50Microseconds": 20_000}, {"node": "b"}]
    return CustomObject.of(
        {
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"targetRef": {"name": "web"}} | spec,
            "status": {"nodes": nodes},
        }
    )


@pytest.fixture
def table() -> UserLatencyTable:
    return UserLatencyTable()


@pytest.fixture
def policies(table: UserLatencyTable) -> LatencyPolicies:
    return LatencyPolicies(cast("ApiClient", None), table, deferring=lambda handler, _: handler)


def test_a_policy_comes_changes_and_goes(policies: LatencyPolicies, table: UserLatencyTable) -> None:
    policies.on_policy(None, policy())
    known = table.of(WEB)
    assert known is not None
    assert (known.costs, known.targets) == ({"a": 200.0}, frozenset())
    policies.on_policy(policy(), policy(targetRef={"name": "db"}))
    assert table.of(WEB) is None
    assert table.of("shop/Deployment/db") is not None
    policies.on_policy(policy(targetRef={"name": "db"}), None)
    assert len(table) == 0


def test_one_that_cannot_be_read_is_left_out(policies: LatencyPolicies, table: UserLatencyTable) -> None:
    policies.on_policy(None, policy())
    policies.on_policy(policy(), policy(softMaxLatency="near"))
    assert table.of(WEB) is None
