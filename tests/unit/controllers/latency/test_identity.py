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
from berth.kube.errors import ApiError
from controllers.latency.certificate import KeyPair
from controllers.latency.identity import Identity, _read, keep_published
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


async def test_where_the_endpoint_is_stays_written_whatever_becomes_of_a_write() -> None:
    written, thrice = list[Any](), asyncio.Event()

    def answer(request: Request) -> Answer:
        written.append(json.loads(request.body)["data"])
        if len(written) == 3:
            loop.call_soon_threadsafe(thrice.set)
        return refusal(403, "Forbidden") if len(written) == 2 else Answer(200, {})

    loop = asyncio.get_running_loop()
    with api_server(answer) as server:
        async with ApiClient(server.connection()) as client:
            task = asyncio.create_task(keep_published(client, "berth-system", "https://a:1", b"pem", every=0.0))
            async with asyncio.timeout(60):
                await thrice.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    assert written[:3] == [{"url": "https://a:1", "ca.crt": "pem"}] * 3


async def test_an_endpoint_that_nobody_can_be_told_of_is_none() -> None:
    with api_server(lambda _: refusal(403, "Forbidden")) as server:
        async with ApiClient(server.connection()) as client:
            with pytest.raises(ApiError):
                await keep_published(client, "berth-system", "https://a:1", b"pem", every=0.0)
