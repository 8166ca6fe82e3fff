"""The client of the runtime where there is none, or one that says nothing; a real one is in the integration tests."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from agents.node.pinning.cri import CriError, Place, RuntimeClient, place_in


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        pytest.param(
            {"info": '{"pid": 7, "runtimeSpec": {"linux": {"cgroupsPath": "/kubepods/x"}}, "more": []}'},
            Place("/kubepods/x", 7),
            id="as containerd and CRI-O write it",
        ),
        pytest.param({"info": '{"pid": 7}'}, Place("", 7), id="without a specification"),
        pytest.param({"info": '{"runtimeSpec": {}}'}, Place("", 0), id="without a process"),
        pytest.param({"info": "no JSON"}, Place("", 0), id="no JSON"),
        pytest.param({"info": '{"pid": "seven"}'}, Place("", 0), id="of another type"),
        pytest.param({}, Place("", 0), id="nothing"),
    ],
)
def test_where_a_container_is(info: dict[str, str], expected: Place) -> None:
    assert place_in(info) == expected


async def test_nobody_listens(tmp_path: Path) -> None:
    client = RuntimeClient(tmp_path / "none.sock")
    with pytest.raises(CriError, match=r"none\.sock: ListContainers: .*No such file") as caught:
        await client.containers()
    assert not caught.value.answered


async def test_a_runtime_that_says_nothing_is_given_up_and_the_next_one_waits_no_longer(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s.sock"))
        silent.listen()
        client = RuntimeClient(tmp_path / "s.sock", timeout=0.1)
        found = await asyncio.gather(client.containers(), client.place("c1"), return_exceptions=True)
    assert [str(error).rpartition(": ")[2] for error in found] == ["no answer within 0.1 s"] * 2
    assert all(isinstance(error, CriError) and not error.answered for error in found)


async def test_what_is_no_runtime(tmp_path: Path) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_unix_server(talk, tmp_path / "s.sock")
    client = RuntimeClient(tmp_path / "s.sock")
    with pytest.raises(CriError) as caught:
        await client.containers()
    assert not caught.value.answered
    client.close()
    server.close()
    await server.wait_closed()
