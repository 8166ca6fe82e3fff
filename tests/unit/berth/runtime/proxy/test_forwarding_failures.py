"""Requests through a real proxy to applications that fail, and of clients that stop or leave."""

from __future__ import annotations

import asyncio
import gc
import socket
from contextlib import AsyncExitStack

import pytest

from berth.runtime.proxy import body, upstream
from berth.runtime.proxy.body import REMEMBERED_BYTES
from berth.runtime.proxy.upstream import Address
from berth.runtime.tcp_info import segments_acknowledged
from tests.support.proxying import Script, Visit, answering, application, body_of, get, proxy, read_body, status_of

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def cut(answer: bytes) -> Script:
    """Answers with some bytes and resets the connection."""

    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(answer)
        visit.reset()

    return script


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", id="measured"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", id="in chunks"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n", id="a lie in a chunk"),
    ],
)
async def test_an_answer_that_is_cut_is_cut_for_the_client(answer: bytes) -> None:
    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(answer)
        await visit.reader.read(1)  # until the proxy has passed it on: the client says so by leaving

    async with application(script) as app, proxy(app.address, app.address) as under_test:
        async with under_test.client() as (reader, writer):
            writer.write(get())
            await reader.readuntil(b"abc")
            for connection in list(under_test.pool._all):
                connection.abort()
            with pytest.raises(ConnectionResetError):
                await reader.read()
        assert app.visits == 1, "no second attempt once the client has a byte"


NOBODY = "nobody listens"


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "POST", "PATCH"])
async def test_what_was_never_sent_goes_elsewhere_whatever_it_is(method: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        nobody = Address("127.0.0.1", held.getsockname()[1])
    async with application(answering(OK)) as app, proxy(nobody, app.address) as under_test:
        assert status_of(await under_test.ask(get(method=method))) == 200
        assert under_test.failures == ["connect"]
        assert under_test.done[0].address == app.address


BROKEN = [
    pytest.param(cut(b""), id="reset"),
    pytest.param(cut(b"HTTP/1.1 200 OK\r\nContent-"), id="reset within the head"),
    pytest.param(answering(b"rubbish\r\n\r\n"), id="rubbish"),
    pytest.param(answering(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), id="a lie about the length"),
    pytest.param(answering(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 10**6), id="a head without end"),
    pytest.param(
        answering(b"HTTP/1.1 101 Switch\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"), id="101 unasked"
    ),
]


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("DELETE", 200), ("POST", 502), ("PATCH", 502)])
async def test_a_second_attempt_only_where_it_does_no_harm(broken: Script, method: str, status: int) -> None:
    async with (
        application(broken) as bad,
        application(answering(OK)) as good,
        proxy(bad.address, good.address) as under_test,
    ):
        assert status_of(await under_test.ask(get(method=method))) == status
        assert good.visits == (status == 200)
        assert len(under_test.failures) == 1


def nobody() -> Address:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        return Address("127.0.0.1", held.getsockname()[1])


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_several_pods_may_be_gone_at_once(method: str) -> None:
    """As those of a node that fails; nothing was sent to any of them."""
    async with application(answering(OK)) as app, proxy(nobody(), nobody(), nobody(), app.address) as under_test:
        assert status_of(await under_test.ask(get(method=method))) == 200


@pytest.mark.parametrize("broken", [pytest.param(None, id="nobody listens"), *BROKEN])
async def test_clients_are_told_nothing_of_what_is_behind(broken: Script | None) -> None:
    async with application(broken or answering(OK)) as app:
        address = app.address if broken else nobody()
        async with proxy(address) as under_test:
            answer = await under_test.ask(get(method="POST"))
            assert status_of(answer) == (502 if broken else 503)
            assert not any(text in answer for text in (b"127.0.0.1", str(address.port).encode(), b"rubbish", b"xxx"))


