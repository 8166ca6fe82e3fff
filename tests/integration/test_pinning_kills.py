"""An agent that is killed at any step of what it does: the next one makes true what is wanted, and gives back what was.

Steps are what others see of it: each file of the journal that is synchronised or replaced, each cgroup that is written,
and each call of the runtime; it is killed before and after them.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from agents.node.pinning import cpuset
from agents.node.pinning.pinner import LOOK_SECONDS
from agents.node.pinning.untold import REFUSED_SECONDS
from agents.node.pinning.wanted import PodWish
from berth.api.cpulist import format_cpulist
from tests.support.cpusets import everything
from tests.support.pinning_rounds import Container, Rounds, rounds, wish
from tests.support.pinning_stand import SOCKETS
from tests.support.scripted_runtime import ScriptedClient

ALL = everything()
ONE, OTHER = SOCKETS
KILLS: Final = 8
"""Steps of a change at which an agent is killed, evenly among all that it has."""
CHANGES: Final[list[tuple[str, list[PodWish], list[frozenset[int]]]]] = [
    ("both are pinned", [wish(0), wish(1)], [ONE, ONE]),
    ("one moves", [wish(0, 1), wish(1)], [OTHER, ONE]),
    ("one is let go while the other moves", [wish(0, None), wish(1, 1)], [ALL, OTHER]),
    ("one is pinned again while the other is gone", [wish(0)], [ONE, ALL]),
    ("nobody is wanted", [], [ALL, ALL]),
]


class KilledError(BaseException):
    """What ends an agent on the spot: nothing of its own catches it."""


class Killer:
    """Counts the steps of an agent, and ends it at one of them; the dead do nothing more."""

    def __init__(self) -> None:
        self.steps = 0
        self.at = -1

    def step(self) -> None:
        if self.steps == self.at:
            raise KilledError
        self.steps += 1

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """The same work with a step before and after it."""

        def stepping(*arguments: Any) -> Any:
            self.step()
            found = work(*arguments)
            self.step()
            return found

        return stepping


@pytest.fixture
def killer(monkeypatch: pytest.MonkeyPatch) -> Killer:
    found, call = Killer(), ScriptedClient._call

    async def stepping(self: ScriptedClient, *arguments: Any) -> Any:
        found.step()
        answer = await call(self, *arguments)
        found.step()
        return answer

    monkeypatch.setattr(os, "fsync", found.around(os.fsync))
    monkeypatch.setattr(Path, "replace", found.around(Path.replace))
    monkeypatch.setattr(cpuset, "_write", found.around(cpuset._write))
    monkeypatch.setattr(ScriptedClient, "_call", stepping)
    return found


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Rounds]:
    async with rounds("kills", tmp_path) as found:
        yield found


async def change(node: Rounds, killer: Killer, wishes: list[PodWish], *, at: int = -1) -> bool:
    """Have an agent begin and make this true; whether it was killed meanwhile, at that step."""
    pinner = node.agent()
    killer.steps, killer.at = 0, at
    try:
        for _ in range(3):
            node.now += LOOK_SECONDS
            await pinner.round(wishes, observe=False)
    except KilledError:
        return True
    finally:
        killer.at = -1
    return False


async def give_back(node: Rounds, killer: Killer, *, at: int = -1) -> bool:
    """Have an agent begin and give everything back; whether it was killed meanwhile."""
    pinner = node.agent()
    killer.steps, killer.at = 0, at
    try:
        await pinner.restore_all()
    except KilledError:
        return True
    finally:
        killer.at = -1
    return False


@pytest.mark.parametrize("refuses", [False, True], ids=["by the runtime", "by cgroups"])
@pytest.mark.parametrize("number", range(len(CHANGES)), ids=[name for name, _, _ in CHANGES])
async def test_the_next_agent_makes_it_true(node: Rounds, killer: Killer, number: int, refuses: bool) -> None:
    web, other, plain = (node.container(number) for number in range(3))
    _, before, had = CHANGES[number - 1]
    _, wishes, wanted = CHANGES[number]

    async def begin() -> None:
        node.runtime.refuses = {"UpdateContainerResources": GRPCError(Status.UNKNOWN, "no")} if refuses else {}
        assert not await change(node, killer, before)
        assert cpus(web, other) == had

    await begin()
    assert not await change(node, killer, wishes)
    steps = killer.steps
    for at in range(0, steps, max(1, steps // KILLS)):
        await begin()
        assert await change(node, killer, wishes, at=at)
        await change(node, killer, wishes, at=at // 2)  # and the next at what is left
        for entry in node.journal.entries.values():
            assert entry.cpus == format_cpulist(ALL), "what it had before it was first written"
        assert not await change(node, killer, wishes)
        assert cpus(web, other, plain) == [*wanted, ALL]
    await given_back(node, killer)
    assert cpus(web, other, plain) == [ALL] * 3


async def test_the_next_agent_gives_everything_back(node: Rounds, killer: Killer) -> None:
    web, other = node.container(0), node.container(1)
    _, wishes, _ = CHANGES[0]
    await change(node, killer, wishes)
    assert not await give_back(node, killer)
    for at in range(killer.steps):
        await change(node, killer, wishes)
        assert cpus(web, other) == [ONE, ONE]
        assert await give_back(node, killer, at=at)
        await given_back(node, killer)
        assert cpus(web, other) == [ALL, ALL]


async def given_back(node: Rounds, killer: Killer) -> None:
    """Have an agent give everything back that nobody kills, with a runtime that refuses nothing any more."""
    node.runtime.refuses = {}
    node.now += REFUSED_SECONDS
    assert not await give_back(node, killer)
    assert not node.journal.entries


def cpus(*containers: Container) -> list[frozenset[int]]:
    return [each.cpus for each in containers]
