"""Placement pairs pods when one comes, exchanges do when one goes: neither undoes what the other has done.

Both decide about the same node here, one event after the other, without cool-down. Up to 8 pods placement finds the
best there is, so that no exchange can be due; of more, what no exchange makes better.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from berth.api.interference import InterferenceClass
from berth.kube.objects import CustomObject
from berth.scheduling.cache.socket_choice import SocketChoice
from berth.scheduling.cache.sockets import SocketTable
from berth.scheduling.interference.exchange import Seated, Terms, best_exchange
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.interference.residents import Resident
from tests.support.sockets import status, workload_profile

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
EVER = Terms(cool_down=timedelta(0))
EVENTS = 40
WORKLOADS = 8
"""Workloads with a profile, where there are any: two of each class."""


def profiles(*, agreeing: bool) -> list[CustomObject]:
    """WorkloadProfiles that state most slowdowns beside each other: as classes have it, or any from 1 to 1.6."""
    chance = random.Random(1)
    letters = [InterferenceClass("ABCD"[number % 4]) for number in range(WORKLOADS)]

    def slowdown(victim: InterferenceClass, neighbour: InterferenceClass) -> str:
        if not agreeing:
            return f"{chance.uniform(1, 1.6):.2f}"
        return (
            f"{chance.uniform(1.2, 1.5) if victim.sensitive and neighbour.contentious else chance.uniform(1, 1.1):.2f}"
        )

    return [
        workload_profile(
            f"w{number}",
            letter.value,
            slowdowns={f"w{at}": slowdown(letter, other) for at, other in enumerate(letters) if chance.random() < 0.8},
        )
        for number, letter in enumerate(letters)
    ]


@dataclass
class Node:
    """A node of sockets on which pods come and go."""

    sockets: int
    cpus: int
    repairing: bool
    profiles: tuple[CustomObject, ...] = ()
    caches: tuple[int, ...] = ()
    sizes: tuple[int, ...] = (1000,)
    table: SocketTable = field(default_factory=SocketTable)
    pods: list[str] = field(default_factory=list)
    moved_by_placement: int = 0
    moved_by_exchange: int = 0
    due_after_coming: int = 0
    come: int = 0

    def __post_init__(self) -> None:
        self.table.update_node(status("n", cpus=[self.cpus] * self.sockets, caches=self.caches))
        for profile in self.profiles:
            self.table.profiles.update(profile)
        self.choice = SocketChoice(self.table)

    def comes(self, letter: str) -> None:
        """Placement chooses a socket for a pod, and others for those that are there."""
        self.come += 1
        uid = f"pod-{self.come}"
        before = {each: seat.socket for each, seat in self.table.seats("n").items()}
        # Of the two workloads of a class they come by turns.
        owner = f"default/Deployment/w{'ABCD'.index(letter) + 4 * (self.come % 2)}"
        workload = self.table.workload(InterferenceClass(letter), owner)
        assert workload is not None
        self.table.add(uid, "n", Resident(workload, self.sizes[self.come % len(self.sizes)]))
        self.choice.choose(uid, InterferencePolicy.LEAST_SLOWDOWN)
        self.table.confirm(uid)
        self.pods.append(uid)
        self.moved_by_placement += sum(self.table.seats("n")[each].socket != at for each, at in before.items())
        self.due_after_coming += self.exchange()

    def goes(self, uid: str) -> None:
        self.pods.remove(uid)
        self.table.remove(uid)
        self.exchange()

    def exchange(self) -> bool:
        """Whether an exchange is due; all are carried out that are, where somebody does."""
        seats = {uid: seat for uid, seat in self.table.seats("n").items() if seat.socket is not None}
        uids = list(seats)
        pods = [Seated(*seats[uid].resident, seats[uid].socket or 0) for uid in uids]
        capacities, model = [1000 * self.cpus] * self.sockets, self.table.profiles.model
        found = best_exchange(pods, capacities, model, EVER, NOW, caches=self.caches)
        if found is None:
            return False
        if self.repairing:
            self.moved_by_exchange += len(found.moves)
            for at, place in found.moves:
                self.table.assign(uids[at], place)
            self.exchange()
        return True


def lived(sockets: int, cpus: int, mix: tuple[int, ...], *, most: int = 0, **options: Any) -> list[Node]:
    """Nodes after some coming and going, of as many pods at most as there are CPUs, or of `most`."""
    nodes = []
    for seed in range(12):
        chance, node = random.Random(seed), Node(sockets, cpus, **options)
        for _ in range(EVENTS):
            if node.pods and (chance.random() < 0.45 or len(node.pods) == (most or sockets * cpus)):
                node.goes(chance.choice(node.pods))
            else:
                node.comes(chance.choices("ABCD", mix)[0])
        nodes.append(node)
    return nodes


BY_CLASS: tuple[CustomObject, ...] = ()
AGREEING, ANY = (tuple(profiles(agreeing=agreeing)) for agreeing in (True, False))


@pytest.mark.parametrize("mix", [(1, 1, 1, 1), (1, 0, 0, 1)], ids=["all classes", "A and D"])
@pytest.mark.parametrize(("sockets", "cpus"), [(2, 2), (2, 4), (4, 2), (4, 4)])
@pytest.mark.parametrize(
    "known",
    [
        pytest.param(BY_CLASS, id="by class"),
        pytest.param(AGREEING, id="measured"),
        pytest.param(ANY, id="any slowdowns"),
    ],
)
def test_they_are_of_one_mind(known: tuple[CustomObject, ...], sockets: int, cpus: int, mix: tuple[int, ...]) -> None:
    alone, both = (lived(sockets, cpus, mix, repairing=repairing, profiles=known) for repairing in (False, True))
    assert sum(node.due_after_coming for node in both) == 0, "what placement has just paired is left"
    assert sum(node.moved_by_exchange for node in both) > 0
    assert sum(node.moved_by_placement for node in both) <= 1.2 * sum(node.moved_by_placement for node in alone), (
        "and placement moves hardly more pods because others were moved before"
    )


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(BY_CLASS, id="by class"),
        pytest.param(AGREEING, id="measured"),
        pytest.param(ANY, id="any slowdowns"),
    ],
)
@pytest.mark.parametrize(
    ("cpus", "caches", "sizes", "most"),
    [
        pytest.param(4, (2, 2), (1000,), 8, id="few pods"),
        pytest.param(8, (2, 2), (1000,), 16, id="more pods"),
        pytest.param(8, (1, 4), (1000,), 16, id="sockets that differ"),
        pytest.param(8, (4, 4), (500, 3000, 1000), 8, id="some too large for a cache"),
        pytest.param(16, (8, 2), (0, 3000, 100), 24, id="many of any size"),
    ],
)
def test_they_are_of_one_mind_where_sockets_have_several_caches(
    known: tuple[CustomObject, ...], cpus: int, caches: tuple[int, ...], sizes: tuple[int, ...], most: int
) -> None:
    nodes = lived(2, cpus, (1, 1, 1, 1), most=most, repairing=True, profiles=known, caches=caches, sizes=sizes)
    assert sum(node.due_after_coming for node in nodes) == 0, "what placement has just paired is left"
    assert sum(node.moved_by_exchange for node in nodes) > 0
