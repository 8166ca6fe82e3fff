"""A number of replicas is set only where nobody else has, and not again and again where it is refused.

With a scripted API server. What people are told of a refusal: test_raised.py.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from controllers.latency.scaler import AGAIN, KEPT_SECONDS, MOST_KEPT, Scaler
from tests.support.api_server import Answer, ApiServer, Request, api_server, refusal
from tests.support.placement import Clock
from tests.unit.controllers.latency.test_reconciler import running

REFUSED = refusal(403, "Forbidden")
GONE = Answer(
    404, {"kind": "Status", "code": 404, "reason": "NotFound", "details": {"name": "web", "kind": "deployments"}}
)


class Stand:
    """A scaler, and a server that writes what it gets unless it is told an answer."""

    def __init__(self, server: ApiServer, client: ApiClient) -> None:
        self.server, self.clock = server, Clock()
        self.scaler = Scaler(client, self.clock)
        self.answer: Answer | None = None

    @property
    def sent(self) -> list[tuple[str, int]]:
        """The version that each write is for, and the number."""
        bodies = [json.loads(each.body) for each in self.server.requests]
        return [(body["metadata"]["resourceVersion"], body["spec"]["replicas"]) for body in bodies]


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    made: list[Stand] = []

    def answer(_: Request) -> Answer:
        return made[0].answer or Answer(200, {"metadata": {"name": "web", "resourceVersion": "9"}})

    with api_server(answer) as server:
        async with ApiClient(server.connection()) as client:
            made.append(Stand(server, client))
            yield made[0]


async def test_it_counts_until_the_watch_shows_it_and_the_next_write_is_for_what_it_made(stand: Stand) -> None:
    assert await stand.scaler.scale(running(1), 1, 2)
    assert stand.scaler.replicas(running(1)) == 2, "the watch shows what was there before"
    assert await stand.scaler.scale(running(1), 2, 3)
    assert stand.sent == [("5", 2), ("9", 3)]
    shown = running(7)
    shown.metadata.resource_version = "9"
    assert stand.scaler.replicas(shown) == 7


@pytest.mark.parametrize(
    ("answer", "requests"),
    [
        pytest.param(None, 0, id="it is another by now"),
        pytest.param(refusal(409, "Conflict"), 1, id="somebody has written since"),
        pytest.param(GONE, 1, id="it is gone"),
    ],
)
async def test_what_is_not_as_it_was_known_is_left_alone(stand: Stand, answer: Answer | None, requests: int) -> None:
    stand.answer = answer
    assert not await stand.scaler.scale(running(1 if answer else 4), 1, 2)
    assert len(stand.server.requests) == requests
    assert not stand.scaler.refusal(running(1))


async def test_what_is_refused_is_tried_again_after_a_while(stand: Stand) -> None:
    stand.answer = REFUSED
    for _ in range(2):
        with pytest.raises(ApiError, match="words"):
            await stand.scaler.scale(running(1), 1, 2)
    assert len(stand.server.requests) == 1
    stand.clock.advance(AGAIN)
    stand.answer = None
    assert await stand.scaler.scale(running(1), 1, 2)
    assert not stand.scaler.refusal(running(1))


async def test_one_of_its_name_that_is_made_anew_is_another(stand: Stand) -> None:
    stand.answer = REFUSED
    with pytest.raises(ApiError):
        await stand.scaler.scale(running(1), 1, 2)
    anew = running(1)
    anew.metadata.uid = "e"
    stand.answer = None
    assert not stand.scaler.refusal(anew)
    assert await stand.scaler.scale(anew, 1, 2)


@pytest.mark.parametrize("answer", [pytest.param(None, id="written"), pytest.param(REFUSED, id="refused")])
async def test_nothing_is_kept_of_deployments_that_nobody_asks_for_any_more(
    stand: Stand, answer: Answer | None
) -> None:
    """They may be gone: one a second, made anew all day, would fill the memory."""
    stand.answer = answer
    for number in range(20):
        found = running(1)
        found.metadata.uid = f"u{number}"
        if answer is None:
            await stand.scaler.scale(found, 1, 2)
        else:
            with pytest.raises(ApiError):
                await stand.scaler.scale(found, 1, 2)
        stand.clock.advance(KEPT_SECONDS / 4)
    assert len(stand.scaler._written) + len(stand.scaler._refused) <= 5 < MOST_KEPT
