"""How long the pods of a rollout wait for each other."""

from __future__ import annotations

import pytest

from berth.scheduling.settling import GATHER_SECONDS, ROLLOUT_GATHER_SECONDS
from tests.support.placement import chain, group_object
from tests.unit.berth.scheduling.replica_plan.test_rollout import replica
from tests.unit.berth.scheduling.test_cycle_settling import Stage


@pytest.mark.parametrize("revision", ["old", "new"], ids=["it grows", "it is rolled out"])
def test_pods_of_a_rollout_gather_longer_than_further_replicas(revision: str) -> None:
    """Those of other Deployments come further apart, as a controller writes at a rate."""
    stage = Stage()
    stage.cache.update_group(group_object("shop", *chain("a", "b")))
    stage.cache.update_pod(replica("a1", "old", on="n1"))
    stage.cache.update_pod(replica("b1", "old", on="n1"))
    stage.add(replica("a2", revision))
    assert stage.schedule() == set()
    placed = stage.schedule(seconds=GATHER_SECONDS)
    assert placed == (set() if revision == "new" else {"a-old-a2"})
    stage.add(replica("b2", revision))
    stage.schedule(seconds=ROLLOUT_GATHER_SECONDS)
    assert stage.together == ({2} if revision == "new" else {1})
    assert len(stage.placed) == 2


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_the_only_deployment_of_an_application_has_no_others_to_wait_for(kind: str) -> None:
    stage = Stage()
    stage.cache.update_group(group_object("shop", *chain("a", "b")))
    stage.cache.update_pod(replica("a1", "old", on="n1"))
    stage.cache.update_pod(replica("b1", "old", on="n1", kind=kind))
    stage.add(replica("a2", "new"))
    assert stage.schedule() == set()
    placed = stage.schedule(seconds=GATHER_SECONDS)
    assert placed == ({"a-new-a2"} if kind == "StatefulSet" else set())