async def test_a_client_that_stops_within_its_upload_is_no_failure_of_the_application(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The application has begun its answer, and waits for the rest."""
    monkeypatch.setattr(body, "SILENT_SECONDS", 0.2)

    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        await visit.reader.read()

    async with application(script) as app, proxy(app.address) as under_test, under_test.client() as (reader, writer):
        writer.write(get("/", "Transfer-Encoding: chunked", method="PUT") + b"1\r\na\r\n")
        await reader.readuntil(b"1\r\na\r\n")
        async with asyncio.timeout(60):
            while not under_test.done:
                await asyncio.sleep(0.01)
        assert under_test.failures == []
        assert under_test.done[0].failure == "client"


async def test_an_application_may_take_its_time_over_an_upload(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it reads nothing its window is shut, and the kernel asks again and again whether it still is."""
    monkeypatch.setattr(upstream, "SILENT_MILLISECONDS", 100)
    size, ready = 16 * 2**20, asyncio.Event()

    async def script(visit: Visit) -> None:
        await visit.head()
        visit.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await ready.wait()
        visit.writer.transport.resume_reading()  # type: ignore[attr-defined]
        await visit.reader.readexactly(size)
        await visit.say(OK)

    async with application(script) as app, proxy(app.address) as under_test:
        asking = asyncio.create_task(under_test.ask(get("/", f"Content-Length: {size}", method="POST") + b"x" * size))
        async with asyncio.timeout(60):
            while not asking.done() and max(map(probes, under_test.pool._all), default=0) < 3:
                await asyncio.sleep(0.01)
        ready.set()
        assert status_of(await asking) == 200
        assert under_test.failures == []


def probes(connection: upstream.UpstreamConnection) -> int:
    """How often the kernel has asked since it last heard of room (tcpi_backoff)."""
    assert connection._transport is not None
    told: bytes = connection._transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)
    return told[4]


async def test_two_attempts_and_no_more() -> None:
    async with (
        application(cut(b"")) as one,
        application(cut(b"")) as two,
        application(answering(OK)) as three,
        proxy(one.address, two.address, three.address) as under_test,
    ):
        answer = await under_test.ask(get())
        assert status_of(answer) == 502
        assert b"the application did not answer" in body_of(answer)
        assert three.visits == 0


@pytest.mark.parametrize(
    ("size", "status"),
    [
        pytest.param(REMEMBERED_BYTES, 200, id="remembered"),
        pytest.param(REMEMBERED_BYTES + 1, 502, id="too long"),
    ],
)
async def test_a_body_is_sent_again_while_it_is_remembered(size: int, status: int) -> None:
    got: list[int] = []

    async def bad_script(visit: Visit) -> None:
        await visit.head()
        await visit.reader.readexactly(size)
        visit.reset()

    async def good_script(visit: Visit) -> None:
        got.append(len(await read_body(visit, await visit.head())))
        await visit.say(OK)

    async with (
        application(bad_script) as bad,
        application(good_script) as good,
        proxy(bad.address, good.address) as under_test,
    ):
        asked = get("/", f"Content-Length: {size}", method="PUT")
        assert status_of(await under_test.ask(asked + b"x" * size)) == status
    assert got == [size] * (status == 200)


@pytest.mark.parametrize("times", [1, 2, 8])
async def test_a_kept_connection_that_proves_closed_is_no_failure(times: int) -> None:
    """A server may close a connection that it keeps just as the next request is on its way."""
    kept: list[Visit] = []
    full = asyncio.Event()

    async def script(visit: Visit) -> None:
        await visit.head()
        if visit.number >= times:
            await visit.say(OK)
            await answering(OK)(visit)
        kept.append(visit)
        if len(kept) == times:
            full.set()
        await full.wait()
        await visit.say(OK)
        await visit.reader.read()

    async with application(script) as app, proxy(app.address) as under_test:
        assert await asyncio.gather(*(under_test.ask(get()) for _ in range(times)))
        transports = [connection._transport for connection in under_test.pool._all]
        for transport in transports:
            assert transport is not None
            transport.pause_reading()  # so that the proxy does not hear of the end before it has sent
        for visit in kept:
            visit.writer.close()
            await visit.writer.wait_closed()
        asking = asyncio.create_task(under_test.ask(get()))
        [free] = under_test.pool._free.values()
        while len(free) == times:
            await asyncio.sleep(0)
        for transport in transports:
            if transport is not None and not transport.is_closing():
                transport.resume_reading()
        assert status_of(await asking) == 200
        assert (under_test.failures, len(app.heads)) == ([], times + 1)


async def test_a_request_that_nobody_has_read_when_its_connection_ends_is_no_failure() -> None:
    """A busy server closes what seems idle to it, while the request waits in its kernel, which has acknowledged it."""
    acknowledged = asyncio.Event()

    async def script(visit: Visit) -> None:
        await visit.head()
        if not visit.number:
            visit.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await visit.say(OK)
        if not visit.number:
            await acknowledged.wait()
            visit.reset()

    async with application(script) as app, proxy(app.address) as under_test:
        assert status_of(await under_test.ask(get())) == 200
        [connection] = under_test.pool._all
        assert connection._transport is not None
        kept = connection._transport.get_extra_info("socket")
        before = segments_acknowledged(kept)
        asking = asyncio.create_task(under_test.ask(get()))
        while segments_acknowledged(kept) == before:
            await asyncio.sleep(0.01)
        acknowledged.set()
        assert status_of(await asking) == 200
        assert (under_test.failures, app.visits) == ([], 2)


