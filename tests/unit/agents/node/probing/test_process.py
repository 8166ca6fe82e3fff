"""The prober process kept running: what stands in for it here fails in every way that a process can."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from asyncio import StreamReader
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from agents.node.probing.messages import Order
from agents.node.probing.process import ProberProcess
from agents.node.probing.rounds import Round, Target
from agents.node.probing.user_probes import FoundUser, UserTarget

ROUND = """print('{"self":[],"samples":{"n":[]}}', flush=True)"""
PID = """
import os, sys
print('{"self":[%d],"samples":{}}' % os.getpid(), flush=True)
sys.stdin.read()
"""
USER = """USER = '{"found":["7",[20],"",false]}'"""
USERS = f"""
import sys
{USER}
{ROUND}
for line in sys.stdin:
    if line.startswith('{{"user"'):
        print(USER, flush=True)
"""
CHATTERING = f"""
import time
{USER}
while True:
    print(USER, flush=True)
    time.sleep(0.05)
"""
ECHO = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"self": [], "samples": {target[0]: [] for target in json.loads(line)}}), flush=True)
"""


class Kept:
    """A kept process that runs a program in place of the prober, and what it told."""

    def __init__(self, program: str, *, stall: float = 60.0) -> None:
        self.rounds: list[Round] = []
        self.users: list[FoundUser] = []
        self.restarts = 0
        self.told = asyncio.Event()
        self.process = ProberProcess(
            [],
            interval=0.0,
            rate=1e9,
            peers=0,
            measured=self._measured,
            restarted=self._restarted,
            found=self._found,
            command=(sys.executable, "-c", program),
            pauses=(0.0, 0.0),
            stall=stall,
        )

    def _measured(self, measured: Round) -> None:
        self.rounds.append(measured)
        self.told.set()

    def _found(self, user: FoundUser) -> None:
        self.users.append(user)
        self.told.set()

    def _restarted(self) -> None:
        self.restarts += 1
        self.told.set()

    async def until(self, reached: Callable[[Kept], bool]) -> None:
        """Run until something has been reached."""
        task = asyncio.create_task(self.process.run())
        try:
            async with asyncio.timeout(60):
                while not reached(self):
                    await self.told.wait()
                    self.told.clear()
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def order(*names: str) -> Order:
    return Order(tuple(Target(name, "127.0.0.1", 1) for name in names))


@pytest.mark.parametrize(
    ("program", "stall"),
    [
        pytest.param("raise SystemExit(3)", 60.0, id="ends at once"),
        pytest.param(ROUND, 60.0, id="ends after a round"),
        pytest.param("import os; os.kill(os.getpid(), 9)", 60.0, id="killed"),
        pytest.param("import sys; sys.stdin.read()", 0.5, id="hangs"),
        pytest.param("print('no round', flush=True); import sys; sys.stdin.read()", 60.0, id="talks nonsense"),
        pytest.param("print('[' * 100_000, flush=True); import sys; sys.stdin.read()", 60.0, id="talks too deep"),
        pytest.param("print('x' * 3_000_000, flush=True); import sys; sys.stdin.read()", 60.0, id="talks without end"),
    ],
)
async def test_another_is_started(program: str, stall: float) -> None:
    await Kept(program, stall=stall).until(lambda kept: kept.restarts >= 2)


@pytest.mark.parametrize(
    ("peers", "rate", "least"),
    [
        pytest.param(10, 20.0, 60 + 5 + 24.8, id="usual"),
        pytest.param(100, 20.0, 60 + 5 + 245.3, id="a hundred peers that are cut off"),
        pytest.param(100, 8.5, 60 + 5 + 279.5, id="and a low cap"),
    ],
)
def test_no_round_is_so_long_that_its_process_seems_to_hang(peers: int, rate: float, least: float) -> None:
    process = ProberProcess([], interval=5.0, rate=rate, peers=peers, measured=print, restarted=print)
    assert process.silence >= least


async def test_users_are_handed_on_and_what_came_of_them_arrives() -> None:
    kept = Kept(USERS)

    def reached(kept: Kept) -> bool:
        if len(kept.rounds) == 1 and not kept.users:
            assert kept.process.ask(UserTarget("7", "192.0.2.1", 3))
        return bool(kept.users)

    await kept.until(reached)
    assert kept.users[0] == FoundUser("7", (20,))
    assert kept.restarts == 0


async def test_a_process_that_only_measures_users_hangs_all_the_same() -> None:
    await Kept(CHATTERING, stall=0.5).until(lambda kept: kept.restarts >= 1)


async def test_nobody_measures_users_before_there_is_a_process() -> None:
    assert not Kept(ROUND).process.ask(UserTarget("7", "192.0.2.1", 3))


async def test_rounds_arrive() -> None:
    kept = Kept(f"{ROUND}\n{ROUND}\nimport sys; sys.stdin.read()")
    await kept.until(lambda kept: len(kept.rounds) == 2)
    assert kept.rounds == [Round((), {"n": ()})] * 2
    assert kept.restarts == 0


async def test_an_order_reaches_a_process_that_starts_later() -> None:
    kept = Kept(f"{ECHO}    break")
    kept.process.give(order("a"))
    await kept.until(lambda kept: len(kept.rounds) >= 1)
    assert set(kept.rounds[0].samples) == {"a"}
    kept.process.give(order("a", "b"))
    await kept.until(lambda kept: len(kept.rounds) >= 2)
    assert set(kept.rounds[1].samples) == {"a", "b"}


async def test_an_order_reaches_a_running_process() -> None:
    kept = Kept(ECHO)

    def two_rounds(kept: Kept) -> bool:
        if len(kept.rounds) == 1:
            kept.process.give(order("new"))
        return len(kept.rounds) >= 2

    await kept.until(two_rounds)
    assert [set(measured.samples) for measured in kept.rounds] == [set(), {"new"}]


async def test_cancelling_counts_at_the_moment_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(f"{ROUND}\nimport sys; sys.stdin.read()")
    readline = StreamReader.readline

    async def cancelled_when_it_has_read(reader: StreamReader) -> bytes:
        line = await readline(reader)
        task.cancel()
        return line

    monkeypatch.setattr(StreamReader, "readline", cancelled_when_it_has_read)
    task = asyncio.create_task(kept.process.run())
    try:
        await asyncio.wait([task], timeout=10)
        assert task.cancelled()
    finally:
        task.cancel()


async def test_one_that_cannot_be_started_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    start, failures = asyncio.create_subprocess_exec, [errno.EMFILE, errno.EAGAIN, errno.ENOMEM]

    async def start_later(*command: str, **options: Any) -> Process:
        if failures:
            raise OSError(failures.pop(), "none is left")
        return await start(*command, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_later)
    kept = Kept(f"{ROUND}\nimport sys; sys.stdin.read()")
    await kept.until(lambda kept: len(kept.rounds) == 1)
    assert kept.restarts == 3


async def test_cancelling_ends_the_process() -> None:
    kept = Kept(PID)
    await kept.until(lambda kept: len(kept.rounds) == 1)
    pid = kept.rounds[0].self_probes[0]
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
