"""Requests that a client sends before the ones before are answered."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from berth.runtime.proxy.client_connection import MAX_FIELDS
from tests.support.kube import until
from tests.support.proxying import Application, Visit, application, get, proxy, read_body

COUNT = 100
READ_AHEAD = 3
"""The last of them may be one whose body is not all there."""


async def heads(app: Application, count: int) -> None:
    """Wait until so many requests have begun."""
    await until(lambda: len(app.heads) == count, what=f"{count} heads")


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(lambda number: get(f"/{number}", last=False), id="GET"),
        pytest.param(
            lambda number: get(f"/{number}", "Content-Length: 5", method="PUT", last=False) + b"hello", id="with a body"
        ),
        pytest.param(
            lambda number: get(f"/{number}", *["A: b"] * (MAX_FIELDS - 10), last=False), id="with as many fields"
        ),
    ],
)
async def test_few_are_read_ahead_and_all_are_answered_in_their_order(asked: object) -> None:
    """Reading them takes as long as answering some: others would wait until all of all connections are read."""
    assert callable(asked)
    held = asyncio.Event()

    async def script(visit: Visit) -> None:
        while True:
            head = await visit.head()
            if head.startswith(b"PUT"):
                await read_body(visit, head)
            if head.split()[1] == b"/0":
                await held.wait()
            path = head.split()[1]
            await visit.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(path), path))

    async with (
        asyncio.timeout(60),
        application(script) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
        under_test.client() as (other_reader, other),
    ):
        writer.write(b"".join(asked(number) for number in range(COUNT)))
        while not app.heads:
            await asyncio.sleep(0.01)
        other.write(get("/other", last=False))
        await other_reader.readuntil(b"/other")
        waiting = [len(connection._messages) for connection in under_test.server._connections()]
        assert 0 < max(waiting) <= READ_AHEAD
        held.set()
        for number in range(COUNT):
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(len(f"/{number}")) == f"/{number}".encode()


HI = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


async def greeting(visit: Visit) -> None:
    """Reads bodies, and answers every request with the same."""
    while True:
        head = await visit.head()
        if head.startswith(b"POST"):
            await read_body(visit, head)
        await visit.say(HI)


@pytest.mark.parametrize("bodies", [1, 2, 3])
@pytest.mark.parametrize("answered", [True, False], ids=["sent after their answers", "sent with the last of them"])
@pytest.mark.parametrize(
    ("field", "body"),
    [
        pytest.param("Content-Length: 2", b"hi", id="of a stated length"),
        pytest.param("Transfer-Encoding: chunked", b"2\r\nhi\r\n0\r\n\r\n", id="in chunks"),
    ],
)
async def test_all_are_answered_behind_bodies_that_came_while_they_were_sent_on(
    bodies: int, field: str, body: bytes, *, answered: bool
) -> None:
    """aiohttp would count each of those among the few that are read ahead, for as long as the connection is there."""
    behind = b"".join(get(f"/behind/{number}", last=False) for number in range(COUNT))
    async with (
        asyncio.timeout(30),
        application(greeting) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        for number in range(1, 1 + bodies):
            writer.write(get("/", field, method="POST", last=False))
            await heads(app, number)
            if number == bodies and not answered:
                break
            writer.write(body)
            await reader.readuntil(b"hi")
        writer.write(behind if answered else body + behind)
        for _ in range(COUNT if answered else 1 + COUNT):
            await reader.readuntil(b"hi")
        assert len(app.heads) == bodies + COUNT


async def test_as_few_are_read_ahead_behind_them() -> None:
    held = asyncio.Event()

    async def script(visit: Visit) -> None:
        for _ in range(3):
            await read_body(visit, await visit.head())
            await visit.say(HI)
        await visit.head()
        await held.wait()

    async with (
        asyncio.timeout(30),
        application(script) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):
        for number in range(3):
            writer.write(get("/", "Content-Length: 2", method="POST", last=False))
            await heads(app, 1 + number)
            writer.write(b"hi")
            await reader.readuntil(b"hi")
        writer.write(b"".join(get(f"/behind/{number}", last=False) for number in range(COUNT)))
        await heads(app, 4)
        (connection,) = under_test.server._connections()
        assert 0 < len(connection._messages) <= READ_AHEAD
        held.set()


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """One, with a body of any size by either way to say where it ends, or without."""
    body = draw(st.sampled_from([b"", b"a", b"0\r\n\r\n", b"b" * 5000, b"c" * 150_000]))
    match draw(st.sampled_from(["none", "length", "chunks"])):
        case "none":
            return get(last=False)
        case "length":
            return get("/", f"Content-Length: {len(body)}", method="POST", last=False) + body
        case _:
            size = draw(st.sampled_from([1000, 70_000])) if len(body) > 1000 else draw(st.integers(1, 8))
            parts = [body[start : start + size] for start in range(0, len(body), size)]
            chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
            return get("/", "Transfer-Encoding: chunked", method="POST", last=False) + chunks + b"0\r\n\r\n"


BODY_LATER = get("/", "Content-Length: 2", method="POST", last=False)


@settings(max_examples=40)
@given(
    asked=st.lists(requests(), min_size=2, max_size=8), sizes=st.lists(st.integers(1, 80_000), min_size=1, max_size=4)
)
@example(asked=[BODY_LATER + b"hi", *[get(last=False)] * 3], sizes=[len(BODY_LATER), 2, 500])
async def test_all_are_answered_wherever_they_are_cut(asked: list[bytes], sizes: list[int]) -> None:
    rest = b"".join(asked)
    least = len(rest) // 50  # large ones come in few pieces
    async with (
        asyncio.timeout(30),
        application(greeting) as app,
        proxy(app.address) as under_test,
        under_test.client() as (reader, writer),
    ):

        async def send(rest: bytes) -> None:
            for size in itertools.cycle(sizes):
                if not rest:
                    break
                writer.write(rest[: max(size, least)])
                await writer.drain()
                rest = rest[max(size, least) :]
                for _ in range(20):  # so that they come one by one
                    await asyncio.sleep(0)

        sending = asyncio.create_task(send(rest))
        for _ in asked:
            await reader.readuntil(b"hi")
        await sending
        assert len(app.heads) == len(asked)
