"""The number of replicas that policies have raised: set back when they go, and what is told where it may not be set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from berth.scheduling.latency.moves import PATIENCE
from controllers.latency.raised import SETTLED_AFTER
from controllers.latency.reconciler import CONFLICT_DELAY
from controllers.latency.scaler import AGAIN
from tests.support.api_server import Answer, refusal
from tests.unit.controllers.latency.test_reconciler import FAR, KEY, NEAR, Stand, moving, pod, refused, running, stand

__all__ = ["refused", "stand"]
REFUSALS = [
    pytest.param(refusal(403, "Forbidden"), id="by rights, or a webhook"),
    pytest.param(refusal(400, "BadRequest"), id="by a webhook that states no code"),
    pytest.param(refusal(422, "Invalid"), id="by a policy of admission"),
]


@pytest.fixture(autouse=True)
def time(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stand.reconciler._scaler, "_clock", stand.clock)


async def one_pass(stand: Stand) -> None:
    """Look at the policy, however much processor time the pass before took."""
    stand.reconciler._rests.clear()
    assert await stand.reconciler.reconcile(KEY)


def scalings(stand: Stand) -> int:
    return [kind for kind, _ in stand.writes].count("scale")


@pytest.mark.parametrize("answer", REFUSALS)
async def test_who_wonders_is_told_once_and_it_is_tried_now_and_then(
    stand: Stand, refused: dict[str, Answer], answer: Answer
) -> None:
    refused["scale"] = answer
    stand.wants()
    stand.measured(a=FAR, b=NEAR)
    for _ in range(3):
        await one_pass(stand)
    policy = stand.policies.get(KEY)
    assert policy is not None
    [found] = [each for each in policy.status.conditions if each.type == "Moving"]
    assert (found.reason, stand.notes.reasons) == ("CreationRefused", ["MoveBegun", "ScalingRefused"])
    assert "the number of replicas may not be set: words" in found.message
    assert scalings(stand) == 1
    stand.clock.advance(AGAIN)
    await one_pass(stand)
    assert (scalings(stand), stand.notes.reasons.count("ScalingRefused")) == (2, 1)
    refused.clear()
    stand.clock.advance(AGAIN)
    await one_pass(stand)
    assert not stand.reconciler._scaler.refusal(running(1))


async def test_a_move_is_given_up_for_it_and_leaves_nothing_to_be_done(
    stand: Stand, refused: dict[str, Answer]
) -> None:
    refused["scale"] = refusal(403, "Forbidden")
    begun = datetime.now(UTC) - PATIENCE + timedelta(seconds=60)
    status = moving(seen=False)
    status["moves"][0]["startTime"] = begun.strftime("%Y-%m-%dT%H:%M:%SZ")
    stand.wants(status, moves={"maxPerHour": 0})  # no other begins
    stand.measured(a=FAR, b=NEAR)
    await one_pass(stand)
    stand.reconciler._clock = lambda: datetime.now(UTC) + timedelta(seconds=60)
    await one_pass(stand)
    policy = stand.policies.get(KEY)
    assert policy is not None
    [move] = policy.status.moves
    assert (move.outcome, move.refused, policy.status.surge) == ("Cancelled", True, None)
    assert not any(known.rejections for known in policy.status.nodes), "its node is not to blame"
    assert "MoveCancelled" in stand.notes.reasons
    stand.clock.advance(AGAIN)
    await one_pass(stand)
    assert scalings(stand) == 1


async def test_trouble_on_the_way_is_no_refusal(stand: Stand, refused: dict[str, Answer]) -> None:
    refused["scale"] = refusal(503, "ServiceUnavailable")
    stand.wants()
    stand.measured(a=FAR, b=NEAR)
    with pytest.raises(Exception, match="503"):
        await one_pass(stand)
    assert not stand.reconciler._scaler.refusal(running(1))


async def test_a_number_that_somebody_sets_makes_a_refusal_old_news(stand: Stand, refused: dict[str, Answer]) -> None:
    """What was refused was another number: pods that are awaited now are not kept by that."""
    refused["scale"] = refusal(403, "Forbidden")
    stand.wants()
    stand.measured(a=FAR, b=NEAR)
    await one_pass(stand)
    scaler = stand.reconciler._scaler
    assert scaler.refusal(running(1))
    assert not scaler.refusal(running(3))
    refused.clear()
    assert await scaler.scale(running(3), 3, 4), "it need not wait"


async def test_what_a_policy_leaves_is_tried_again_until_it_is_done(stand: Stand, refused: dict[str, Answer]) -> None:
    refused["scale"] = refusal(409, "Conflict")
    stand.wants(moving(seen=True))
    stand.workloads.deployment_changed(None, running(2))
    stand.policies.remove(KEY)
    assert await stand.reconciler.reconcile(KEY), "it is to be looked at again"
    assert CONFLICT_DELAY in stand.queue.delays
    refused.clear()
    assert not await stand.reconciler.reconcile(KEY)
    assert [kind for kind, _ in stand.writes] == ["scale", "scale"]


async def test_what_a_policy_raised_is_let_down_once_the_replica_set_knows_which_pod_was_evicted(stand: Stand) -> None:
    stand.wants(moving(seen=True))
    stand.workloads.deployment_changed(None, running(2))
    stand.appears(pod("web-2", "u2", "b"))
    stand.measured(a=FAR, b=NEAR)
    await stand.reconciler.reconcile(KEY)
    stand.policies.remove(KEY)
    assert await stand.reconciler.reconcile(KEY)
    stand.clock.advance(SETTLED_AFTER.total_seconds())
    assert not await stand.reconciler.reconcile(KEY)
    assert [kind for kind, _ in stand.writes] == ["status", "eviction", "scale"]


@pytest.mark.parametrize(
    ("target", "there", "scaled"),
    [
        pytest.param("other", 2, [1], id="another Deployment"),
        pytest.param("missing", 2, [1], id="one that is not there"),
        pytest.param("other", 3, [], id="somebody has scaled the former one since"),
        pytest.param("web", 2, [], id="the same"),
    ],
)
async def test_what_was_raised_is_let_down_although_the_policy_is_about_another_deployment_by_now(
    stand: Stand, target: str, there: int, scaled: list[int]
) -> None:
    status = moving(seen=True)
    status["surge"]["deployment"] = running(2).metadata.uid
    stand.wants(status, targetRef={"name": target}, hardMaxLatency=80)
    stand.workloads.deployment_changed(running(1), running(there))
    other = running(5)
    other.metadata.name, other.metadata.uid = "other", "e"
    stand.workloads.deployment_changed(None, other)
    await one_pass(stand)
    assert [body["spec"]["replicas"] for kind, body in stand.writes if kind == "scale"] == scaled
    assert all("deployments/web/" in each.path for each in stand.server.requests if each.path.endswith("scale"))
    policy = stand.policies.get(KEY)
    assert policy is not None
    assert (policy.status.surge is None) == (target != "web")


async def test_what_is_raised_of_a_former_deployment_is_remembered_until_it_is_let_down(
    stand: Stand, refused: dict[str, Answer]
) -> None:
    refused["scale"] = refusal(409, "Conflict")
    status = moving(seen=True)
    status["surge"]["deployment"] = running(2).metadata.uid
    stand.wants(status, targetRef={"name": "missing"}, hardMaxLatency=80)
    stand.workloads.deployment_changed(running(1), running(2))
    await one_pass(stand)
    assert [kind for kind, _ in stand.writes] == ["scale"]
    assert CONFLICT_DELAY in stand.queue.delays


def about_another(stand: Stand, target: str) -> None:
    """A policy that has raised one Deployment is about another by now; the one named `other` is there."""
    status = moving(seen=True)
    status["surge"]["deployment"] = running(2).metadata.uid
    stand.wants(status, targetRef={"name": target}, hardMaxLatency=80)
    stand.workloads.deployment_changed(running(1), running(2))
    other = running(2)
    other.metadata.name, other.metadata.uid = "other", "e"
    stand.workloads.deployment_changed(None, other)


@pytest.mark.parametrize("target", ["other", "missing"])
async def test_what_is_raised_of_a_former_deployment_is_let_down_though_the_policy_is_gone_before(
    stand: Stand, target: str
) -> None:
    about_another(stand, target)
    stand.policies.remove(KEY)
    assert not await stand.reconciler.reconcile(KEY)
    assert [(kind, body["spec"]["replicas"]) for kind, body in stand.writes] == [("scale", 1)]
    assert "deployments/web/" in stand.server.requests[0].path


@pytest.mark.parametrize("target", ["other", "missing"])
@pytest.mark.parametrize("answer", REFUSALS)
async def test_who_wonders_is_told_where_a_former_deployment_may_not_be_set_back(
    stand: Stand, refused: dict[str, Answer], answer: Answer, target: str
) -> None:
    refused["scale"] = answer
    about_another(stand, target)
    for _ in range(3):
        await one_pass(stand)
    policy = stand.policies.get(KEY)
    assert policy is not None
    [told] = [each for each in policy.status.conditions if each.type == "Working"]
    assert (told.reason, sorted(stand.notes.reasons)) == ("ReplicasLeft", ["ReplicasLeft", "ScalingRefused"])
    assert "Deployment web" in told.message
    assert "the number of replicas may not be set: words" in told.message
    assert policy.status.surge is not None, "else nobody knows what the number was"
    assert scalings(stand) == 1
    refused.clear()
    stand.clock.advance(AGAIN)
    await one_pass(stand)
    policy = stand.policies.get(KEY)
    assert policy is not None
    assert (scalings(stand), policy.status.surge) == (2, None), "it goes on"
