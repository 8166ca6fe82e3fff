"""Asking the runtime about a container while there are other things to do: what comes late is not lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from agents.node.pinning.cri import KEPT_SECONDS, CriError, Place, RuntimeClient
from tests.support.scripted_runtime import PATIENCE, Known, ScriptedRuntime

HURRY = 0.02


class Stand:
    """A runtime that answers updates when the test opens its gate, and a client whose clock the test sets."""

    def __init__(self, root: Path) -> None:
        known = {}
        for name in ("c", "d"):
            (root / name).mkdir()
            known[name] = Known("u", root / name, f"/kubepods/{name}", 7)
        self.now = 100.0
        self.runtime = ScriptedRuntime(root / "s.sock", known)
        self.client = RuntimeClient(root / "s.sock", timeout=PATIENCE, patience=HURRY, clock=lambda: self.now)

    async def late(self, container: str = "c", cpus: str = "0") -> None:
        """Ask for an update that is not answered in time."""
        with pytest.raises(CriError, match="no answer yet") as caught:
            await self.client.set_cpuset(container, cpus, "0", hurry=True)
        assert (caught.value.answered, caught.value.awaited) == (False, True)
        await asyncio.wait_for(self.runtime.updating.wait(), PATIENCE)

    async def answered(self) -> None:
        """Have the runtime do what it was asked."""
        self.runtime.gate.set()
        await self.client.settled()


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    made = Stand(tmp_path)
    await made.runtime.start()
    made.runtime.gate.clear()
    yield made
    made.client.close()
    await made.runtime.settle()
    await made.runtime.stop()


async def test_who_asks_the_same_again_gets_the_answer(stand: Stand) -> None:
    for _ in range(3):
        await stand.late()
    await stand.answered()
    assert not await stand.client.set_cpuset("c", "0", "0", hurry=True)
    assert stand.runtime.asked == ["UpdateContainerResources"]
    assert await stand.client.set_cpuset("c", "0", "0"), "the answer was given once"
    assert stand.runtime.asked == ["UpdateContainerResources"] * 2


async def test_who_is_in_no_hurry_waits_for_the_same_answer(stand: Stand) -> None:
    await stand.late()
    asking = asyncio.ensure_future(stand.client.set_cpuset("c", "0", "0"))
    await stand.answered()
    assert not await asking
    assert stand.runtime.asked == ["UpdateContainerResources"]


async def test_nothing_else_is_asked_before_the_answer_is_there(stand: Stand) -> None:
    await stand.late()
    for call in (stand.client.place("c", hurry=True), stand.client.set_cpuset("d", "0", "0", hurry=True)):
        with pytest.raises(CriError, match="no answer yet"):
            await call
    assert stand.runtime.asked == ["UpdateContainerResources"]
    assert not stand.client.silent
    await stand.answered()
    assert await stand.client.place("c") == Place("/kubepods/c", 7)
    assert not await stand.client.set_cpuset("c", "0", "0"), "its answer is kept"


@pytest.mark.parametrize("cpus", ["0", "1"], ids=["it was asked long ago", "for other CPUs"])
async def test_an_answer_to_another_question_counts_for_nothing(stand: Stand, cpus: str) -> None:
    await stand.late()
    await stand.answered()
    stand.now += KEPT_SECONDS + 1.0 if cpus == "0" else 0.0
    assert await stand.client.set_cpuset("c", cpus, "0")
    assert await stand.client.set_cpuset("c", "0", "0"), "it is not kept"
    assert len(stand.runtime.asked) == 3


async def test_a_refusal_that_comes_late_is_told(stand: Stand) -> None:
    def refuse() -> None:
        raise GRPCError(Status.UNKNOWN, "it starts")

    stand.runtime.before_update = refuse
    stand.runtime.gate.set()
    with pytest.raises(CriError):
        await RuntimeClient(stand.runtime.socket).set_cpuset("c", "0", "0")
    stand.runtime.before_update = lambda: None
    stand.runtime.gate.clear()
    await stand.late()
    stand.runtime.containers["c"].cgroup.rmdir()
    await stand.answered()
    with pytest.raises(CriError, match="No such file") as caught:
        await stand.client.set_cpuset("c", "0", "0", hurry=True)
    assert (caught.value.answered, caught.value.awaited) == (True, False)


async def test_silence_that_is_found_late_is_told_and_kept_in_mind(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.client = RuntimeClient(stand.runtime.socket, timeout=4 * HURRY, patience=HURRY, clock=lambda: stand.now)
    await stand.runtime.start()
    stand.runtime.gate.clear()
    await stand.late()
    await stand.client.settled()
    with pytest.raises(CriError, match="no answer within") as caught:
        await stand.client.set_cpuset("c", "0", "0", hurry=True)
    assert not caught.value.awaited
    assert stand.client.silent
    stand.client.close()
    await stand.runtime.settle()
    await stand.runtime.stop()


async def test_who_waits_is_told_that_the_connection_was_closed(stand: Stand) -> None:
    await stand.late()
    asking = asyncio.ensure_future(stand.client.set_cpuset("c", "0", "0"))
    await asyncio.sleep(0)
    stand.client.close()
    with pytest.raises(CriError, match="closed"):
        await asking
    await stand.client.settled()
