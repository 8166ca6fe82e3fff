"""More clients than a proxy has memory for, and one among them who is to be served all the same."""

from __future__ import annotations

import asyncio
from typing import Final

from hack.harness.processes import ControllerProcess
from tests.support.proxying import Visit, get, status_of

_SMALL: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
_FIELD: Final = "A: " + "x" * 10_000
HALF: Final = get("/", *[_FIELD] * 7, last=False).removesuffix(b"\r\n")
"""A head without its end."""
LARGE: Final = get("/held", *[_FIELD] * 6, last=False)
"""A request that nobody answers."""
MANY: Final = get("/held", last=False) + get("/", *["A:"] * 20, last=False) * 30
"""Small requests that wait for one that nobody answers."""
LONG: Final = get("/long", last=False)
"""One for an answer without end."""
UPGRADE: Final = get("/held", "Connection: Upgrade", "Upgrade: websocket", *[_FIELD] * 6, last=False)
"""An upgrade that nobody answers."""


async def script(visit: Visit) -> None:
    """What the application does."""
    while True:
        head = await visit.head()
        if b"/held" in head:
            await asyncio.Event().wait()
        elif b"/long" in head:
            await visit.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
            while True:
                await visit.say(b"x" * 100_000)
        await visit.say(_SMALL)


async def flood(process: ControllerProcess, port: int, sent: bytes, clients: int) -> None:
    """Have clients come who send this and read nothing, until the proxy says that memory is short; one is served on."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    others: list[asyncio.StreamWriter] = []

    async def is_served() -> None:
        async with asyncio.timeout(60):
            writer.write(get(last=False))
            assert status_of(await reader.readuntil(b"hi")) == 200

    for number in range(clients):
        _, client = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        client.write(sent)
        others.append(client)
        if number % 50 == 0:
            await is_served()
    await asyncio.to_thread(
        process.wait_until,
        lambda: any("memory is short" in str(each.get("event")) for each in process.records()),
        what="what is said of it",
    )
    await is_served()
    assert process.running
    for client in [*others, writer]:
        client.transport.abort()
