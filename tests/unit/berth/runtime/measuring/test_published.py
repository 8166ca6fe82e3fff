"""Where the controller is, by what an API server says of its ConfigMap. Left out: a real API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth.api.latency_exchange import CONFIGMAP, CONFIGMAP_CA, CONFIGMAP_URL, SERVER_NAME
from berth.kube.client import ApiClient
from berth.runtime.measuring.calls import Endpoint
from berth.runtime.measuring.published import PublishedServer
from tests.support.api_server import Answer, ApiServer, api_server, refusal

TOKEN = Path("/token")


def published(**data: str) -> dict[str, Any]:
    return {"metadata": {"name": CONFIGMAP, "namespace": "berth-system"}, "data": data}


def whole(url: str = "https://192.0.2.1:8443") -> dict[str, Any]:
    return published(**{CONFIGMAP_URL: url, CONFIGMAP_CA: "certificate"})


async def ask(server: ApiServer, *again: bool) -> list[Endpoint]:
    async with ApiClient(server.connection(), user_agent="test") as client:
        where = PublishedServer(client, "berth-system", TOKEN)
        return [await where.endpoint(again=each) for each in again]


async def test_it_is_read_once_and_again_when_it_does_not_answer() -> None:
    answers = [whole(), whole("https://192.0.2.2:8443")]
    with api_server(lambda request: Answer(200, answers[min(len(server.requests) - 1, 1)])) as server:
        found = await ask(server, False, False, True, False)
    assert found[0] == Endpoint("https://192.0.2.1:8443", b"certificate", SERVER_NAME)
    assert [endpoint.url[-6] for endpoint in found] == ["1", "1", "2", "2"]
    assert [request.path.partition("?")[0] for request in server.requests] == [
        "/api/v1/namespaces/berth-system/configmaps/berth-latency"
    ] * 2


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param(Answer(200, published()), "does not say where", id="empty"),
        pytest.param(Answer(200, whole("http://192.0.2.1")), "does not say where", id="without TLS"),
        pytest.param(
            Answer(200, published(**{CONFIGMAP_URL: "https://c"})), "does not say where", id="nothing to trust"
        ),
        pytest.param(refusal(404, "NotFound"), "cannot be read", id="not there"),
        pytest.param(refusal(403, "Forbidden"), "cannot be read", id="not allowed"),
    ],
)
async def test_what_does_not_say_it(answer: Answer, says: str) -> None:
    with api_server(lambda _: answer) as server, pytest.raises(ValueError, match=says):
        await ask(server, False)
