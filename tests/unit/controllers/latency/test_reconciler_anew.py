"""A Deployment that is deleted and made anew while a pod moves, before anybody looks: its number is its own."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.latency.objects import Deployment
from tests.unit.controllers.latency.test_reconciler import FAR, KEY, NEAR, Stand, moving, refused, running, stand

__all__ = ["refused", "stand"]


def made_anew(replicas: int) -> Deployment:
    found = running(replicas)
    found.metadata.uid = "another"
    return found


def raised(deployment: str) -> dict[str, Any]:
    """A status while the pod of a Deployment of one replica moves, by the Deployment's uid."""
    status = moving(seen=True)
    status["surge"]["deployment"] = deployment
    return status


@pytest.mark.parametrize(
    "scheduler", [pytest.param("berth-scheduler", id="of ours"), pytest.param("other", id="others'")]
)
async def test_two_replicas_that_somebody_wants_are_not_taken_for_one_and_its_surge(
    stand: Stand, scheduler: str
) -> None:
    stand.wants(raised(running(1).metadata.uid), moves={"maxPerHour": 0})
    anew = made_anew(2)
    anew.spec.template.spec.scheduler_name = scheduler
    stand.workloads.deployment_changed(running(2), anew)
    stand.measured(a=FAR, b=NEAR)
    for _ in range(2):
        await stand.reconciler.reconcile(KEY)
    policy = stand.policies.get(KEY)
    assert policy is not None
    assert (policy.status.surge, [move.outcome for move in policy.status.moves]) == (None, ["Cancelled"])
    assert {kind for kind, _ in stand.writes} == {"status"}


@pytest.mark.parametrize(
    ("deployment", "scaled"),
    [pytest.param("another", ["scale"], id="the same"), pytest.param("d", [], id="another by now")],
)
async def test_a_policy_that_goes_lets_down_what_it_raised_itself(
    stand: Stand, deployment: str, scaled: list[str]
) -> None:
    stand.wants(raised(deployment))
    stand.workloads.deployment_changed(running(2), made_anew(2))
    stand.policies.remove(KEY)
    assert not await stand.reconciler.reconcile(KEY)
    assert [kind for kind, _ in stand.writes] == scaled
