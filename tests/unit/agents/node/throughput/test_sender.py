"""A throughput test over loopback, and receivers that refuse, vanish or are none."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from agents.node.throughput import sender as module
from agents.node.throughput.receiver import ANSWER, BLOCK, GREETING
from agents.node.throughput.sender import RefusedError, Throughput, measure
from tests.support.probing import free_port, silent_server
from tests.support.throughput import running_receiver

MEGABYTE = 1_000_000


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_what_was_sent_came_through(address: str) -> None:
    async with running_receiver(50 * MEGABYTE, "") as receiver:
        found = await measure(address, receiver.port, limit=10 * MEGABYTE, seconds=20.0)
    assert found.octets == 10 * MEGABYTE
    assert found.bits_per_second == pytest.approx(8 * found.octets / found.seconds, rel=1e-6)


async def test_it_ends_when_its_time_is_over() -> None:
    async with running_receiver(10**12) as receiver:
        found = await measure("127.0.0.1", receiver.port, limit=10**12, seconds=0.1)
    assert BLOCK <= found.octets < 10**12


async def test_others_have_their_turn_while_all_can_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = 0

    async def always(*_: object) -> None:
        return None

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_sendall", always)
    other = asyncio.create_task(take_turns())
    with socket.socket() as connection:
        sent = await module._send(connection, 1000 * BLOCK, 20.0)
    other.cancel()
    assert (sent, turns >= 10) == (1000 * BLOCK, True)


async def test_no_more_is_sent_than_the_receiver_allows() -> None:
    async with running_receiver(3 * MEGABYTE) as receiver:
        first = await measure("127.0.0.1", receiver.port, limit=2 * MEGABYTE, seconds=20.0)
        second = await measure("127.0.0.1", receiver.port, limit=2 * MEGABYTE, seconds=20.0)
        with pytest.raises(RefusedError, match="share of this hour"):
            await measure("127.0.0.1", receiver.port, limit=1, seconds=20.0)
    assert (first.octets, second.octets) == (2 * MEGABYTE, MEGABYTE)


async def test_one_sender_at_a_time() -> None:
    async with running_receiver(10 * MEGABYTE) as receiver:
        reader, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
        assert GREETING.unpack(await reader.readexactly(GREETING.size)) == (10 * MEGABYTE,)
        with pytest.raises(RefusedError, match="busy"):
            await measure("127.0.0.1", receiver.port, limit=MEGABYTE)
        writer.write_eof()
        assert ANSWER.unpack(await reader.readexactly(ANSWER.size)) == (0, 0)
        writer.close()
        assert (await measure("127.0.0.1", receiver.port, limit=MEGABYTE)).octets == MEGABYTE


async def test_nobody_listens() -> None:
    with pytest.raises(ConnectionRefusedError):
        await measure("127.0.0.1", free_port(), limit=MEGABYTE)


async def test_one_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.2)
    with silent_server() as port, pytest.raises(TimeoutError):
        await measure("127.0.0.1", port, limit=MEGABYTE)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(lambda: b"", "has closed", id="no greeting"),
        pytest.param(lambda: GREETING.pack(1000), "closed|reset|Broken|not connected", id="goes while it is sent to"),
        pytest.param(lambda: GREETING.pack(1000) + ANSWER.pack(0, 0), "too little", id="counted nothing"),
        pytest.param(lambda: GREETING.pack(1000) + ANSWER.pack(1001, 9), "more than", id="counted what nobody sent"),
    ],
)
async def test_a_receiver_that_is_none(answer: Callable[[], bytes], text: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer())
        await writer.drain()
        if len(answer()) > GREETING.size:
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, family=socket.AF_INET)
    async with server:
        with pytest.raises(OSError, match=text):
            await measure("127.0.0.1", server.sockets[0].getsockname()[1], limit=1000)


def test_rate() -> None:
    assert Throughput(1_250_000, 0.5).bits_per_second == 20_000_000
    assert Throughput(1, 100.0).bits_per_second == 1
