"""GET /measurements on a real socket: who may read, and that reading changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agents.meter.measurements import MeasurementsServer, measurements
from berth.runtime.health import MAX_CONNECTIONS
from berth.runtime.measuring.users import UserTable

TOKEN = "a token of readers"


@pytest.fixture
def table() -> UserTable:
    found = UserTable()
    for number, name in enumerate("abab"):
        found.record(found.seen(name, float(number), address="192.0.2.1"), 1000 + number, float(number))
    return found


@asynccontextmanager
async def serving(table: UserTable, token_file: Path) -> AsyncIterator[str]:
    server = MeasurementsServer(table, instance="i", host="127.0.0.1", port=0, token_file=token_file)
    await server.start()
    try:
        yield f"http://127.0.0.1:{server.port}/measurements"
    finally:
        await server.stop()


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    return file


async def ask(url: str, token: str | None = TOKEN, **options: Any) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, **options) as response:
        return response.status, await response.text()


async def test_reading_is_repeatable_and_names_nobody(table: UserTable, token_file: Path) -> None:
    async with serving(table, token_file) as url:
        first, again = await ask(url, params={"after": "3"}), await ask(url, params={"after": "3"})
    assert first[0] == 200
    assert first[1].partition('"age"')[0] == again[1].partition('"age"')[0]
    assert '"sequence":4' in first[1]
    assert "192.0.2.1" not in first[1]


@pytest.mark.parametrize(
    ("token", "status"),
    [
        pytest.param(TOKEN, 200, id="the token"),
        pytest.param(None, 401, id="none"),
        pytest.param("", 401, id="an empty one"),
        pytest.param(TOKEN[:-1], 401, id="most of it"),
        pytest.param(f"{TOKEN}x", 401, id="more than it"),
        pytest.param("ü", 401, id="beyond ASCII"),
    ],
)
async def test_who_may_read(table: UserTable, token_file: Path, token: str | None, status: int) -> None:
    async with serving(table, token_file) as url:
        found, text = await ask(url, token)
    assert found == status
    assert ("microseconds" in text) is (status == 200)


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "9" * 20, "٣"])
async def test_a_sequence_that_is_none(table: UserTable, token_file: Path, after: str) -> None:
    async with serving(table, token_file) as url:
        assert (await ask(url, params={"after": after}))[0] == 400


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("short", id="short"),
        pytest.param("x" * 5000, id="without end"),
    ],
)
async def test_without_a_token_nobody_reads(table: UserTable, token_file: Path, content: str) -> None:
    await asyncio.to_thread(token_file.write_text, content)
    async with serving(table, token_file) as url:
        assert (await ask(url, content))[0] == 503


async def test_a_token_that_was_renewed_is_taken(table: UserTable, token_file: Path) -> None:
    async with serving(table, token_file) as url:
        await asyncio.to_thread(token_file.unlink)
        assert (await ask(url))[0] == 503
        await asyncio.to_thread(token_file.write_text, "another token, renewed")
        assert (await ask(url, "another token, renewed"))[0] == 200
        assert (await ask(url))[0] == 401


@pytest.mark.parametrize(
    ("after", "users"),
    [
        pytest.param(0, ["a", "b"], id="all"),
        pytest.param(2, ["a", "b"], id="both are newer"),
        pytest.param(3, ["b"], id="one is newer"),
        pytest.param(4, [], id="nothing is newer"),
    ],
)
def test_measurements(table: UserTable, after: int, users: list[str]) -> None:
    found = measurements(table, "i", after=after, now=10.0)
    assert (found.sequence, sorted(user.user for user in found.users)) == (4, users)


def test_a_user_has_the_newest_round_trips_and_their_age(table: UserTable) -> None:
    found = {user.user: user for user in measurements(table, "i", after=0, now=10.0).users}
    assert (found["a"].microseconds, found["a"].age, found["a"].sequence) == ((1000, 1002), 8.0, 3)


async def test_a_taken_port_is_an_error(table: UserTable, token_file: Path) -> None:
    async with serving(table, token_file) as url:
        port = int(url.rpartition(":")[2].partition("/")[0])
        server = MeasurementsServer(table, instance="i", host="127.0.0.1", port=port, token_file=token_file)
        with pytest.raises(OSError, match="in use"):
            await server.start()


async def test_whoever_holds_connections_open_does_not_take_all_memory(table: UserTable, token_file: Path) -> None:
    async with serving(table, token_file) as url:
        port = int(url.rpartition(":")[2].partition("/")[0])
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MAX_CONNECTIONS + 1)]
        assert await asyncio.wait_for(opened[0][0].read(), 60) == b"", "the oldest is closed for one more"
        for _, writer in opened:
            writer.close()
