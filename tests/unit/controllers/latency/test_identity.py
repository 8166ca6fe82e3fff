"""Which key the users of a policy are hashed with, and that where the endpoint is stays written.

Left out: Secret and ConfigMap on a real API server (tests/integration/test_rbac.py).
"""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from berth.api.latency_exchange import hash_identity
from berth.kube.client import ApiClient
from controllers.latency.certificate import KeyPair
from controllers.latency.identity import Identity, _read, keep_published, wait_for_identity
from tests.support.api_server import Answer, Request, api_server, refusal

NO_PAIR = KeyPair(b"", b"")


def test_each_policy_has_a_key_of_its_own_that_stays() -> None:
    identity = Identity(NO_PAIR, b"k" * 32)
    keys = [base64.b64decode(identity.key_of(uid)) for uid in ("one", "two", "one")]
    assert keys[0] == keys[2] != keys[1]
    assert {len(key) for key in keys} == {32}
    assert hash_identity(keys[0], "alice") != hash_identity(keys[1], "alice")
    assert Identity(NO_PAIR, b"j" * 32).key_of("one") != identity.key_of("one")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(None, id="no data"),
        pytest.param({}, id="nothing in it"),
        pytest.param({"tls.crt": None, "tls.key": None, "users.key": None}, id="nulls"),
        pytest.param({"users.key": "="}, id="no base64"),
        pytest.param({"users.key": base64.b64encode(b"short").decode()}, id="a key that is too short"),
    ],
)
def test_a_secret_without_a_key_of_users(data: dict[str, Any] | None) -> None:
    assert _read({"data": data}) is None


@pytest.mark.parametrize("refused", [1, 2], ids=["the first write", "a later one"])
async def test_where_the_endpoint_is_stays_written_whatever_becomes_of_a_write(refused: int) -> None:
    written, thrice = list[Any](), asyncio.Event()
    told: list[str | None] = []

    def answer(request: Request) -> Answer:
        written.append(json.loads(request.body)["data"])
        if len(written) == 4:
            loop.call_soon_threadsafe(thrice.set)
        return refusal(403, "Forbidden") if len(written) == refused else Answer(200, {})

    loop = asyncio.get_running_loop()
    with api_server(answer) as server:
        async with ApiClient(server.connection()) as client:
            keeping = keep_published(client, "berth-system", "https://a:1", b"pem", told.append, every=0.0)
            task = asyncio.create_task(keeping)
            async with asyncio.timeout(60):
                await thrice.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    assert written[:3] == [{"url": "https://a:1", "ca.crt": "pem", "instance": written[0]["instance"]}] * 3
    assert written[0]["instance"]
    problem = "where to find it cannot be written to ConfigMap berth-system/berth-latency: 403 Forbidden: words"
    assert told[:3] == [problem if n == refused else None for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("refusing", "problem"),
    [
        pytest.param("GET", "403 Forbidden: words", id="may not be read"),
        pytest.param("PUT", "403 Forbidden: words", id="is empty and may not be written"),
        pytest.param("POST", "Secret berth-system/berth-latency is not there; apply deploy/rbac", id="is not there"),
    ],
)
async def test_keys_that_cannot_be_had_are_waited_for(refusing: str, problem: str) -> None:
    told: list[str | None] = []
    forbidden = True

    def answer(request: Request) -> Answer:
        if forbidden and request.method == refusing:
            return refusal(403, "Forbidden")
        if request.method != "GET":
            stored.update(json.loads(request.body)["data"])
            return Answer(200, {})
        if refusing == "POST" and not stored:
            return refusal(404, "NotFound")
        return Answer(200, {"metadata": {"name": "berth-latency"}, "data": stored})

    async def sleep(_: float) -> None:
        nonlocal forbidden
        forbidden = False

    stored: dict[str, str] = {}
    with api_server(answer) as server:
        async with ApiClient(server.connection()) as client:
            identity = await wait_for_identity(client, "berth-system", told.append, sleep=sleep)
    assert base64.b64encode(identity.users_key).decode() == stored["users.key"]
    assert told == [f"no keys from Secret berth-system/berth-latency: {problem}", None]


async def test_nothing_is_published_any_more_once_the_certificate_is_not_valid() -> None:
    written = list[Any]()

    def answer(request: Request) -> Answer:
        written.append(json.loads(request.body)["data"])
        return Answer(200, {})

    left = iter([True, True, False])
    with api_server(answer) as server:
        async with ApiClient(server.connection()) as client:
            async with asyncio.timeout(60):
                await keep_published(
                    client,
                    "berth-system",
                    "https://a:1",
                    b"pem",
                    list[Any]().append,
                    every=0.0,
                    valid=lambda: next(left),
                )
    assert len(written) == 2