@pytest.mark.parametrize("kept", [0, 1, 4])
async def test_what_applications_die_of_reaches_two_of_them(kept: int) -> None:
    """Whether by connections that were kept or by new ones: the request had arrived, and was no victim of a close."""

    async def script(visit: Visit) -> None:
        while b"/deadly" not in await visit.head():
            await visit.say(OK)

    async with AsyncExitStack() as stack:
        apps = [await stack.enter_async_context(application(script)) for _ in range(4)]
        under_test = await stack.enter_async_context(proxy(*(app.address for app in apps)))
        for app in apps[:kept]:
            connection = await under_test.pool.acquire(app.address, repeatable=True)
            connection.begin(get(last=False), method="GET")
            assert await connection.read() == b"hi"
            under_test.pool.release(connection)
        assert status_of(await under_test.ask(get("/deadly"))) == 502
        deaths = [sum(b"/deadly" in head for head in app.heads) for app in apps]
        assert deaths == [1, 1, 0, 0]
        assert under_test.failures == ["cut", "cut"]


@pytest.mark.parametrize("error", [TimeoutError(110, "timed out"), OSError(113, "no route to host")], ids=repr)
async def test_a_kept_connection_to_a_node_that_is_gone_is_a_failure(error: OSError) -> None:
    """It was not closed: what is kept besides leads nowhere either, and each attempt would take seconds."""

    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(OK)
        await visit.head()
        await visit.reader.read()

    async with (
        application(script) as bad,
        application(answering(OK)) as good,
        proxy(bad.address, good.address) as under_test,
    ):
        assert status_of(await under_test.ask(get())) == 200
        asking = asyncio.create_task(under_test.ask(get()))
        while len(bad.heads) < 2:
            await asyncio.sleep(0.01)
        [connection] = under_test.pool._all
        assert connection._transport is not None
        connection._transport._fatal_error(error)  # type: ignore[attr-defined]
        assert status_of(await asking) == 200
        assert (under_test.failures, good.visits) == (["cut"], 1)


async def test_an_application_that_takes_too_long() -> None:
    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.reader.read()

    async with (
        application(script) as slow,
        application(answering(OK)) as good,
        proxy(slow.address, good.address, answer_seconds=0.2) as under_test,
    ):
        assert status_of(await under_test.ask(get())) == 504
        assert good.visits == 0, "what takes long here may take long there"


async def test_nobody_is_ready() -> None:
    async with proxy() as under_test:
        assert status_of(await under_test.ask(get())) == 503


async def test_a_client_that_leaves_takes_its_request_along() -> None:
    gone = asyncio.Event()

    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.say(b"HTTP/1.1 103 Hint\r\n\r\n")
        try:
            await visit.reader.read()
        finally:
            gone.set()

    async with application(script) as app, proxy(app.address) as under_test:
        async with under_test.client() as (_, writer):
            writer.write(get())
            while not app.heads:
                await asyncio.sleep(0.01)
        async with asyncio.timeout(60):
            await gone.wait()


async def test_nothing_is_logged_of_a_client_that_leaves_within_its_upload(caplog: pytest.LogCaptureFixture) -> None:
    async def script(visit: Visit) -> None:
        await visit.head()
        await visit.reader.read()

    async with application(script) as app, proxy(app.address) as under_test:
        async with under_test.client() as (_, writer):
            writer.write(get("/", "Content-Length: 9", method="PUT") + b"abc")
            while not app.heads:
                await asyncio.sleep(0.01)
        async with asyncio.timeout(60):
            while not under_test.done:
                await asyncio.sleep(0.01)
    gc.collect()  # a task whose end nobody has looked at speaks when it goes
    assert caplog.records == []


async def test_an_upload_that_is_cut_never_looks_whole() -> None:
    got: list[object] = []

    async def script(visit: Visit) -> None:
        try:
            got.append(await read_body(visit, await visit.head()))
        except (asyncio.IncompleteReadError, ConnectionError, ValueError) as error:
            got.append(type(error))

    async with application(script) as app, proxy(app.address) as under_test:
        for framing, part in (("Content-Length: 10", b"abc"), ("Transfer-Encoding: chunked", b"3\r\nabc\r\n")):
            async with under_test.client() as (_, writer):
                writer.write(get("/", framing, method="PUT") + part)
                while len(app.heads) == len(got):
                    await asyncio.sleep(0.01)
        async with asyncio.timeout(60):
            while len(got) < 2:
                await asyncio.sleep(0.01)
    assert b"abc" not in got
