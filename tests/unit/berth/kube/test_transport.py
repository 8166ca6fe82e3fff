"""Which way a request goes, and what holds on both."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import Any

import aiohttp
import pytest

from berth.kube.http_answer import TooLargeError
from berth.kube.http_pool import HttpPool
from berth.kube.transport import Transport
from tests.support.api_server import Answer, ApiServer, Request, api_server
from tests.support.http_server import http_server, says_ok


async def post(transport: Transport, seconds: float = 20.0) -> tuple[int, bytes, str | None]:
    return await transport.send("POST", "/api", params={"a": "b c"}, headers={"X": "y"}, body=b"{}", seconds=seconds)


def through(proxy: ApiServer) -> Transport:
    """To a server that only the proxy knows."""
    connection = proxy.connection(host="http://api.example:6443", proxy=proxy.url)
    return Transport(connection, user_agent="berth-test")


@pytest.mark.parametrize("proxied", [False, True], ids=["directly", "through a proxy"])
async def test_the_answer_is_the_same_either_way(proxied: bool) -> None:
    with api_server(lambda _: Answer(429, b"{}", {"Retry-After": "3"})) as server:
        transport = through(server) if proxied else Transport(server.connection(), user_agent="berth-test")
        transport.open()
        assert await post(transport) == (429, b"{}", "3")
        await transport.close()
    (request,) = server.requests
    assert request.path == ("http://api.example:6443" if proxied else "") + "/api?a=b+c"
    assert (request.method, request.body) == ("POST", b"{}")
    assert (request.headers["x"], request.headers["user-agent"]) == ("y", "berth-test")


@pytest.mark.parametrize("proxied", [False, True], ids=["directly", "through a proxy"])
async def test_an_answer_that_is_larger_than_it_may_be_is_broken_off_either_way(proxied: bool) -> None:
    with api_server(lambda _: Answer(200, b"x" * 1000)) as server:
        transport = through(server) if proxied else Transport(server.connection(), user_agent="berth-test")
        transport.open()
        with pytest.raises(TooLargeError, match="more than 999 bytes"):
            await transport.send("GET", "/api", params=None, headers={}, body=None, seconds=20.0, largest=999)
        await transport.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308], ids=str)
@pytest.mark.parametrize("proxied", [False, True], ids=["directly", "through a proxy"])
async def test_a_redirect_is_an_answer_and_is_not_followed(proxied: bool, status: int) -> None:
    """A login page is no place for a Binding, and what it answers is not the API server's word."""

    def elsewhere(request: Request) -> Answer:
        return Answer(200, b"{}") if "login" in request.path else Answer(status, b"", {"Location": "/login"})

    with api_server(elsewhere) as server:
        transport = through(server) if proxied else Transport(server.connection(), user_agent="berth-test")
        transport.open()
        assert (await post(transport))[0] == status
        async with await transport.watch("/api", params={}, silence_seconds=5.0) as response:
            assert response.status == status
        await transport.close()
    assert [request.method for request in server.requests] == ["POST", "GET"]


async def test_a_request_through_a_proxy_takes_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[aiohttp.ClientTimeout] = []

    def refuse(_session: aiohttp.ClientSession, *_: Any, timeout: aiohttp.ClientTimeout, **__: Any) -> None:
        asked.append(timeout)
        raise OSError("no proxy here")

    monkeypatch.setattr(aiohttp.ClientSession, "request", refuse)
    with api_server(lambda _: Answer()) as server:
        transport = through(server)
        transport.open()
        with pytest.raises(OSError, match="no proxy here"):
            await post(transport, seconds=7.3)
        await transport.close()
    # Rounded up to whole seconds, as aiohttp does with long ones, it would end after the Lease.
    assert [(each.total, each.ceil_threshold) for each in asked] == [(7.3, math.inf)]


async def test_the_way_without_a_proxy_is_the_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Binding and an Event for each pod: a general client's request costs more than twice as much."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("aiohttp was asked")

    monkeypatch.setattr(aiohttp.ClientSession, "request", refuse)
    async with http_server(says_ok) as server:
        transport = Transport(server.connection(), user_agent="berth-test")
        transport.open()
        assert [await post(transport) for _ in range(3)] == [(201, b"{}", None)] * 3
        await transport.close()
    assert server.connections == 1


async def test_outside_its_time_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(HttpPool, "request")
    with api_server(lambda _: Answer()) as server:
        transport = Transport(server.connection(), user_agent="berth-test")
        with pytest.raises(RuntimeError, match="outside its 'async with' block"):
            await post(transport)
        transport.open()
        await transport.close()
        with pytest.raises(RuntimeError, match="outside its 'async with' block"):
            await transport.watch("/api", params={}, silence_seconds=1.0)
    assert server.requests == []


@pytest.mark.parametrize(
    ("method", "first"), [("POST", True), ("PUT", True), ("PATCH", True), ("DELETE", True), ("GET", False)]
)
async def test_writes_go_first_while_they_are_under_way(method: str, first: bool) -> None:
    arrived, answered = threading.Event(), threading.Event()

    def wait(_: Request) -> Answer:
        arrived.set()
        answered.wait(20.0)
        return Answer()

    with api_server(wait) as server:
        transport = Transport(server.connection(), user_agent="berth-test")
        transport.open()
        sent = asyncio.create_task(transport.send(method, "/api", params=None, headers={}, body=None, seconds=20.0))
        assert await asyncio.to_thread(arrived.wait, 20.0)
        others = asyncio.create_task(transport.writes.give_way(60.0))
        for _ in range(5):
            await asyncio.sleep(0)
        assert others.done() is not first
        answered.set()
        await sent
        await asyncio.wait_for(others, 5.0)
        await transport.close()
