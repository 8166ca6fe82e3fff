"""Evictions that are refused are tried again, later each time. That the API server refuses is tested on a real one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from controllers.latency.evictions import FIRST_DELAY, LONGEST_DELAY, Evictions
from tests.support.api_server import Answer, ApiServer, Request, api_server, refusal
from tests.support.placement import Clock
from tests.unit.controllers.latency.test_workloads import web_pod

POLICY = "shop/web"
CREATED = Answer(201, {})
GONE = Answer(404, refusal(404, "NotFound").body | {"details": {"kind": "pods", "name": "web-1"}})
BUDGET = refusal(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")

NAMED = "The disruption budget web-budget needs 1 healthy pods and has 1 currently"


class Stand:
    """Evictions of one policy, and a server that gives the answers that it is told, the last one again and again."""

    def __init__(self, server: ApiServer, client: ApiClient, answers: list[Answer]) -> None:
        self.server, self.answers, self.clock = server, answers, Clock()
        self.evictions = Evictions(client, self.clock)

    async def evict(self, uid: str = "u1") -> str | None:
        """What is said of it, if it is refused."""
        found = await self.evictions.evict(POLICY, web_pod(uid))
        return found.why if found is not None else None


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    answers = [CREATED]

    def answer(_: Request) -> Answer:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    with api_server(answer) as server:
        async with ApiClient(server.connection()) as client:
            yield Stand(server, client, answers)


def sent(stand: Stand) -> list[dict[str, Any]]:
    return [json.loads(request.body) for request in stand.server.requests]


async def test_it_is_of_this_very_pod_and_no_other_of_its_name(stand: Stand) -> None:
    assert await stand.evict() is None
    [body] = sent(stand)
    assert stand.server.requests[0].path == "/api/v1/namespaces/shop/pods/web-1/eviction"
    assert body["metadata"] == {"name": "web-1", "namespace": "shop"}
    assert body["deleteOptions"]["preconditions"] == {"uid": "u1"}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(BUDGET, id="a budget"),
        pytest.param(refusal(500, "InternalError", "This pod has more than one PodDisruptionBudget"), id="two budgets"),
        pytest.param(refusal(403, "Forbidden", "denied the request"), id="a webhook"),
        pytest.param(refusal(400, "BadRequest", "denied the request"), id="a webhook that states no code"),
        pytest.param(refusal(422, "Invalid", "denied request"), id="a policy of admission"),
        pytest.param(refusal(409, "Conflict", "the object has been modified"), id="somebody writes the pod"),
        pytest.param(refusal(409, "Conflict", "denied the request"), id="a webhook that states a conflict"),
        pytest.param(refusal(404, "NotFound", "denied the request"), id="a webhook that does not find something"),
    ],
)
async def test_a_refusal_is_told_and_not_asked_for_again_before_its_time(stand: Stand, answer: Answer) -> None:
    stand.answers[:] = [answer]
    why = answer.body["message"]
    assert await stand.evict() == why
    stand.clock.advance(FIRST_DELAY - 0.1)
    assert await stand.evict() == why
    assert len(stand.server.requests) == 1
    assert stand.evictions.refusals(POLICY) == {"web-1": why}
    assert stand.evictions.refusals("shop/other") == {}
    stand.clock.advance(0.2)
    stand.answers[:] = [CREATED]
    assert await stand.evict() is None
    assert len(stand.server.requests) == 2


@pytest.mark.parametrize(
    ("causes", "told"),
    [
        pytest.param([{"reason": "DisruptionBudget", "message": NAMED}], f" {NAMED}", id="which budget it is"),
        pytest.param([{"message": "Cannot evict pod"}], "", id="what the message says already"),
        pytest.param([{}, {"message": ""}], "", id="without a word"),
        pytest.param(None, "", id="none"),
        pytest.param([None, 3, {"message": 3}], "", id="odd ones"),
        pytest.param([{"message": str(number)} for number in range(9)], " 0 1 2", id="three of many"),
    ],
)
async def test_what_the_causes_alone_say_is_told(stand: Stand, causes: object, told: str) -> None:
    stand.answers[:] = [Answer(BUDGET.status, BUDGET.body | {"details": {"causes": causes}})]
    assert await stand.evict() == BUDGET.body["message"] + told


async def test_pauses_double_up_to_a_minute(stand: Stand) -> None:
    stand.answers[:] = [BUDGET]
    pauses = []
    for _ in range(7):
        found = await stand.evictions.evict(POLICY, web_pod("u1"))
        assert found is not None
        pauses.append(found.delay)
        stand.clock.advance(found.delay)
    assert pauses == [5.0, 10.0, 20.0, 40.0, LONGEST_DELAY, LONGEST_DELAY, LONGEST_DELAY]


async def test_another_pod_is_asked_for_at_once(stand: Stand) -> None:
    stand.answers[:] = [BUDGET, CREATED]
    assert await stand.evict("u1") is not None
    assert await stand.evict("u2") is None


async def test_a_pod_that_is_not_there_any_more_is_no_refusal(stand: Stand) -> None:
    stand.answers[:] = [GONE]
    assert await stand.evict() is None
    assert stand.evictions.refusals(POLICY) == {}
    assert stand.evictions.evicted(POLICY) == {"u1"}


async def test_another_pod_of_its_name_is_left_alone_and_forgotten_when_the_watch_tells(stand: Stand) -> None:
    stand.answers[:] = [
        refusal(409, "Conflict", "Precondition failed: UID in precondition: u1, UID in object meta: u2")
    ]
    assert await stand.evict() is not None
    stand.evictions.keep(POLICY, frozenset({"u2"}), frozenset())
    assert stand.evictions.refusals(POLICY) == {}
    assert stand.evictions.evicted(POLICY) == frozenset()


async def test_other_trouble_is_raised_and_no_refusal(stand: Stand) -> None:
    stand.answers[:] = [refusal(405, "MethodNotAllowed")]
    with pytest.raises(ApiError):
        await stand.evict()
    assert stand.evictions.refusals(POLICY) == {}


@pytest.mark.parametrize(
    ("there", "left"),
    [
        pytest.param({"u1"}, {"web-1"}, id="it should go still"),
        pytest.param(set(), set(), id="it should stay after all"),
        pytest.param({"u9"}, set(), id="another should go"),
    ],
)
async def test_refusals_of_pods_that_need_not_go_are_forgotten(stand: Stand, there: set[str], left: set[str]) -> None:
    stand.answers[:] = [BUDGET]
    await stand.evict()
    stand.evictions.keep(POLICY, frozenset({"u1"}), frozenset(there))
    assert set(stand.evictions.refusals(POLICY)) == left


@pytest.mark.parametrize(
    ("answer", "evicted"),
    [
        pytest.param(Answer(201, {}), True, id="evicted"),
        pytest.param(GONE, True, id="gone before"),
        pytest.param(BUDGET, False, id="refused"),
    ],
)
async def test_what_was_evicted_is_known_until_the_watch_shows_it_or_its_policy_is_gone(
    stand: Stand, answer: Answer, evicted: bool
) -> None:
    stand.answers[:] = [answer]
    none = stand.evictions.since(POLICY)
    await stand.evict()
    stand.clock.now += 3.0
    stand.evictions.keep(POLICY, frozenset({"u1", "u2"}), frozenset())
    assert stand.evictions.evicted(POLICY) == (frozenset({"u1"}) if evicted else frozenset())
    assert stand.evictions.since(POLICY) == (3.0 if evicted else none)
    assert (stand.evictions.evicted("shop/other"), stand.evictions.since("shop/other")) == (frozenset(), none)
    stand.evictions.keep(POLICY, frozenset(), frozenset())
    assert not stand.evictions.evicted(POLICY)
    assert stand.evictions.since(POLICY) == (3.0 if evicted else none), "of one that has gone as well"
    stand.evictions.forget(POLICY)
    assert stand.evictions.since(POLICY) == none
