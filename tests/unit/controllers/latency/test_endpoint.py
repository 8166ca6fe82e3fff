"""What the endpoint lets through to the desk, and how it answers the rest: over HTTPS, with a scripted API server.

That a real API server's tokens are told from others is in tests/integration/test_latency_input.py.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec
import pytest

from berth.api import latency_exchange as exchange
from berth.kube.client import ApiClient
from berth.runtime import tls_protocol
from controllers.latency import endpoint
from controllers.latency.callers import AT_ONCE, Caller, Callers
from controllers.latency.certificate import make_key_pair, server_context
from controllers.latency.endpoint import MAX_BYTES, Endpoint
from controllers.latency.intake import INTERVAL, POD_BURST
from tests.support.api_server import Answer, Request, api_server, refusal
from tests.support.placement import Clock

TOLD = exchange.RoundTrips("i", 1, (exchange.UserRoundTrips("u", (20_000,)),))
FOUND = exchange.ProbeAnswers((exchange.ProbeAnswer("1", (9_000,)),))
ORDERS = exchange.ProbeOrders((exchange.ProbeOrder("2", "203.0.113.7"),))


@dataclass
class Desk:
    """Keeps what it is told."""

    told: list[tuple[str, bool]] = field(default_factory=list)
    found: list[tuple[str, exchange.ProbeAnswers]] = field(default_factory=list)
    waited: list[bool] = field(default_factory=list)
    users: list[int] = field(default_factory=list)
    interval: float = INTERVAL

    def round_trips(self, caller: Caller, message: exchange.RoundTrips, *, new: bool) -> exchange.Instructions:
        self.told.append((caller.pod, new))
        self.users.append(len(message.users))
        return exchange.Instructions(policy="web", key="a2V5", interval=self.interval)

    def is_agent(self, caller: Caller) -> bool:
        return caller.account == "berth-node"

    def answers(self, node: str, message: exchange.ProbeAnswers) -> None:
        self.found.append((node, message))

    async def orders(self, node: str, *, wait: bool) -> exchange.ProbeOrders:
        self.waited.append(wait)
        return ORDERS


def review(request: Request) -> Answer:
    """Says whose a token is by the token: account, pod and node, with slashes."""
    account, pod, node = json.loads(request.body)["spec"]["token"].split("/")
    if account == "trouble":
        return refusal(403, "Forbidden", "may not review tokens")
    extra = {"pod-name": [pod], "pod-uid": [f"uid of {pod}"], **({"node-name": [node]} if node else {})}
    user = {
        "username": f"system:serviceaccount:shop:{account}",
        "extra": {f"authentication.kubernetes.io/{key}": value for key, value in extra.items()},
    }
    known = account != "nobody"
    return Answer(201, {"status": {"authenticated": known, "audiences": [exchange.AUDIENCE], "user": user}})


@dataclass
class Stand:
    """An endpoint that listens."""

    desk: Desk
    clock: Clock
    url: str
    session: aiohttp.ClientSession
    context: ssl.SSLContext

    async def post(
        self, path: str, message: Any, token: str | None = "default/web-1/a", **more: str
    ) -> tuple[int, Any, Any]:
        """Status, headers and body of the answer."""
        body = message if isinstance(message, bytes) else msgspec.json.encode(message)
        headers = ({"Authorization": f"Bearer {token}"} if token is not None else {}) | more
        async with self.session.post(
            self.url + path, data=body, headers=headers, ssl=self.context, server_hostname=exchange.SERVER_NAME
        ) as answer:
            return answer.status, answer.headers, await answer.read()


@asynccontextmanager
async def listening() -> AsyncIterator[Stand]:
    pair = make_key_pair(datetime.now(UTC))
    context = ssl.create_default_context(cadata=pair.certificate.decode())
    desk, clock = Desk(), Clock()
    with api_server(review) as server:
        async with ApiClient(server.connection()) as client, aiohttp.ClientSession() as session:
            site = await Endpoint(desk, Callers(client, clock), clock).start("127.0.0.1", 0, server_context(pair))
            try:
                yield Stand(desk, clock, f"https://127.0.0.1:{site.port}", session, context)
            finally:
                await site.stop()


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    async with listening() as found:
        yield found


async def test_a_meter_is_heard_and_told_what_to_do(stand: Stand) -> None:
    status, _, body = await stand.post(exchange.ROUND_TRIPS_PATH, TOLD)
    assert status == 200
    found = msgspec.json.decode(body, type=exchange.Instructions)
    assert (found.policy, found.key, found.interval) == ("web", "a2V5", INTERVAL)
    assert stand.desk.told == [("web-1", True)]


async def test_a_message_that_comes_again_is_known_for_that(stand: Stand) -> None:
    later = msgspec.structs.replace(TOLD, sequence=2)
    for message in (TOLD, TOLD, later):
        assert (await stand.post(exchange.ROUND_TRIPS_PATH, message))[0] == 200
    assert [new for _, new in stand.desk.told] == [True, False, True]


async def test_of_a_flood_of_users_the_desk_is_told_of_some_and_a_message_that_comes_again_costs_none(
    stand: Stand,
) -> None:
    message = exchange.RoundTrips("i", 1, TOLD.users * exchange.MAX_USERS)
    for sequence in (1, 1, 2, 3, 4, 5):
        await stand.post(exchange.ROUND_TRIPS_PATH, msgspec.structs.replace(message, sequence=sequence))
    assert stand.desk.users[:5] == [exchange.MAX_USERS] * 5
    assert stand.desk.users[5] < exchange.MAX_USERS


async def test_a_router_that_is_to_steer_tells_as_often_as_the_desk_says(stand: Stand) -> None:
    stand.desk.interval = 1.0
    _, _, body = await stand.post(exchange.ROUND_TRIPS_PATH, TOLD)
    assert msgspec.json.decode(body, type=exchange.Instructions).interval == 1.0


async def test_many_pods_are_asked_to_tell_less_often(stand: Stand) -> None:
    for number in range(300):
        status, _, body = await stand.post(exchange.ROUND_TRIPS_PATH, TOLD, f"default/web-{number}/a")
        assert status == 200
    assert msgspec.json.decode(body, type=exchange.Instructions).interval > INTERVAL


@pytest.mark.parametrize(
    ("message", "waited"),
    [pytest.param(FOUND, False, id="it answers"), pytest.param(exchange.ProbeAnswers(), True, id="it asks")],
)
async def test_a_node_agent_answers_and_asks(stand: Stand, message: exchange.ProbeAnswers, waited: bool) -> None:
    status, _, body = await stand.post(exchange.PROBES_PATH, message, "berth-node/agent-1/n1")
    assert (status, msgspec.json.decode(body, type=exchange.ProbeOrders)) == (200, ORDERS)
    assert (stand.desk.found, stand.desk.waited) == ([("n1", message)], [waited])


MANY = msgspec.structs.replace(TOLD, users=TOLD.users * (exchange.MAX_USERS + 1))
ROUND_TRIPS, PROBES = exchange.ROUND_TRIPS_PATH, exchange.PROBES_PATH


@pytest.mark.parametrize(
    ("path", "message", "token", "status", "words"),
    [
        pytest.param(ROUND_TRIPS, TOLD, None, 401, b"a token is needed", id="no token"),
        pytest.param(ROUND_TRIPS, TOLD, "nobody/x/y", 401, b"a token is needed", id="a token that is not known"),
        pytest.param(ROUND_TRIPS, TOLD, "trouble/x/y", 503, b"", id="nobody says whose it is"),
        pytest.param(PROBES, FOUND, "default/web-1/a", 403, b"only node agents", id="a meter as an agent"),
        pytest.param(PROBES, FOUND, "berth-node/agent/", 403, b"only node agents", id="an agent of no node"),
        pytest.param(ROUND_TRIPS, b"{", "default/web-1/a", 400, b"", id="no message"),
        pytest.param(ROUND_TRIPS, b"[" * 100_000, "default/web-1/a", 400, b"", id="nested without end"),
        pytest.param(ROUND_TRIPS, b"\xff", "default/web-1/a", 400, b"", id="no text"),
        pytest.param(ROUND_TRIPS, MANY, "default/web-1/a", 400, b"more than 1000 users", id="too many users"),
        pytest.param(
            ROUND_TRIPS,
            msgspec.structs.replace(TOLD, instance="i" * (exchange.MAX_INSTANCE + 1)),
            "default/web-1/a",
            400,
            b"more than 64 characters",
            id="a long name",
        ),
        pytest.param(ROUND_TRIPS, b" " * (MAX_BYTES + 1), "default/web-1/a", 413, b"", id="without end"),
        pytest.param("/", TOLD, "default/web-1/a", 404, b"", id="elsewhere"),
    ],
)
async def test_what_is_not_let_through(
    stand: Stand, path: str, message: Any, token: str | None, status: int, words: bytes
) -> None:
    answered, headers, body = await stand.post(path, message, token)
    assert answered == status, body
    assert words in body
    assert ("Retry-After" in headers) == (status == 503)
    assert (stand.desk.told, stand.desk.found) == ([], [])


async def test_what_is_compressed_is_refused_in_words(stand: Stand) -> None:
    sent = gzip.compress(msgspec.json.encode(TOLD))
    status, _, body = await stand.post(ROUND_TRIPS, sent, **{"Content-Encoding": "gzip"})
    assert (status, stand.desk.told) == (415, [])
    assert b"leave out Content-Encoding" in body


async def test_who_says_too_much_is_asked_to_come_later(stand: Stand) -> None:
    for number in range(round(POD_BURST)):
        message = msgspec.structs.replace(TOLD, sequence=number)
        assert (await stand.post(ROUND_TRIPS, message))[0] == 200
    status, headers, _ = await stand.post(ROUND_TRIPS, TOLD)
    assert (status, headers["Retry-After"]) == (429, "1")
    assert len(stand.desk.told) == POD_BURST
    assert (await stand.post(ROUND_TRIPS, TOLD, "default/web-2/a"))[0] == 200, "another pod is heard"
    stand.clock.advance(1.0)
    assert (await stand.post(ROUND_TRIPS, TOLD))[0] == 200


async def test_many_new_tokens_at_once_are_all_looked_up(stand: Stand) -> None:
    count = 3 * AT_ONCE
    found = await asyncio.gather(*(stand.post(ROUND_TRIPS, TOLD, f"default/web-{at}/a") for at in range(count)))
    assert {status for status, _, _ in found} == {200}
    assert {pod for pod, _ in stand.desk.told} == {f"web-{at}" for at in range(count)}


async def test_a_connection_costs_little_whoever_makes_it(stand: Stand) -> None:
    """5000 agents have one each; and nobody needs a token to make some."""
    port, several = int(stand.url.rpartition(":")[2]), 100
    await stand.post(exchange.ROUND_TRIPS_PATH, TOLD)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(several)]
        await stand.post(exchange.ROUND_TRIPS_PATH, TOLD)  # by then those before it are accepted
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for _, writer in silent:
        writer.close()
    # The reader and the writer of the test are a part of it.
    assert (after - before) / several < 64 * 1024


async def test_who_does_not_begin_to_speak_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_protocol, "HANDSHAKE_SECONDS", 0.1)
    async with listening() as stand:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(stand.url.rpartition(":")[2]))
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()


async def test_who_has_not_begun_to_speak_when_it_stops_is_cut_off() -> None:
    """Else the handshake would go on, and a controller that has ended take in what is said."""
    async with listening() as stand:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(stand.url.rpartition(":")[2]))
        await stand.post(exchange.ROUND_TRIPS_PATH, TOLD)  # by then that one is accepted
    assert await asyncio.wait_for(reader.read(), tls_protocol.HANDSHAKE_SECONDS / 2) == b""
    writer.close()


@pytest.mark.parametrize("speaks", [pytest.param(False, id="says nothing"), pytest.param(True, id="without a token")])
async def test_whom_nobody_knows_keeps_a_few_connections_and_takes_none_of_others(
    monkeypatch: pytest.MonkeyPatch, *, speaks: bool
) -> None:
    monkeypatch.setattr(endpoint, "MOST_STRANGERS", 3)
    async with listening() as stand:
        await stand.post(exchange.ROUND_TRIPS_PATH, TOLD)
        [known] = [each.transport for each in _connections(stand.session)]
        port, opened = int(stand.url.rpartition(":")[2]), list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]()
        for _ in range(10):
            context = stand.context if speaks else None
            server_name = exchange.SERVER_NAME if speaks else None
            opened.append(await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=server_name))
            if speaks:
                opened[-1][1].write(b"POST /v1/round-trips HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
                assert b"401" in await opened[-1][0].readline()
        for reader, _ in opened[:7]:
            assert await asyncio.wait_for(_end(reader), 60)
        assert not any(reader.at_eof() for reader, _ in opened[7:])
        assert (await stand.post(exchange.ROUND_TRIPS_PATH, TOLD))[0] == 200
        assert [each.transport for each in _connections(stand.session)] == [known], "that of before"
        for _, writer in opened:
            writer.transport.abort()


def _connections(session: aiohttp.ClientSession) -> list[Any]:
    """Those that are kept."""
    assert session.connector is not None
    return [kept[0] for each in session.connector._conns.values() for kept in each]


async def _end(reader: asyncio.StreamReader) -> bool:
    """Read to the end, however it comes."""
    try:
        while await reader.read(1000):
            pass
    except ConnectionError:
        pass
    return True
