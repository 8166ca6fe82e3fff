"""The meter as a process: without credentials, beside a real application and a real HTTPS server as controller."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import yaml
from aiohttp import web

from berth.api.latency_exchange import Identity, IdentitySource, hash_identity
from tests.support.api_server import ApiServer, api_server, refusal
from tests.support.latency_controller import CERTIFICATE, KEY, instructions, latency_controller
from tests.support.probe import QUIET, Running, berth
from tests.support.proxying import Visit, answering, application, body_of, get, status_of

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HEADER = Identity(IdentitySource.HEADER, "X-User")


@asynccontextmanager
async def meter(directory: Path, application_port: int, *arguments: str) -> AsyncIterator[tuple[Running, int]]:
    """A process that knows no cluster, and its port for users."""
    options = ["--meter-port=0", f"--meter-application=127.0.0.1:{application_port}", "--meter-address=127.0.0.1"]
    with berth("run", "meter", *QUIET, *options, *arguments, env={"HOME": str(directory)}) as process:
        started = await asyncio.to_thread(process.until, "users are measured")
        yield process, int(started["port"])


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read()
    finally:
        writer.close()


async def test_it_needs_neither_credentials_nor_a_controller(tmp_path: Path) -> None:
    async with application(answering(OK)) as app, meter(tmp_path, app.address.port) as (process, port):
        answer = await ask(port, get("/"))
        assert await asyncio.to_thread(process.stop) == 0
    assert (status_of(answer), body_of(answer)) == (200, b"ok")
    [line] = (line for line in process.lines if line["event"] == "users are measured")
    assert line["measurements_port"] is None  # nobody has a token


async def test_a_controller_that_cannot_be_looked_for_keeps_no_user_out(tmp_path: Path) -> None:
    options = ["--meter-controller-namespace=berth-system", "--meter-linger=0"]
    async with application(answering(OK)) as app, meter(tmp_path, app.address.port, *options) as (process, port):
        await asyncio.to_thread(process.until, "the latency controller cannot be looked for")
        assert status_of(await ask(port, get("/"))) == 200
        assert await asyncio.to_thread(process.stop) == 0


def kubeconfig(directory: Path, right: ApiServer, wrong: ApiServer, context: str | None) -> Path:
    """A file that leads to the right server by its current context, or by one of that name."""
    if context is None:
        return Path(right.kubeconfig(directory))
    path = Path(wrong.kubeconfig(directory))
    document = yaml.safe_load(path.read_text())
    document["clusters"].append({"name": "e", "cluster": {"server": right.url}})
    document["contexts"].append({"name": context, "context": {"cluster": "e", "user": "u"}})
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.mark.parametrize("context", [None, "elsewhere"], ids=["the current context", "another"])
async def test_the_controller_is_looked_for_where_the_command_line_says(tmp_path: Path, context: str | None) -> None:
    with (
        api_server(lambda _: refusal(404, "NotFound")) as right,
        api_server(lambda _: refusal(404, "NotFound")) as wrong,
    ):
        config = kubeconfig(tmp_path, right, wrong, context)
        options = [f"--kubeconfig={config}", *([f"--context={context}"] if context else [])]
        options += ["--meter-controller-namespace=berth-system", "--meter-linger=0"]
        async with application(answering(OK)) as app, meter(tmp_path, app.address.port, *options) as (process, port):
            assert await asyncio.to_thread(right.wait, lambda: right.count("GET") > 0, seconds=60.0)
            assert status_of(await ask(port, get("/"))) == 200
            assert await asyncio.to_thread(process.stop) == 0
    assert wrong.requests == []


async def test_streams_and_websockets_go_through_as_they_come(tmp_path: Path) -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        async for part in request.content.iter_any():
            await answer.write(part.upper())  # before the request has ended
        await answer.write_eof()
        return answer

    async def echo(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(message.data * 2)
        return socket

    app = web.Application()
    app.router.add_post("/stream", stream)
    app.router.add_get("/socket", echo)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sent: asyncio.Queue[bytes] = asyncio.Queue()

    async def parts() -> AsyncIterator[bytes]:
        while part := await sent.get():
            yield part

    try:
        async with (
            meter(tmp_path, runner.addresses[0][1], "--meter-linger=0") as (_, port),
            aiohttp.ClientSession(f"http://127.0.0.1:{port}", timeout=aiohttp.ClientTimeout(total=60)) as session,
        ):
            sent.put_nowait(b"one")
            async with session.post("/stream", data=parts()) as answer:
                assert await answer.content.readexactly(3) == b"ONE"
                sent.put_nowait(b"two")
                assert await answer.content.readexactly(3) == b"TWO"
                sent.put_nowait(b"")
                assert await answer.read() == b""
            async with session.ws_connect("/socket") as socket:
                await socket.send_str("ab")
                assert await socket.receive_str() == "abab"
                await socket.send_str("c" * 300_000)
                assert len(await socket.receive_str()) == 600_000
    finally:
        await runner.cleanup()


async def test_what_is_under_way_at_the_end_is_answered_and_who_comes_late_too(tmp_path: Path) -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def script(visit: Visit) -> None:
        while True:
            if b"/slow" in await visit.head():
                asked.set()
                await go.wait()
            await visit.say(OK)

    linger = "--meter-linger=2"
    async with application(script) as app, meter(tmp_path, app.address.port, linger) as (process, port):
        slow = asyncio.create_task(ask(port, get("/slow")))
        await asked.wait()
        process.popen.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.until, "stopping")
        late = await ask(port, get("/late", last=False))  # it ends: the connection was to be closed
        go.set()
        answer = await slow
        assert await asyncio.to_thread(process.wait) == 0
    assert (status_of(answer), body_of(answer)) == (200, b"ok")
    assert (status_of(late), b"connection: close" in late.lower()) == (200, True)


async def test_users_are_told_to_the_controller_by_the_names_of_the_policy(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("of-the-pod")
    async with latency_controller() as controller, application(answering(OK)) as app:
        controller.says(instructions(identity=HEADER, tell_addresses=True))
        options = [
            f"--meter-controller={controller.url}",
            f"--meter-token-file={token}",
            f"--meter-ca-file={CERTIFICATE / 'server.crt'}",
            "--meter-linger=0",
        ]
        async with meter(tmp_path, app.address.port, *options) as (process, port):
            await asyncio.to_thread(process.until, "users are named for a policy")
            count = len(controller.messages)
            await ask(port, get("/", "X-User: alice"))
            while not (users := (await controller.message(count)).users):
                count += 1
            assert await asyncio.to_thread(process.stop) == 0
    [user] = users
    assert (user.user, user.address, len(user.microseconds)) == (hash_identity(KEY, "alice"), "127.0.0.1", 1)
    assert set(controller.tokens) == {"Bearer of-the-pod"}
    assert "alice" not in process.text
    assert "127.0.0.1:" not in "".join(str(message) for message in controller.messages)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        pytest.param("--meter-identity=Cookie", "which cookie tells users", id="a cookie without a name"),
        pytest.param("--meter-controller=http://c", "--meter-controller", id="a controller without TLS"),
    ],
)
def test_what_cannot_be_right_ends_it_at_once(option: str, says: str) -> None:
    with berth("run", "meter", *QUIET, "--meter-port=0", option) as process:
        assert process.wait() == 2
    assert says in process.text
