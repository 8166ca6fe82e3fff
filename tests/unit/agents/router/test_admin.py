"""The admin API on a real socket: who gets in, and what there is to see."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agents.router.admin import Admin
from agents.router.balancer import Balancer
from agents.router.endpoints import Backend
from agents.router.knowledge import Knowledge
from berth.api.latency_exchange import Instructions
from berth.runtime.health import MAX_CONNECTIONS
from berth.runtime.proxy.upstream import Address

TOKEN = "a-token-of-the-test"
POD = Backend(Address("10.0.0.1", 80), "n", "p")


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


@asynccontextmanager
async def admin(token_file: Path, pod: Backend = POD) -> AsyncIterator[Admin]:
    balancer = Balancer(time.monotonic)
    balancer.replace([pod])
    balancer.begin(pod.address)
    knowledge = Knowledge(b"k" * 32, Instructions(policy="near"), {"abcdefghijklmnop": "n"})
    served = Admin(balancer, knowledge, token_file=token_file, host="127.0.0.1", port=0)
    await served.start()
    try:
        yield served
    finally:
        await served.stop()


async def get(served: Admin, path: str, authorization: str | None = f"Bearer {TOKEN}") -> tuple[int, Any]:
    headers = {"Authorization": authorization} if authorization is not None else {}
    url = f"http://127.0.0.1:{served.port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status, await answer.json() if answer.status == 200 else await answer.text()


@pytest.mark.parametrize(
    ("host", "shown"),
    [pytest.param("10.0.0.1", "10.0.0.1:80", id="IPv4"), pytest.param("fd00::1", "[fd00::1]:80", id="IPv6")],
)
async def test_pods_and_what_they_have_to_do(token_file: Path, host: str, shown: str) -> None:
    async with admin(token_file, Backend(Address(host, 80), "n", "p")) as served:
        expected = {"pod": "p", "node": "n", "address": shown, "requests": 1, "inTrouble": False}
        assert await get(served, "/v1/backends") == (200, {"backends": [expected]})


async def test_associations_by_the_beginning_of_a_hash(token_file: Path) -> None:
    async with admin(token_file) as served:
        status, found = await get(served, "/v1/associations")
    assert (status, found["associations"]) == (200, [{"user": "abcdefgh", "node": "n"}])
    assert (found["policy"], found["users"], found["keyKnown"]) == ("near", 1, True)


@pytest.mark.parametrize("path", ["/v1/backends", "/v1/associations", "/", "/metrics"])
@pytest.mark.parametrize(
    "authorization",
    [
        pytest.param(None, id="none"),
        pytest.param("", id="empty"),
        pytest.param("Bearer", id="no token"),
        pytest.param("Bearer x", id="another"),
        pytest.param(f"Bearer {TOKEN}x", id="a longer one"),
        pytest.param(f"Basic {TOKEN}", id="another scheme"),
        pytest.param("Bearer \xff\xfe", id="bytes that are no text"),
    ],
)
async def test_nobody_else_gets_in(token_file: Path, path: str, authorization: str | None) -> None:
    async with admin(token_file) as served:
        status, text = await get(served, path, authorization)
    assert status == 401
    assert "10.0.0.1" not in text


async def test_a_token_can_be_exchanged_and_an_empty_file_lets_nobody_in(token_file: Path) -> None:
    async with admin(token_file) as served:
        await asyncio.to_thread(token_file.write_text, "another-token-of-the-test")
        assert (await get(served, "/v1/backends"))[0] == 401
        assert (await get(served, "/v1/backends", "Bearer another-token-of-the-test"))[0] == 200
        await asyncio.to_thread(token_file.write_text, "")
        assert (await get(served, "/v1/backends", "Bearer "))[0] == 503


def test_a_token_that_is_too_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("short")
    with pytest.raises(ValueError, match="at least 16 characters"):
        Admin(Balancer(time.monotonic), Knowledge(), token_file=path, host="", port=0)


async def test_a_port_that_is_taken_is_told(token_file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        served = Admin(Balancer(time.monotonic), Knowledge(), token_file=token_file, host="127.0.0.1", port=port)
        with pytest.raises(ValueError, match=f"--router-admin-port {port} is taken; choose another"):
            await served.start()


async def test_whoever_holds_connections_open_does_not_take_all_memory(token_file: Path) -> None:
    async with admin(token_file) as served:
        opened = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(MAX_CONNECTIONS + 1)]
        assert await asyncio.wait_for(opened[0][0].read(), 60) == b"", "the oldest is closed for one more"
        assert (await get(served, "/v1/backends"))[0] == 200
        for _, writer in opened:
            writer.close()
