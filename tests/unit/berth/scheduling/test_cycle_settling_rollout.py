"""How long pods of Deployments that are changed together wait for each other."""

from __future__ import annotations

import pytest

from berth.scheduling.settling import DEPLOYMENTS_GATHER_SECONDS, GATHER_SECONDS
from tests.support.placement import chain, group_object
from tests.unit.berth.scheduling.replica_plan.test_rollout import replica
from tests.unit.berth.scheduling.test_cycle_settling import Stage


@pytest.mark.parametrize("revision", ["old", "new"], ids=["it grows", "it is rolled out"])
def test_pods_of_several_deployments_are_planned_together(revision: str) -> None:
    """Those of other Deployments come further apart, as a controller writes at a rate."""
    stage = Stage()
    stage.cache.update_group(group_object("shop", *chain("a", "b")))
    stage.cache.update_pod(replica("a1", "old", on="n1"))
    stage.cache.update_pod(replica("b1", "old", on="n1"))
    stage.add(replica("a2", revision))
    assert stage.schedule() == set()
    assert stage.schedule(seconds=GATHER_SECONDS) == set()
    stage.add(replica("b2", revision))
    stage.schedule(seconds=DEPLOYMENTS_GATHER_SECONDS)
    assert stage.together == {2}
    assert len(stage.placed) == 2


def test_pods_of_others_that_come_first_do_not_hurry_those_of_deployments() -> None:
    """Another controller makes those of a StatefulSet, which waits for none of the writes of Deployments."""
    stage = Stage()
    stage.cache.update_group(group_object("shop", *chain("a", "b", "c")))
    stage.cache.update_pod(replica("a1", "old", on="n1"))
    stage.cache.update_pod(replica("b1", "old", on="n1"))
    stage.add(replica("c1", "old", kind="StatefulSet"))
    assert stage.schedule() == set()
    stage.add(replica("a2", "old"))
    assert stage.schedule(seconds=GATHER_SECONDS / 2) == set()
    assert stage.schedule(seconds=GATHER_SECONDS) == set()
    stage.add(replica("b2", "old"))
    stage.schedule(seconds=DEPLOYMENTS_GATHER_SECONDS)
    assert stage.together == {3}


@pytest.mark.parametrize("revision", ["old", "new"], ids=["it grows", "it is rolled out"])
@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_the_only_deployment_of_an_application_has_no_others_to_wait_for(kind: str, revision: str) -> None:
    stage = Stage()
    stage.cache.update_group(group_object("shop", *chain("a", "b")))
    stage.cache.update_pod(replica("a1", "old", on="n1"))
    stage.cache.update_pod(replica("b1", "old", on="n1", kind=kind))
    stage.add(replica("a2", revision))
    assert stage.schedule() == set()
    placed = stage.schedule(seconds=GATHER_SECONDS)
    assert placed == ({f"a-{revision}-a2"} if kind == "StatefulSet" else set())
