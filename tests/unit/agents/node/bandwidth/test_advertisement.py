"""Advertising a capacity: when, and which patch; with a scripted API server."""

from __future__ import annotations

import json

import pytest

from agents.node.bandwidth.advertisement import REPEAT_SECONDS, WRITE_SECONDS, Advertisement
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.request import STRATEGIC_PATCH
from tests.support.api_server import Answer, api_server, refusal

AMOUNT = {"network.aware.com/bandwidth": "10000000000"}


async def test_capacity_and_allocatable_are_patched() -> None:
    with api_server(lambda _: Answer(200, {})) as server:
        async with ApiClient(server.connection()) as client:
            await Advertisement(client, "n1").write(10**10, 0.0)
    (request,) = server.requests
    assert (request.method, request.path) == ("PATCH", "/api/v1/nodes/n1/status")
    assert request.headers["content-type"] == STRATEGIC_PATCH
    assert json.loads(request.body) == {"status": {"capacity": AMOUNT, "allocatable": AMOUNT}}


@pytest.mark.parametrize(
    ("capacity", "after", "expected"),
    [
        pytest.param(10**10, 1.0, False, id="just written"),
        pytest.param(10**10, REPEAT_SECONDS, True, id="somebody may have removed it"),
        pytest.param(10**9, WRITE_SECONDS, True, id="another speed"),
        pytest.param(10**9, WRITE_SECONDS - 1, False, id="another speed again, as of a bond"),
        pytest.param(None, REPEAT_SECONDS, False, id="unknown: what was advertised stays"),
    ],
)
async def test_when_it_is_written_again(capacity: int | None, after: float, expected: bool) -> None:
    with api_server(lambda _: Answer(200, {})) as server:
        async with ApiClient(server.connection()) as client:
            made = Advertisement(client, "n1")
            assert made.due(10**10, 100.0)
            await made.write(10**10, 100.0)
            assert made.due(capacity, 100.0 + after) is expected


async def test_a_write_that_failed_is_repeated_sooner() -> None:
    with api_server(lambda _: refusal(404, "NotFound")) as server:
        async with ApiClient(server.connection()) as client:
            made = Advertisement(client, "n1")
            with pytest.raises(ApiError):
                await made.write(10**10, 100.0)
            assert not made.due(10**10, 100.0 + WRITE_SECONDS - 1)
            assert made.due(10**10, 100.0 + WRITE_SECONDS)
