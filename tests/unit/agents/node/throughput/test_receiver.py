"""The receiving end: senders that stall, vanish or send too much hold up nobody else."""

from __future__ import annotations

import asyncio
import errno
import itertools
import socket
import time

import pytest

from agents.node.throughput import receiver as module
from agents.node.throughput.receiver import ANSWER, GREETING, Receiver
from tests.support.throughput import running_receiver


async def connect(receiver: Receiver) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, int]:
    """A sender's connection, and what it may send."""
    reader, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
    (allowed,) = GREETING.unpack(await reader.readexactly(GREETING.size))
    return reader, writer, allowed


async def test_it_counts_what_comes_and_how_long_that_took() -> None:
    async with running_receiver(1000) as receiver:
        reader, writer, allowed = await connect(receiver)
        writer.write(b"x" * 600)
        writer.write_eof()
        received, _ = ANSWER.unpack(await reader.readexactly(ANSWER.size))
        assert (allowed, received) == (1000, 600)
        writer.close()
        _, other, left = await connect(receiver)
        assert left == 400
        other.close()


@pytest.mark.parametrize(
    ("sizes", "microseconds"),
    [
        pytest.param([600], 0, id="one-read-says-nothing"),
        pytest.param([600, 400], 2_500_000, id="the-first-read-is-as-fast-as-the-second"),
        pytest.param([100, 200, 700], 2_222_222, id="three-reads"),
    ],
)
async def test_the_rate_is_that_of_what_comes_after_the_first_read(
    sizes: list[int], microseconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes of the first read were on their way for a time that nobody measured."""
    arriving, now = iter([*sizes, 0]), itertools.count(10.0)

    async def arrive(*_: object) -> int:
        return next(arriving)

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_recv_into", arrive)
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    async with running_receiver(10_000) as receiver:
        reader, writer, _ = await connect(receiver)
        assert ANSWER.unpack(await reader.readexactly(ANSWER.size)) == (sum(sizes), microseconds)
        writer.close()


async def test_what_waited_behind_the_first_read_says_nothing_of_the_rate() -> None:
    """An agent that was held up found all of it in the kernel, and it seemed to come as fast as that copies."""
    async with running_receiver(100_000) as receiver:
        receiver._buffer = bytearray(1000)
        sender, connection = socket.socketpair()
        with sender, connection:
            sender.sendall(b"x" * 50_000)
            sender.shutdown(socket.SHUT_WR)
            await receiver._receive(connection, "sender", 100_000)
            greeting, answer = sender.recv(GREETING.size), sender.recv(ANSWER.size)
    assert (GREETING.unpack(greeting), ANSWER.unpack(answer)) == ((100_000,), (50_000, 0))


async def test_one_that_sends_more_than_it_may_is_cut_off() -> None:
    async with running_receiver(1000) as receiver:
        reader, writer, _ = await connect(receiver)
        writer.write(b"x" * 1500)
        assert ANSWER.unpack(await reader.readexactly(ANSWER.size))[0] == 1000
        writer.close()
        assert (await connect(receiver))[2] == 0


async def test_one_that_vanishes_makes_room() -> None:
    async with running_receiver(1000) as receiver:
        connection = socket.create_connection(("127.0.0.1", receiver.port), 10)
        assert GREETING.unpack(await asyncio.to_thread(connection.recv, GREETING.size)) == (1000,)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
        allowed = 0
        while not allowed:  # until the receiver has noticed; else this test times out
            _, writer, allowed = await connect(receiver)
            writer.close()
        assert allowed == 900


async def test_one_that_stalls_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_SECONDS", 0.2)
    async with running_receiver(1000) as receiver:
        reader, writer, _ = await connect(receiver)
        assert await reader.read() == b""  # closed without an answer
        writer.close()
        assert (await connect(receiver))[2] == 900


async def test_others_have_their_turn_while_data_never_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop answers a read at once if there is something to read; the agent has other duties, and a time limit."""

    async def always(_: socket.socket, buffer: memoryview) -> int:
        return len(buffer)

    monkeypatch.setattr(module, "LONGEST_SECONDS", 0.2)
    monkeypatch.setattr(asyncio.get_running_loop(), "sock_recv_into", always)
    async with running_receiver(10**12) as receiver:
        reader, writer, _ = await connect(receiver)
        assert await reader.read() == b""  # ended without an answer
        writer.close()


def test_a_taken_port_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(OSError) as caught:  # noqa: PT011
        Receiver("127.0.0.1", other.getsockname()[1], 1)
    assert caught.value.errno == errno.EADDRINUSE
