"""Requests through a router on real sockets: whose they are, where they go, and what is noted of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import structlog
from prometheus_client import REGISTRY

from agents.router.balancer import Balancer
from agents.router.endpoints import Backend
from agents.router.knowledge import Knowledge
from agents.router.measuring import Measuring
from agents.router.routing import Routing
from agents.router.settings import RouterSettings
from agents.router.steering import Steering
from berth.api.latency_exchange import Identity, IdentitySource, Instructions, hash_identity
from berth.runtime.proxy.forwarding import Forwarding
from berth.runtime.proxy.mark import marked_user
from berth.runtime.proxy.pool import UpstreamPool
from berth.runtime.proxy.server import ProxyServer
from tests.support.proxying import Application, Visit, answering, application, body_of, get, status_of

KEY = b"k" * 32
BY_HEADER = Instructions(policy="p", identity=Identity(IdentitySource.HEADER, "X-User"))


def saying(text: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


@dataclass
class Router:
    """A router under test."""

    server: ProxyServer
    balancer: Balancer
    knowledge: Knowledge
    steering: Steering
    measuring: Measuring

    async def ask(self, data: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        try:
            writer.write(data)
            return await reader.read()
        finally:
            writer.close()


@asynccontextmanager
async def router(*backends: Backend, access_log: bool = False, users: int = 10_000) -> AsyncIterator[Router]:
    knowledge = Knowledge(KEY, BY_HEADER)
    balancer, pool = Balancer(time.monotonic), UpstreamPool()
    balancer.replace(backends)
    steering = Steering("http://{address}:8000", "a", time.monotonic)
    measuring = Measuring(RouterSettings(users=users), knowledge)
    routing = Routing(
        Forwarding(pool), balancer, steering, knowledge, measuring, answer_seconds=5.0, access_log=access_log
    )
    server = ProxyServer(routing.handle, host="127.0.0.1", port=0)
    await server.start()
    try:
        yield Router(server, balancer, knowledge, steering, measuring)
    finally:
        await server.stop(seconds=0)
        await pool.close()


@asynccontextmanager
async def two_nodes() -> AsyncIterator[tuple[Application, Application, tuple[Backend, Backend]]]:
    async with application(answering(saying("a"))) as one, application(answering(saying("b"))) as two:
        yield one, two, (Backend(one.address, "a", "one"), Backend(two.address, "b", "two"))


def count(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.mark.parametrize("node", ["a", "b"])
async def test_a_known_user_goes_to_the_node_of_the_association(node: str) -> None:
    before = count("berth_router_requests_total", route="near", status="2xx")
    async with two_nodes() as (_, _, pods), router(*pods) as under_test:
        under_test.knowledge.nodes = {hash_identity(KEY, "ann"): node}
        answers = [body_of(await under_test.ask(get("/", "X-User: ann"))) for _ in range(8)]
    assert answers == [node.encode()] * 8
    assert count("berth_router_requests_total", route="near", status="2xx") == before + 8


async def test_others_go_where_there_is_the_least_to_do() -> None:
    held = asyncio.Event()

    async def script(visit: Visit) -> None:
        await visit.head()
        await held.wait()
        await visit.say(saying("slow"))

    async with application(script) as slow, application(answering(saying("fast"))) as fast:
        pods = (Backend(slow.address, "a", "slow"), Backend(fast.address, "b", "fast"))
        async with router(*pods) as under_test:
            under_test.knowledge.nodes = {hash_identity(KEY, "ann"): "a"}
            waiting = asyncio.create_task(under_test.ask(get("/", "X-User: ann")))
            while not slow.heads:
                await asyncio.sleep(0.01)
            assert under_test.balancer.load(slow.address) == 1
            assert {body_of(await under_test.ask(get("/", f"X-User: {n}"))) for n in range(8)} == {b"fast"}
            held.set()
            assert body_of(await waiting) == b"slow"
            assert under_test.balancer.load(slow.address) == under_test.balancer.load(fast.address) == 0


async def test_a_request_tells_the_meter_whose_it_is_whatever_the_client_says() -> None:
    async with two_nodes() as (one, two, pods), router(*pods) as under_test:
        await under_test.ask(get("/", "X-User: ann", "Berth-Router: forged", "berth-router: twice"))
        head = (one.heads + two.heads)[0]
    marks = [line.split(b": ")[1].decode() for line in head.split(b"\r\n") if line.lower().startswith(b"berth-router")]
    assert [marked_user(KEY, mark) for mark in marks] == [hash_identity(KEY, "ann")]


async def test_without_a_key_nobody_is_known_and_all_are_served() -> None:
    async with two_nodes() as (one, two, pods), router(*pods) as under_test:
        under_test.knowledge.key = b""
        under_test.knowledge.nodes = {hash_identity(KEY, "ann"): "a"}
        assert status_of(await under_test.ask(get("/", "X-User: ann", "Berth-Router: forged"))) == 200
        head = (one.heads + two.heads)[0]
    fields = [line for line in head.split(b"\r\n") if line.lower().startswith(b"berth-router")]
    assert fields == [b"Berth-Router: unnamed"]


async def test_no_failed_request_when_the_pod_of_an_association_dies() -> None:
    """It dies as a process does that is killed: first its connections end, then nobody listens."""
    served = 0

    async def script(visit: Visit) -> None:
        nonlocal served
        while True:
            await visit.head()
            served += 1
            if served > 10:
                visit.reset()
                return
            await visit.say(saying("a"))

    async with application(answering(saying("b"))) as two, application(script) as one:
        pods = (Backend(one.address, "a", "one"), Backend(two.address, "b", "two"))
        async with router(*pods) as under_test:
            under_test.knowledge.nodes = {hash_identity(KEY, "ann"): "a"}
            answers = [await under_test.ask(get("/", "X-User: ann")) for _ in range(30)]
            assert {status_of(answer) for answer in answers} == {200}
            assert [body_of(answer) for answer in answers] == [b"a"] * 10 + [b"b"] * 20
            assert under_test.balancer.in_trouble(one.address)


@pytest.mark.parametrize("said", [b"", b"nonsense\r\n\r\n"], ids=["hangs up", "says what is no answer"])
@pytest.mark.parametrize(("method", "others"), [("GET", 1), ("POST", 0)])
async def test_a_request_that_the_application_does_not_answer_sends_nobody_elsewhere(
    method: str, others: int, said: bytes
) -> None:
    async def script(visit: Visit) -> None:
        while b"/poison" not in await visit.head():
            await visit.say(saying("a"))
        await visit.say(said)
        visit.reset()

    async with application(script) as one, application(answering(saying("b"))) as two:
        pods = (Backend(one.address, "a", "one"), Backend(two.address, "b", "two"))
        async with router(*pods) as under_test:
            under_test.knowledge.nodes = {hash_identity(KEY, name): "a" for name in ("ann", "bob")}
            for _ in range(4):
                await under_test.ask(get("/poison", "X-User: ann").replace(b"GET", method.encode()))
                assert body_of(await under_test.ask(get("/", "X-User: bob"))) == b"a"
            assert len(two.heads) == 4 * others, "where it may be done twice another is asked"


async def test_a_user_is_steered_to_another_router_once() -> None:
    async with two_nodes() as (_, _, pods), router(*pods) as under_test:
        user = hash_identity(KEY, "ann")
        identity = Identity(IdentitySource.QUERY, "id")
        under_test.knowledge.instructions = Instructions(policy="p", identity=identity, steer={user: "b"})
        under_test.steering.routers = {"b": "192.0.2.2"}
        answer = await under_test.ask(get("/x?id=ann&y=%2F"))
        assert status_of(answer) == 307
        assert b"\r\nLocation: http://192.0.2.2:8000/x?id=ann&y=%2F\r\n" in answer
        assert b"\r\nCache-Control: no-store\r\n" in answer
        assert status_of(await under_test.ask(get("/x?id=ann&y=%2F"))) == 200
        assert status_of(await under_test.ask(get("/x?id=bob"))) == 200


async def test_a_websocket_and_a_strange_target_are_never_steered() -> None:
    async with two_nodes() as (_, _, pods), router(*pods) as under_test:
        steer = {hash_identity(KEY, "127.0.0.1"): "b"}
        under_test.knowledge.instructions = Instructions(policy="p", steer=steer)
        under_test.steering.routers = {"b": "192.0.2.2"}
        ask = get("/", "Connection: Upgrade", "Upgrade: websocket", last=False)
        reader, writer = await asyncio.open_connection("127.0.0.1", under_test.server.port)
        writer.write(ask)
        assert status_of(await reader.readline()) == 200
        writer.close()
        assert status_of(await under_test.ask(get("ftp://h/"))) == 400


SECRETS = ("192.0.2.9", "127.0.0.1", "ann", "s3cret", "/private", "shop.example", "Mozilla")


async def test_the_access_log_names_nobody() -> None:
    async with two_nodes() as (_, _, pods), router(*pods, access_log=True) as under_test:
        fields = ("X-User: ann", "Cookie: s=s3cret", "X-Forwarded-For: 192.0.2.9", "User-Agent: Mozilla")
        with structlog.testing.capture_logs() as logs:
            await under_test.ask(get("/private?token=s3cret", *fields))
    lines = [entry for entry in logs if entry["event"] == "request"]
    assert len(lines) == 1
    assert {"method": "GET", "status": 200, "route": "load", "attempts": 1}.items() <= lines[0].items()
    assert len(lines[0]["user"]) == 8
    assert not any(secret in str(lines) for secret in SECRETS)


async def test_without_pods_clients_are_told_to_come_again() -> None:
    before = count("berth_router_requests_total", route="none", status="5xx")
    async with router() as under_test:
        assert status_of(await under_test.ask(get("/"))) == 503
    assert count("berth_router_requests_total", route="none", status="5xx") == before + 1


async def test_made_up_users_are_served_and_no_more_of_them_kept_than_is_set() -> None:
    async with two_nodes() as (_, _, pods), router(*pods, users=100) as under_test:
        reader, writer = await asyncio.open_connection("127.0.0.1", under_test.server.port)
        for number in range(300):
            writer.write(get("/", f"X-User: {number}" + "x" * 4000, last=False))
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            await reader.readexactly(1)
        writer.close()
        assert 0 < len(under_test.measuring._users) <= 100
