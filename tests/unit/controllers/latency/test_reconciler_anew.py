"""A Deployment that is deleted and made anew while a pod moves, before anybody looks: its number is its own.

And a policy that is about another Deployment from now on: what is known is of the users of the former one.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from berth.api.base import format_timestamp
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


KNOWN: dict[str, Any] = {
    "nodes": [{"node": "a", "state": "SoftValid", "source": "Meter", "p50Microseconds": 9000, "samples": 15}],
    "associations": [{"user": "u", "node": "a"}],
    "search": {"rule": "Hard", "visited": [{"node": "a", "visits": 1, "left": True}]},
}


def known(target: str | None) -> dict[str, Any]:
    """A status of a policy about that Deployment; None: of a time when statuses did not say."""
    now = format_timestamp(datetime.now(UTC))
    status = {
        "nodes": [each | {"time": now} for each in KNOWN["nodes"]],
        "associations": [each | {"lastSeenTime": now} for each in KNOWN["associations"]],
        "search": KNOWN["search"] | {"startTime": now, "roundTime": now},
        "observedGeneration": 0,
        "probedTime": now,
        "unreachableTime": now,
    }
    return status | ({"target": target} if target is not None else {})


@pytest.mark.parametrize(
    ("target", "there", "stays"),
    [
        pytest.param("web", True, True, id="the same"),
        pytest.param(None, True, True, id="nobody has written which"),
        pytest.param("db", True, False, id="another"),
        pytest.param("db", False, False, id="another, and this one is not there"),
    ],
)
async def test_what_is_known_of_users_of_another_deployment_says_nothing(
    stand: Stand, target: str | None, there: bool, stays: bool
) -> None:
    if not there:
        stand.workloads.deployment_changed(running(1), None)
    stand.wants(known(target), exploration=[], decisions="Published")
    stand.measured(a=FAR, b=NEAR)
    await stand.reconciler.reconcile(KEY)
    found = stand.policies.get(KEY)
    assert found is not None
    status = found.status
    assert status.target == "web"
    assert {each.node for each in status.nodes} == ({"a", "b"} if stays else set())
    assert (status.unreachable_time is not None) == stays
    assert any(each.left for each in (status.search.visited if status.search else ())) == stays
    assert (stand.observations.heard(KEY, datetime.now(UTC)) is not None) == stays


async def test_a_search_begins_anew_though_the_spec_changed_while_nothing_could_be_done(stand: Stand) -> None:
    stand.workloads.deployment_changed(running(1), None)
    stand.wants(known("web") | {"observedGeneration": 7}, decisions="Published")
    await stand.reconciler.reconcile(KEY)
    found = stand.policies.get(KEY)
    assert found is not None
    assert found.status.search is None
