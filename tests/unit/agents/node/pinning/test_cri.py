"""The client of the runtime where there is none, or one that says nothing; a real one is in the integration tests."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from grpclib.server import Server

from agents.node.pinning.cri import (
    FIRST_RETRY_SECONDS,
    HUNG_SECONDS,
    RETRY_SECONDS,
    CriError,
    Place,
    RuntimeClient,
    place_in,
)
from agents.node.pinning.cri_messages import SERVICE, Messages, message
from tests.support.scripted_runtime import PATIENCE, Known, ScriptedClient, ScriptedRuntime


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
        pytest.param({"info": '{"a":' + "[" * 100_000}, Place("", 0), id="nested without end"),
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


OTHER = Messages({"Odd": {"containers": (1, "string"), "info": (2, "string")}})
CUT_OFF = "\n\x7f"
"""A message whose first field is longer than what there is of it."""


class OddRuntime:
    """Answers with messages that are cut off."""

    def __mapping__(self) -> dict[str, Handler]:
        async def serve(stream: Any) -> None:
            await stream.recv_message()
            await stream.send_message(OTHER("Odd")(containers=CUT_OFF, info=CUT_OFF))

        names = {"ListContainers": "ListContainersRequest", "ContainerStatus": "ContainerStatusRequest"}
        return {
            f"{SERVICE}/{name}": Handler(serve, Cardinality.UNARY_UNARY, message(request), OTHER("Odd"))
            for name, request in names.items()
        }


async def test_what_is_refused_of_the_question_itself_is_not_asked_again(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(tmp_path / "r.sock")
    await runtime.start()
    runtime.refuses["ContainerStatus"] = GRPCError(Status.UNKNOWN, "no space left on device")
    client = RuntimeClient(runtime.socket, timeout=PATIENCE)
    with pytest.raises(CriError, match="no space left") as caught:
        await client.place("c-1")
    assert (caught.value.answered, caught.value.unknown) == (True, False)
    assert runtime.asked.count("ContainerStatus") == 1
    client.close()
    await runtime.stop()


async def test_an_answer_that_cannot_be_read(tmp_path: Path) -> None:
    server = Server([OddRuntime()])
    await server.start(path=str(tmp_path / "s.sock"))
    client = RuntimeClient(tmp_path / "s.sock")
    for _ in range(2):
        with pytest.raises(CriError, match=r"s\.sock: ListContainers: no answer that can be read"):
            await client.containers()
        with pytest.raises(CriError, match=r"s\.sock: ContainerStatus: no answer that can be read") as caught:
            await client.place("c")
        assert caught.value.answered
    client.close()
    server.close()
    await server.wait_closed()


async def test_one_that_says_nothing_about_a_container_is_asked_about_none_for_a_while(tmp_path: Path) -> None:
    now = 100.0
    runtime = ScriptedRuntime(tmp_path / "s.sock", {"c": Known("u", tmp_path, "/kubepods/c", 7)})
    await runtime.start()
    client = ScriptedClient(runtime, clock=lambda: now)
    runtime.hangs = {"ContainerStatus"}
    with pytest.raises(CriError, match="no answer within"):
        await client.place("c")
    runtime.hangs = set()
    now += FIRST_RETRY_SECONDS - 0.1
    for call in (client.place("c"), client.set_cpuset("c", "0", "0")):
        with pytest.raises(CriError, match="not asked, since it said nothing a short time ago") as caught:
            await call
        assert not caught.value.answered
    assert client.silent
    assert [found.id for found in await client.containers()] == ["c"], "which containers run it is asked all the same"
    assert client.silent
    now += HUNG_SECONDS
    assert await client.place("c") == Place("/kubepods/c", 7)
    with pytest.raises(CriError, match="NOT_FOUND") as caught:
        await client.place("another")
    assert (caught.value.answered, caught.value.unknown, client.silent) == (True, True, False)
    client.close()
    await runtime.stop()


@pytest.mark.parametrize("known", [True, False], ids=["it has it", "it does not"])
async def test_one_that_refuses_without_telling_that_it_has_no_such_container(tmp_path: Path, known: bool) -> None:
    """As CRI-O does, which answers so whatever keeps it from a change."""
    runtime = ScriptedRuntime(tmp_path / "r.sock")
    await runtime.start()
    if known:
        runtime.containers["c-1"] = Known("uid", tmp_path, "/c-1")
    runtime.refuses["UpdateContainerResources"] = GRPCError(Status.UNKNOWN, "ID does not exist")
    client = RuntimeClient(runtime.socket, timeout=PATIENCE)
    with pytest.raises(CriError, match="ID does not exist") as caught:
        await client.set_cpuset("c-1", "0", "0")
    assert (caught.value.answered, caught.value.unknown) == (True, not known)
    client.close()
    await runtime.stop()


async def test_a_container_that_hangs_keeps_no_other_from_being_asked_about(tmp_path: Path) -> None:
    now = 100.0
    known = {name: Known("u", tmp_path, f"/kubepods/{name}", 7) for name in ("c", "d")}
    runtime = ScriptedRuntime(tmp_path / "s.sock", known, hangs_about={"c"})
    await runtime.start()
    client = ScriptedClient(runtime, clock=lambda: now)
    answered = []
    for _ in range(7):
        for name in ("c", "d"):
            try:
                await client.place(name)
            except CriError:
                continue
            answered.append((name, now))
        now += 15.0
    # It is asked about at 100 and 190; the runtime counts as silent for two seconds each time.
    assert answered == [("d", now) for now in (115.0, 130.0, 145.0, 160.0, 175.0)]
    assert runtime.asked.count("ContainerStatus") == 7
    client.close()
    await runtime.stop()


async def test_one_that_goes_on_saying_nothing_is_asked_ever_less_until_it_answers(tmp_path: Path) -> None:
    now = 100.0
    known = {f"c{number}": Known("u", tmp_path, "/kubepods/c", 7) for number in range(9)}
    runtime = ScriptedRuntime(tmp_path / "s.sock", known, hangs={"ContainerStatus"})
    await runtime.start()
    client = ScriptedClient(runtime, clock=lambda: now)

    async def silence(name: str) -> float:
        nonlocal now
        with pytest.raises(CriError, match="no answer within"):
            await client.place(name)
        began = now
        while client.silent:
            now += 0.5
        return now - began

    assert [await silence(f"c{number}") for number in range(6)] == [2.0, 4.0, 8.0, 16.0, RETRY_SECONDS, RETRY_SECONDS]
    runtime.hangs = set()
    with pytest.raises(CriError, match="NOT_FOUND"):
        await client.place("nobody")
    runtime.hangs = {"ContainerStatus"}
    assert await silence("c6") == FIRST_RETRY_SECONDS, "a refusal is an answer"
    runtime.hangs = set()
    assert (await client.place("c7")).pid == 7
    runtime.hangs = {"ContainerStatus"}
    assert await silence("c8") == FIRST_RETRY_SECONDS
    client.close()
    await runtime.stop()


async def test_one_that_was_away_is_asked_as_soon_as_it_is_there(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(tmp_path / "s.sock", {"c": Known("u", tmp_path, "/kubepods/c", 7)})
    client = RuntimeClient(tmp_path / "s.sock")
    for call in (client.place("c"), client.containers()):
        with pytest.raises(CriError):
            await call
    assert client.silent
    await runtime.start()
    await client.containers()
    assert not client.silent
    assert (await client.place("c")).pid == 7
    client.close()
    await runtime.stop()
