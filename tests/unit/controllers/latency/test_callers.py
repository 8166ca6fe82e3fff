"""Whom a token's review names, and how often the API server is asked.

The review itself is a real API server's: tests/integration/test_latency_input.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from berth.api.latency_exchange import AUDIENCE
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from controllers.latency.callers import MAX_TOKEN, TRUSTED_SECONDS, Caller, Callers, caller_of
from tests.support.api_server import Answer, Request, api_server
from tests.support.placement import Clock

EXTRA = {
    "authentication.kubernetes.io/pod-name": ["web-1"],
    "authentication.kubernetes.io/pod-uid": ["u1"],
    "authentication.kubernetes.io/node-name": ["n1"],
}


def status(**fields: Any) -> dict[str, Any]:
    user = {"username": "system:serviceaccount:shop:default", "extra": EXTRA} | fields.pop("user", {})
    return {"authenticated": True, "audiences": [AUDIENCE], "user": user} | fields


@pytest.mark.parametrize(
    ("found", "caller"),
    [
        pytest.param(status(), Caller("shop", "default", "web-1", "u1", "n1"), id="a pod"),
        pytest.param(
            status(user={"extra": {key: EXTRA[key] for key in list(EXTRA)[:2]}}),
            Caller("shop", "default", "web-1", "u1", ""),
            id="a pod, its node not told",
        ),
        pytest.param(status(authenticated=False), None, id="not valid"),
        pytest.param(status(audiences=["elsewhere"]), None, id="made for somebody else"),
        pytest.param(status(audiences=None), None, id="by an API server that knows no audiences"),
        pytest.param(status(user={"extra": {}}), None, id="bound to nothing"),
        pytest.param(status(user={"username": "alice"}), None, id="a person"),
        pytest.param({}, None, id="no answer"),
    ],
)
def test_callers(found: dict[str, Any], caller: Caller | None) -> None:
    assert caller_of(found) == caller


@pytest.fixture
def reviews() -> list[Request]:
    return []


@pytest.fixture
async def client(reviews: list[Request]) -> AsyncIterator[ApiClient]:
    """Talks to a server that knows every token."""

    def review(request: Request) -> Answer:
        reviews.append(request)
        return Answer(201, {"status": status()})

    with api_server(review) as server:
        async with ApiClient(server.connection()) as found:
            yield found


async def test_a_token_is_asked_about_once_in_a_while(client: ApiClient, reviews: list[Request]) -> None:
    clock = Clock()
    callers = Callers(client, clock)
    found = await asyncio.gather(*(callers.of("token") for _ in range(5)))
    assert {caller.pod for caller in found if caller is not None} == {"web-1"}
    assert len(reviews) == 1
    clock.advance(TRUSTED_SECONDS / 2)
    await callers.of("token")
    assert len(reviews) == 1
    await callers.of("other")
    assert len(reviews) == 2
    clock.advance(TRUSTED_SECONDS)
    await callers.of("token")
    assert len(reviews) == 3


async def test_an_answer_that_expires_while_it_is_looked_up_is_asked_for_again(
    client: ApiClient, reviews: list[Request]
) -> None:
    callers = Callers(client, Clock(tick=1.0))
    for _ in range(3 * round(TRUSTED_SECONDS)):
        assert await callers.of("token") is not None
    assert len(reviews) > 1


@pytest.mark.parametrize("token", ["", "x" * (MAX_TOKEN + 1)], ids=["none", "too long"])
async def test_what_is_no_token_is_not_asked_about(client: ApiClient, reviews: list[Request], token: str) -> None:
    assert await Callers(client, Clock()).of(token) is None
    assert reviews == []


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param([1], id="a list"),
        pytest.param("yes", id="a text"),
        pytest.param(status(audiences=5), id="audiences that are none"),
        pytest.param(status(user={"extra": [1]}), id="a user that is none"),
    ],
)
async def test_a_review_of_something_on_the_way_is_no_answer(odd: Any) -> None:
    """Who asks is told to come again, as where the API server is away."""
    with api_server(lambda _: Answer(201, {"status": odd})) as server:
        async with ApiClient(server.connection(), retries=0) as client:
            with pytest.raises(ApiError, match="UnreadableAnswer"):
                await Callers(client, Clock()).of("token")
