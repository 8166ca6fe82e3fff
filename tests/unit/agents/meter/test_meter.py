"""What is measured of requests: a real application, the meter before it, and clients on real connections.

What forwarding itself does is tested in tests/unit/berth/runtime/proxy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from prometheus_client import REGISTRY

from agents.meter.meter import Meter
from berth.api.latency_exchange import Identity, IdentitySource, Instructions, hash_identity
from berth.kube.lease import boot_clock
from berth.runtime.measuring.users import User, UserTable
from berth.runtime.proxy.forwarding import Forwarding
from berth.runtime.proxy.mark import MARK_HEADER, mark_of
from berth.runtime.proxy.pool import UpstreamPool
from berth.runtime.proxy.server import ProxyServer
from tests.support.proxying import Application, Visit, answering, application, get, status_of

KEY = b"k" * 32
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HEADER = Identity(IdentitySource.HEADER, "X-User")


@dataclass
class Client:
    """A connection of a user."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, *fields: str) -> int:
        """Status of the answer to a request; the connection stays."""
        self.writer.write(get("/", *fields, last=False))
        head = await self.reader.readuntil(b"\r\n\r\n")
        await self.reader.readexactly(2)
        return status_of(head)


@dataclass
class Stand:
    """A meter with what belongs to it."""

    app: Application
    table: UserTable
    meter: Meter
    server: ProxyServer
    came: list[None] = field(default_factory=list)

    @property
    def users(self) -> dict[str, User]:
        return {user.name: user for user in self.table}

    def follow(self, identity: Identity = HEADER, key: bytes = KEY) -> bool:
        return self.meter.follow(Instructions("near", identity=identity), key)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        try:
            yield Client(reader, writer)
        finally:
            writer.close()


@asynccontextmanager
async def metering(app: Application) -> AsyncIterator[Stand]:
    pool, table = UpstreamPool(), UserTable(100)
    came: list[None] = []
    meter = Meter(
        table,
        Forwarding(pool),
        app.address,
        identity=Identity(),
        timestamp_header="X-Timestamp",
        answer_seconds=10.0,
        came=lambda: came.append(None),
    )
    server = ProxyServer(meter.handle, host="127.0.0.1", port=0)
    await server.start()
    try:
        yield Stand(app, table, meter, server, came)
    finally:
        await server.stop(seconds=0)
        await pool.close()


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    async with application(answering(OK)) as app, metering(app) as found:
        yield found


def rejected(reason: str) -> float:
    return REGISTRY.get_sample_value("berth_meter_timestamps_rejected_total", {"reason": reason}) or 0.0


def outcomes(outcome: str) -> float:
    return REGISTRY.get_sample_value("berth_meter_requests_total", {"outcome": outcome}) or 0.0


def stated(seconds: float = 0.0) -> str:
    """What a client says whose clock is so far ahead."""
    return f"{1000 * (time.time() + seconds):.3f}"


async def test_a_user_is_measured_with_the_first_request(stand: Stand) -> None:
    async with stand.client() as client:
        assert await client.ask() == 200
    [user] = stand.table
    assert (user.count, user.address, len(stand.came)) == (1, "127.0.0.1", 1)
    assert 0 < user.microseconds[0] < 1_000_000
    assert "127.0.0.1" not in user.name


async def test_users_are_told_from_each_other_as_the_policy_says(stand: Stand) -> None:
    assert stand.follow()
    async with stand.client() as client:
        for name in ("alice", "bob", "alice"):
            assert await client.ask(f"X-User: {name}") == 200
        assert await client.ask() == 200
    assert set(stand.users) == {hash_identity(KEY, name) for name in ("alice", "bob", "127.0.0.1")}
    assert len(stand.came) == 3


@pytest.mark.parametrize(
    ("identity", "key", "forgotten"),
    [
        pytest.param(HEADER, KEY, False, id="as before"),
        pytest.param(HEADER, b"n" * 32, True, id="another key"),
        pytest.param(Identity(IdentitySource.QUERY, "id"), KEY, True, id="another identity"),
    ],
)
async def test_users_with_other_names_are_forgotten(
    stand: Stand, identity: Identity, key: bytes, forgotten: bool
) -> None:
    stand.follow()
    async with stand.client() as client:
        await client.ask("X-User: alice")
    assert stand.follow(identity, key) is forgotten
    assert (len(stand.table) == 0) is forgotten


