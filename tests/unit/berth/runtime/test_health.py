"""Checks, and the HTTP server that shows them on a real socket of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from functools import partial
from itertools import pairwise

import aiohttp
import pytest

from berth.runtime import health
from berth.runtime.health import MAX_CONNECTIONS, Checks, HealthPortError, HealthServer


def raising() -> str | None:
    raise RuntimeError("boom")


def test_no_checks_is_healthy_and_ready() -> None:
    assert Checks().health() == {}
    assert Checks().ready() == {}


def test_failing_health_is_also_unready_but_not_the_other_way_round() -> None:
    checks = Checks()
    checks.add_health("watch pods", lambda: "silent")
    checks.add_ready("sync nodes", lambda: "not listed")
    checks.add_ready("sync pods", lambda: None)
    assert checks.health() == {"watch pods": "silent"}
    assert checks.ready() == {"watch pods": "silent", "sync nodes": "not listed"}


@pytest.mark.parametrize(
    ("problems", "shown"),
    [
        pytest.param((None, None), {}, id="both well"),
        pytest.param(("one", None), {"watch pods": "one"}, id="the second does not hide the first"),
        pytest.param((None, "two"), {"watch pods": "two"}, id="the first does not hide the second"),
        pytest.param(("one", "two"), {"watch pods": "one; two"}, id="both are told"),
    ],
)
def test_checks_of_the_same_name_all_count(problems: tuple[str | None, ...], shown: dict[str, str]) -> None:
    checks = Checks()
    for problem in problems:
        checks.add_health("watch pods", partial(str.__str__, problem) if problem else lambda: None)
    assert checks.health() == shown


def test_a_check_that_raises_has_failed() -> None:
    checks = Checks()
    checks.add_health("odd", raising)
    assert checks.health() == {"odd": "the check itself failed: RuntimeError('boom')"}


async def fetch(port: int, path: str) -> tuple[int, str, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
        return response.status, await response.text(), response.headers["Content-Type"]


@pytest.fixture
def checks() -> Checks:
    return Checks()


async def test_whoever_holds_connections_open_does_not_take_all_memory(checks: Checks) -> None:
    server = HealthServer(checks, host="127.0.0.1", port=0)
    await server.start()
    opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    try:
        for _ in range(3 * MAX_CONNECTIONS):
            opened.append(await asyncio.open_connection("127.0.0.1", server.port))
            opened[-1][1].write(b"GET /healthz HTTP/1.1\r\n")  # and never the end of it
        assert (await fetch(server.port, "/healthz"))[:2] == (200, "ok\n")
        async with asyncio.timeout(60):
            for reader, _ in opened[: 2 * MAX_CONNECTIONS]:
                with contextlib.suppress(ConnectionResetError):
                    assert await reader.read() == b""
    finally:
        for _, writer in opened:
            writer.close()
        await server.stop()


async def test_whoever_does_not_read_what_was_asked_for_keeps_no_connection(checks: Checks) -> None:
    size = 32 * 2**20  # more than what is on its way
    checks.add_ready("large", lambda: "x" * size)
    server = HealthServer(checks, host="127.0.0.1", port=0)
    await server.start()
    opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    try:
        for number in range(MAX_CONNECTIONS + 1):
            opened.append(await asyncio.open_connection("127.0.0.1", server.port))
            if not number:
                opened[0][1].write(b"GET /readyz HTTP/1.1\r\nHost: berth\r\n\r\n")
                assert await opened[0][0].readline() == b"HTTP/1.1 503 Service Unavailable\r\n"
        assert (await fetch(server.port, "/healthz"))[:2] == (200, "ok\n")
        read = 0
        async with asyncio.timeout(60):
            with contextlib.suppress(ConnectionResetError):
                while part := await opened[0][0].read(2**20):
                    read += len(part)
        assert read < size
    finally:
        for _, writer in opened:
            writer.close()
        await server.stop()


async def test_server_shows_checks_and_metrics(checks: Checks) -> None:
    server = HealthServer(checks, host="127.0.0.1", port=0)
    await server.start()
    try:
        assert server.port > 0
        assert (await fetch(server.port, "/healthz"))[:2] == (200, "ok\n")
        assert (await fetch(server.port, "/readyz"))[:2] == (200, "ok\n")
        checks.add_ready("sync pods", lambda: "first list not complete")
        assert (await fetch(server.port, "/healthz"))[:2] == (200, "ok\n")
        assert (await fetch(server.port, "/readyz"))[:2] == (503, "sync pods: first list not complete\n")
        checks.add_health("watch pods", lambda: "no response for 200 s")
        assert (await fetch(server.port, "/healthz"))[:2] == (503, "watch pods: no response for 200 s\n")
        status, text, content_type = await fetch(server.port, "/metrics")
        assert status == 200
        assert content_type.startswith("text/plain")
        assert "# TYPE berth_api_requests_total counter" in text
        assert (await fetch(server.port, "/else"))[0] == 404
    finally:
        await server.stop()
    with pytest.raises(aiohttp.ClientConnectionError):
        await fetch(server.port, "/healthz")


async def test_stop_before_start_and_twice_is_fine(checks: Checks) -> None:
    server = HealthServer(checks, host="127.0.0.1", port=0)
    await server.stop()
    await server.start()
    await server.stop()
    await server.stop()


async def test_a_taken_port_is_told_with_the_remedy(checks: Checks) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(HealthPortError, match=rf"127\.0\.0\.1:{port} .* choose another --health-port"):
            await HealthServer(checks, host="127.0.0.1", port=port).start()


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70_000), ("192.0.2.1", 0)])
async def test_an_impossible_address_is_told(checks: Checks, host: str, port: int) -> None:
    with pytest.raises(HealthPortError, match=f"cannot listen on {host}:{port}"):
        await HealthServer(checks, host=host, port=port).start()


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/nothing"])
async def test_a_connection_has_one_answer(checks: Checks, path: str) -> None:
    # Else a few of them, asking without a pause, would keep everything else in the event loop waiting.
    server = HealthServer(checks, host="127.0.0.1", port=0)
    await server.start()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode() * 50)
        answers = await asyncio.wait_for(reader.read(), timeout=10)
        writer.close()
    finally:
        await server.stop()
    head = answers.partition(b"\r\n\r\n")[0].lower()
    assert b"connection: close" in head
    assert answers.count(b"HTTP/1.1 ") == 1


async def test_metrics_are_made_once_for_all_who_ask_and_a_tenth_of_the_time(
    checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    took = 0.05
    made: list[float] = []

    def slow() -> bytes:
        made.append(time.monotonic())
        time.sleep(took)  # it is the event loop that stands still meanwhile
        return b"%d\n" % value

    value = 1
    monkeypatch.setattr(health, "generate_latest", slow)
    server = HealthServer(checks, host="127.0.0.1", port=0)
    await server.start()
    try:
        first = await fetch(server.port, "/metrics")
        value = 2
        others = await asyncio.gather(*(fetch(server.port, "/metrics") for _ in range(40)))
        value = 3
        last = await fetch(server.port, "/metrics")
    finally:
        await server.stop()
    assert first[1] == "1\n"
    assert {answer for _, answer, _ in others} == {"2\n"}
    assert last[1] == "3\n"
    assert all(later - earlier >= 10 * took for earlier, later in pairwise(made))
    assert len(made) < 10


async def test_metrics_that_cannot_be_made_take_no_more_of_the_time(
    checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    took = 0.02
    tried: list[float] = []

    def fails() -> bytes:
        tried.append(time.monotonic())
        time.sleep(took)
        raise ValueError("a collector that fails")

    monkeypatch.setattr(health, "generate_latest", fails)
    server = HealthServer(checks, host="127.0.0.1", port=0)
    await server.start()
    try:
        assert [(await fetch(server.port, "/metrics"))[0] for _ in range(3)] == [500] * 3
    finally:
        await server.stop()
    assert all(later - earlier >= 10 * took for earlier, later in pairwise(tried))


async def test_metrics_are_made_for_others_when_one_who_asked_has_gone(checks: Checks) -> None:
    server = HealthServer(checks, host="127.0.0.1", port=0)
    await server.start()
    try:
        await fetch(server.port, "/metrics")
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        waits = asyncio.create_task(fetch(server.port, "/metrics"))
        writer.transport.abort()
        assert (await waits)[0] == 200
    finally:
        await server.stop()


async def test_whoever_asks_is_answered_however_many_connect_meanwhile(checks: Checks) -> None:
    # The kubelet starts a process again that does not answer it.
    server = HealthServer(checks, host="127.0.0.1", port=0)
    await server.start()
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:

        def connect() -> socket.socket:
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                client.connect(("127.0.0.1", server.port))
            return client

        asks = connect()
        asks.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        for _ in range(10):
            for _ in range(90):  # as many as the kernel keeps
                connect()
            await asyncio.sleep(0)
        answer = await asyncio.wait_for(loop.sock_recv(asks, 1000), timeout=10)
    await server.stop()
    assert answer.startswith(b"HTTP/1.1 ")
