"""A meter with a memory limit, as in a container, and more clients than it has room for: it goes on, and serves others.

Needs to make a cgroup. Left out: who is cut off, and in which order (tests/unit/berth/runtime/proxy).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hack.harness.processes import ControllerProcess
from tests.support.memory_limit import limited
from tests.support.proxying import Visit, application, get, status_of

LIMIT = 128 * 2**20
CLIENTS = 1200
SMALL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
FIELD = "A: " + "x" * 10_000
HALF = get("/", *[FIELD] * 7, last=False).removesuffix(b"\r\n")
LARGE = get("/held", *[FIELD] * 6, last=False)
LONG = get("/long", last=False)


async def script(visit: Visit) -> None:
    while True:
        head = await visit.head()
        if b"/held" in head:
            await asyncio.Event().wait()
        elif b"/long" in head:
            await visit.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
            while True:
                await visit.say(b"x" * 100_000)
        await visit.say(SMALL)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(HALF, id="half a head"),
        pytest.param(LARGE, id="requests not answered"),
        pytest.param(LONG, id="answers not read"),
    ],
)
async def test_more_clients_than_there_is_memory_for_end_nothing_for_others(tmp_path: Path, sent: bytes) -> None:
    async with application(script) as app:
        options = ["--meter-address=127.0.0.1", "--meter-port=0", "--meter-linger=0"]
        options += [f"--meter-application=127.0.0.1:{app.address.port}"]
        with limited(LIMIT) as entered:
            with entered():
                process = ControllerProcess.start(["meter"], kubeconfig="unused", directory=tmp_path, arguments=options)
            with process:
                await asyncio.to_thread(process.wait_ready)
                [line] = process.records("users are measured")
                reader, writer = await asyncio.open_connection("127.0.0.1", line["port"])
                flood: list[asyncio.StreamWriter] = []
                for number in range(CLIENTS):
                    _, client = await asyncio.open_connection("127.0.0.1", line["port"], limit=1024)
                    client.write(sent)
                    flood.append(client)
                    if number % 50 == 0:
                        async with asyncio.timeout(60):
                            writer.write(get(last=False))
                            assert status_of(await reader.readuntil(b"hi")) == 200
                await asyncio.to_thread(
                    process.wait_until,
                    lambda: any("memory is short" in str(each.get("event")) for each in process.records()),
                    what="what is said of it",
                )
                async with asyncio.timeout(60):
                    writer.write(get(last=False))
                    assert status_of(await reader.readuntil(b"hi")) == 200
                assert process.running
                for client in [*flood, writer]:
                    client.transport.abort()