@pytest.mark.parametrize(
    ("identity", "path", "cookie"),
    [
        pytest.param(Identity(IdentitySource.QUERY, "id"), "/?id=%ED%A0%80", "", id="a query that is no text"),
        pytest.param(Identity(IdentitySource.QUERY, "id"), "/?id=%", "", id="a query quoted badly"),
        pytest.param(Identity(IdentitySource.QUERY, "id"), "/?id=%00", "", id="a query with a zero"),
        pytest.param(Identity(IdentitySource.QUERY, "id"), "//[", "", id="a path that looks like a host"),
        pytest.param(Identity(IdentitySource.QUERY, "id"), "/?id=" + "a" * 9000, "", id="a long query"),
        pytest.param(Identity(IdentitySource.COOKIE, "sid"), "/", 'sid="a\\073b"', id="a cookie in quotes"),
        pytest.param(Identity(IdentitySource.COOKIE, "sid"), "/", "sid=\udcff\udcfe", id="a cookie that is no text"),
        pytest.param(Identity(IdentitySource.COOKIE, "sid"), "/", "=; ;[]=1; sid", id="cookies that are none"),
        pytest.param(Identity(IdentitySource.HEADER, "Cookie"), "/", "x" * 9000, id="a long header"),
    ],
)
async def test_whatever_users_call_themselves_they_are_answered(
    stand: Stand, identity: Identity, path: str, cookie: str
) -> None:
    stand.follow(identity)
    async with stand.client() as client:
        fields = [f"Cookie: {cookie}"] if cookie else []
        client.writer.write(
            "\r\n".join([f"GET {path} HTTP/1.1", "Host: h", *fields, "", ""]).encode(errors="surrogateescape")
        )
        assert status_of(await client.reader.readuntil(b"\r\n\r\n")) == 200
    assert len(stand.table) == 1


async def test_without_a_policy_users_keep_their_names(stand: Stand) -> None:
    async with stand.client() as client:
        await client.ask()
    assert not stand.meter.follow(Instructions(), b"")
    assert len(stand.table) == 1


@pytest.mark.parametrize(
    "mark",
    [
        pytest.param(mark_of(KEY, hash_identity(KEY, "alice")), id="of a router"),
        pytest.param(mark_of(b"x" * 32, hash_identity(KEY, "alice")), id="by another key"),
        pytest.param("forged", id="made up"),
        pytest.param("", id="empty"),
        pytest.param("\xff.\xff", id="no text"),
    ],
)
async def test_who_has_a_mark_changes_nothing_as_if_he_had_not_come(stand: Stand, mark: str) -> None:
    stand.follow()
    async with stand.client() as client:
        assert await client.ask("X-User: alice") == 200
        [alice] = stand.table
        told = alice.last, alice.count, stand.table.changes
        for name in ("alice", "bob"):
            await client.ask(f"{MARK_HEADER}: {mark}", f"X-User: {name}", f"X-Timestamp: {stated()}")
    assert ([*stand.table], len(stand.came)) == ([alice], 1)
    assert (alice.last, alice.count, stand.table.changes) == told
    assert not any(MARK_HEADER.lower().encode() in head.lower() for head in stand.app.heads)


async def test_who_asks_stays_known_to_the_application(stand: Stand) -> None:
    async with stand.client() as client:
        await client.ask("X-Forwarded-For: 192.0.2.9", "X-Forwarded-Proto: https")
    head = stand.app.heads[0]
    assert b"X-Forwarded-For: 192.0.2.9, 127.0.0.1\r\n" in head
    assert b"X-Forwarded-Proto: https\r\n" in head


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("-1", "malformed", id="negative"),
        pytest.param("1e9", "malformed", id="a power"),
        pytest.param("1700000000", "absurd", id="seconds"),
        pytest.param("99999999999999", "absurd", id="far ahead"),
    ],
)
async def test_stated_times_that_are_not_believed(stand: Stand, text: str, reason: str) -> None:
    before = rejected(reason)
    async with stand.client() as client:
        assert await client.ask(f"X-Timestamp: {text}") == 200
    assert rejected(reason) == before + 1
    [user] = stand.table
    assert user.count == 1  # that of the kernel


@pytest.mark.parametrize("ahead", [0.0, 5000.0, -5000.0])
async def test_a_client_that_gets_further_shows_by_its_own_clock(stand: Stand, ahead: float) -> None:
    """By 10 s; what it took to come is more or less of that, and a busy machine takes its time."""
    async with stand.client() as client:
        begun = time.time()
        await client.ask(f"X-Timestamp: {stated(ahead)}")
        came = time.time() - begun
        [user] = stand.table
        [connection] = stand.meter._connections.values()
        begun = time.time()
        found = stand.meter._stated(user, connection, stated(ahead - 10.0), None, boot_clock())
        told = time.time() - begun
    assert isinstance(found, int)
    assert 2e6 * (10.0 - came) - 10_000 <= found <= 2e6 * (10.0 + told) + user.microseconds[0] + 10_000


