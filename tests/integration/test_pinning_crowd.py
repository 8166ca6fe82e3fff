"""A crowd of pods, whatever happens to them while the runtime has not heard of their CPUs: they have them in the end.

The runtime keeps what it was told and applies it with every later update; that it has heard of everything shows when it
updates something else: no container's CPUs change then.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from agents.node.pinning.cpuset import read_cpuset
from agents.node.pinning.cri import HUNG_SECONDS
from agents.node.pinning.pinner import LOOK_SECONDS, WRITE_SECONDS, Pinner
from agents.node.pinning.reconciler import QUIET_SECONDS
from agents.node.pinning.wanted import PodWish
from berth.api.cpulist import format_cpulist
from tests.support.cpusets import everything
from tests.support.pinning_rounds import Container, Rounds, rounds, wish
from tests.support.pinning_stand import SOCKETS

ALL = everything()
PATIENCE = 0.1
"""Seconds that a round waits for the runtime to say what runs."""
HURRY = 0.02
"""Seconds that it waits for an answer about a container while it has more to do."""
ANSWERED = 60.0
"""The first where it says so, however busy the machine is."""


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Rounds]:
    async with rounds("crowd", tmp_path) as found:
        yield found


class Crowd:
    """Pods of a node, and what may happen to them."""

    PODS = 6

    def __init__(self, node: Rounds, seed: int) -> None:
        self.node = node
        self.chance = random.Random(seed)
        self.wanted: dict[int, int | None] = {}
        self.containers: dict[int, Container] = {}
        self.sandboxes: dict[int, Path] = {}
        self.pinner: Pinner = node.agent(patience=PATIENCE, hurry=HURRY)
        self.kubelet_pins = False
        self.log: list[str] = []

    def wishes(self) -> tuple[PodWish, ...]:
        return tuple(wish(number, socket) for number, socket in self.wanted.items())

    async def round(self, seconds: float) -> None:
        self.node.now += seconds
        before = self.cpus()
        await self.pinner.round(self.wishes(), observe=self.kubelet_pins)
        assert not self.kubelet_pins or self.cpus() == before, "; ".join(self.log)

    def cpus(self) -> dict[int, frozenset[int]]:
        """What each container has, by the kernel."""
        return {number: found.cpus for number, found in self.containers.items()}

    async def happens(self) -> None:
        """Something happens, by chance, and then a round."""
        once = [self.starts, self.ends, self.moves, self.updates, self.drifts, self.runtime, self.agent, self.kubelet]
        work = self.chance.choice([self.starts, self.moves, *once])
        number = self.chance.randrange(self.PODS)
        self.log.append(f"{work.__name__} {number}")
        await work(number)
        await self.round(self.chance.choice([0.3, 1.0, LOOK_SECONDS]))

    async def starts(self, number: int) -> None:
        if number not in self.containers:
            self.sandboxes[number] = self.node.sandbox(number)
            self.containers[number] = self.node.container(number, mounted=True)
            self.wanted.setdefault(number, self.chance.choice([0, 1]))

    async def ends(self, number: int) -> None:
        gone = self.containers.pop(number, None)
        if gone is not None:
            self.node.room.end(gone.known.cgroup)
            self.node.room.end(self.sandboxes.pop(number))
            del self.node.runtime.containers[gone.id]
            if self.chance.random() < 0.5:
                self.wanted.pop(number)

    async def moves(self, number: int) -> None:
        if number in self.wanted:
            self.wanted[number] = self.chance.choice([None, 0, 1])

    async def updates(self, _: int) -> None:
        """The runtime changes something else of all."""
        for found in self.containers.values():
            self.node.runtime.update(found.known)

    async def drifts(self, number: int) -> None:
        if number in self.containers and self.containers[number].id in self.node.journal.entries:
            self.containers[number].set_cpus(ALL)

    async def runtime(self, number: int) -> None:
        """It is slow or late, refuses, hangs about a container or altogether, does late what it is told, or works."""
        runtime = self.node.runtime
        self.works()
        match number:
            case 0:
                runtime.before_update = self.slowly
            case 1:
                runtime.refuses["UpdateContainerResources"] = GRPCError(Status.UNAVAILABLE, "not now")
            case 2:
                runtime.hangs_about = {found.id for found in self.containers.values() if self.chance.random() < 0.3}
            case 3:
                runtime.listing.clear()
            case 4:
                runtime.hangs = {self.chance.choice(["ListContainers", "UpdateContainerResources", "ContainerStatus"])}
            case 5:
                runtime.gate.clear()

    async def kubelet(self, _: int) -> None:
        """It begins to pin, and gives containers CPUs by itself, or ends to, and leaves them as they are."""
        self.works()
        await self.node.client.settled()
        await self.node.runtime.settle()
        self.kubelet_pins = not self.kubelet_pins
        for found in self.containers.values():
            # It tells one that was not pinned what it has, all CPUs: fewer would be those of another agent later.
            own = self.chance.choice([*SOCKETS, ALL]) if found.id in self.node.journal.entries else ALL
            if self.kubelet_pins:
                found.known.keeps = (format_cpulist(own), found.known.keeps[1])
                self.node.runtime.update(found.known)

    def slowly(self) -> None:
        self.node.now += WRITE_SECONDS * 0.6

    def works(self) -> None:
        runtime = self.node.runtime
        runtime.before_update = lambda: None
        runtime.listing.set()
        runtime.gate.set()
        runtime.refuses.clear()
        runtime.hangs.clear()
        runtime.hangs_about.clear()

    async def agent(self, _: int) -> None:
        """It is killed, and another one starts."""
        self.pinner = self.node.agent(patience=PATIENCE, hurry=HURRY)


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_happens_each_has_what_is_wanted_and_the_runtime_knows_it(node: Rounds, seed: int) -> None:
    crowd = Crowd(node, seed)
    for _ in range(12):
        await crowd.happens()
    if crowd.kubelet_pins:
        await crowd.kubelet(0)
    crowd.works()
    node.containers._patience = node.client._patience = ANSWERED
    for after in (HUNG_SECONDS, QUIET_SECONDS, *[LOOK_SECONDS] * (2 * crowd.PODS)):
        await crowd.round(after)
    told = "; ".join(crowd.log)
    containers = crowd.containers
    expected = {
        number: ALL if (socket := crowd.wanted.get(number)) is None else SOCKETS[socket] for number in containers
    }
    pinned = {found.id for number, found in containers.items() if crowd.wanted.get(number) is not None}
    assert crowd.cpus() == expected, told
    assert node.journal.entries.keys() == pinned, told
    await crowd.updates(0)
    assert crowd.cpus() == expected, told
    await crowd.pinner.restore_all()
    await crowd.updates(0)
    assert {found.cpus for found in containers.values()} <= {ALL}, told
    version = node.room.hierarchy.version
    assert {read_cpuset(cgroup, version).effective_cpus for cgroup in crowd.sandboxes.values()} <= {ALL}, told
    assert not node.journal.entries, told


async def test_while_the_runtime_is_late_containers_are_pinned_and_what_holds_namespaces_is_not(node: Rounds) -> None:
    web, unsure, sandbox = node.container(0, mounted=True), node.container(1), node.sandbox(0)
    pinner, wishes = node.agent(patience=PATIENCE), (wish(0), wish(1))
    node.runtime.listing.clear()
    version = node.room.hierarchy.version
    for _ in range(2):
        await pinner.round(wishes, observe=False)
        assert (web.cpus, unsure.cpus, read_cpuset(sandbox, version).effective_cpus) == (SOCKETS[0], ALL, ALL)
    assert set(node.runtime.asked) == {"ListContainers"}, "nothing else is asked of it meanwhile"
    late, _ = node.container(2, mounted=True), node.sandbox(2)
    node.runtime.asked.clear()
    for listed in (False, True):
        await pinner.round((*wishes, wish(2)), observe=False)
        assert late.cpus == SOCKETS[0]
        if not listed:
            node.runtime.listing.set()
            node.containers._patience = ANSWERED
    assert (web.cpus, unsure.cpus, read_cpuset(sandbox, version).effective_cpus) == (SOCKETS[0], SOCKETS[0], ALL)
    assert node.journal.entries.keys() == {web.id, unsure.id, late.id}
