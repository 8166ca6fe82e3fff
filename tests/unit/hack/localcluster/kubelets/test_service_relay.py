"""Connections through the relay, over loopback."""

from __future__ import annotations

import asyncio

import pytest

from hack.localcluster.kubelets import service_relay


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await service_relay.pump(reader, writer)


async def _relay_to(port: int) -> tuple[asyncio.Server, int]:
    server = await service_relay.serve("127.0.0.1", 0, "127.0.0.1", port)
    own: int = server.sockets[0].getsockname()[1]
    return server, own


@pytest.mark.parametrize("size", [1, service_relay.CHUNK, 3 * service_relay.CHUNK + 1])
def test_what_is_sent_arrives_both_ways_and_the_end_too(size: int) -> None:
    async def scenario() -> bytes:
        target = await asyncio.start_server(_echo, "127.0.0.1", 0)
        relay, port = await _relay_to(target.sockets[0].getsockname()[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        received = asyncio.create_task(reader.readexactly(size))
        writer.write(b"x" * size)
        answer = await received
        writer.close()
        assert await reader.read() == b""
        relay.close()
        target.close()
        return answer

    assert asyncio.run(asyncio.wait_for(scenario(), 20)) == b"x" * size


def test_without_a_target_the_connection_ends_and_the_relay_goes_on() -> None:
    async def scenario() -> None:
        target = await asyncio.start_server(_echo, "127.0.0.1", 0)
        port = target.sockets[0].getsockname()[1]
        target.close()
        relay, own = await _relay_to(port)
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", own)
            assert await reader.read() == b""
            writer.close()
        relay.close()

    asyncio.run(asyncio.wait_for(scenario(), 20))