async def test_a_client_that_states_an_absurd_time_later_is_not_believed(stand: Stand) -> None:
    before = rejected("absurd"), rejected("negative")
    async with stand.client() as client:
        await client.ask(f"X-Timestamp: {stated()}")
        [user] = stand.table
        [connection] = stand.meter._connections.values()
        for seconds in (-40.0, 40.0):
            stand.meter._by_statement(user, connection, stated(seconds), None, boot_clock())
    assert (rejected("absurd"), rejected("negative")) == (before[0] + 1, before[1] + 1)
    assert user.count == 1


async def test_who_is_answered_for_long_is_seen_all_the_while() -> None:
    go = asyncio.Event()

    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        await go.wait()
        await visit.say(b"cd")

    async with application(script) as app, metering(app) as stand, stand.client() as client:
        client.writer.write(get("/"))
        await client.reader.readuntil(b"ab")
        [user] = stand.table
        first = user.last
        stand.meter.look()
        assert user.last > first
        go.set()
        assert await client.reader.read() == b"cd"
        last = user.last
        stand.meter.look()
        assert user.last == last


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        pytest.param(["X-User: alice"], {hash_identity(KEY, "alice")}, id="by the policy's identity"),
        pytest.param([], {hash_identity(KEY, "127.0.0.1")}, id="by the address"),
    ],
)
@pytest.mark.parametrize("identity", [pytest.param(None, id="key"), pytest.param(HEADER, id="key and identity")])
async def test_who_was_there_before_the_policy_is_measured_as_it_says(
    identity: Identity | None, fields: list[str], found: set[str]
) -> None:
    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        await asyncio.Event().wait()

    async with application(script) as app, metering(app) as stand, stand.client() as client:
        client.writer.write(get("/", *fields))
        await client.reader.readuntil(b"ab")
        assert len(stand.table) == 1
        stand.follow(identity or Identity())
        stand.meter.look()
        expected = found if identity else {hash_identity(KEY, "127.0.0.1")}
        assert set(stand.users) == expected


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param(b"", "client", id="before the answer"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab", "client", id="within it"),
        pytest.param(
            b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nab",
            "answered",
            id="from a WebSocket, which either side ends",
        ),
    ],
)
async def test_who_goes_away(answer: bytes, outcome: str) -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(answer)
        asked.set()
        try:
            await visit.reader.read()
        finally:
            gone.set()

    before = outcomes("client"), outcomes("answered")
    async with application(script) as app, metering(app) as stand:
        async with stand.client() as client:
            client.writer.write(get("/", "Upgrade: websocket", "Connection: Upgrade", last=False))
            await asked.wait()
            if answer:
                await client.reader.readuntil(b"ab")
        await gone.wait()
        while stand.server.connections:
            await asyncio.sleep(0)
    counted = outcomes("client") - before[0], outcomes("answered") - before[1]
    assert counted == ((1, 0) if outcome == "client" else (0, 1))


@pytest.mark.parametrize("ahead", [5.0, -5.0])
async def test_clients_of_one_name_have_clocks_of_their_own(stand: Stand, ahead: float) -> None:
    now = boot_clock()

    def said(seconds: float) -> str:
        return f"{1000 * (stand.meter._since_1970 + now + seconds):.3f}"

    async with stand.client() as right, stand.client() as wrong:
        for client in (right, wrong):
            await client.ask()
        [user] = stand.table
        clients = tuple(zip(stand.meter._connections.values(), (0.0, ahead), strict=True))
        for connection, seconds in clients:
            assert stand.meter._stated(user, connection, said(seconds), 1000, now) is None
        for connection, seconds in clients:
            found = stand.meter._stated(user, connection, said(seconds - 0.1), None, now)
            assert found == pytest.approx(201_000, abs=10)


async def test_a_connection_of_several_users_says_nothing_of_anothers_clock(stand: Stand) -> None:
    stand.follow()
    async with stand.client() as client:
        await client.ask("X-User: alice", f"X-Timestamp: {stated()}")
        await client.ask("X-User: bob")
    [connection] = stand.meter._connections.values()
    bob = stand.users[hash_identity(KEY, "bob")]
    assert stand.meter._stated(bob, connection, stated(-0.1), None, boot_clock()) is None


async def test_who_does_not_come_any_more_is_forgotten(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stand.client() as client:
        await client.ask()
    stand.meter.look()
    assert len(stand.table) == 1
    now = boot_clock()
    monkeypatch.setattr("agents.meter.meter.boot_clock", lambda: now + 301.0)
    stand.meter.look()
    assert len(stand.table) == 0


async def test_an_application_that_is_gone_is_told_as_503() -> None:
    async with application(answering(OK)) as app:
        pass
    async with metering(app) as stand, stand.client() as client:
        client.writer.write(get("/"))
        answer = await client.reader.read()
    assert status_of(answer) == 503
    assert b"nobody answers" in answer
    assert len(stand.table) == 1  # the user is there all the same
