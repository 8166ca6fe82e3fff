"""Pods come to a divided socket and go: who is moved for it, and when it is still."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

import pytest

from agents.node.pinning.division import EXCHANGES, MOST_PARTED, Division, Part, Tenant, divide
from agents.node.topology.machine import Machine
from berth.api.interference import InterferenceClass
from berth.scheduling.interference.pairing import victims
from tests.support.sysfs import uniform

EVENTS = 120
MOST = 60
"""Pods on the socket at most."""


def suffering(pods: Sequence[Tenant], caches: Mapping[str, int | None]) -> int:
    return sum(
        victims(one.interference_class, other.interference_class)
        for one, other in combinations(pods, 2)
        if caches[one.uid] == caches[other.uid] and caches[one.uid] is not None
    )


def crowding(caches: Mapping[str, int | None]) -> int:
    """Pairs of pods in one cache, whether they disturb each other or not; counted twice, and each pod with itself."""
    return sum(count**2 for count in Counter(caches.values()).values())


def kept(parts: Mapping[str, Part]) -> dict[str, frozenset[int]]:
    """CPUs of those that are kept to a cache, as the agent remembers them."""
    return {uid: part.cpus for uid, part in parts.items() if part.cache is not None}


@pytest.mark.parametrize("mix", ["ABCD", "BCD", "DDDA"])
@pytest.mark.parametrize("caches", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("threads", [1, 2])
def test_pods_come_and_go(caches: int, threads: int, mix: str) -> None:
    machine: Machine = uniform(caches=caches, cores=8, threads=threads)
    chance, pods = random.Random(f"{caches} {threads} {mix}"), list[Tenant]()
    before: dict[str, Part] = {}
    moved = 0
    for event in range(EVENTS):
        if pods and (chance.random() < 0.4 or len(pods) == MOST):
            pods.remove(chance.choice(pods))
        else:
            pods.append(Tenant(f"p{event}", InterferenceClass(chance.choice(mix)), 0, 1000))
        parts = divide(machine, machine.sockets[0], pods, Division.CORES, kept(before))
        staying = {uid: before[uid].cache if uid in before else part.cache for uid, part in parts.items()}
        places = {uid: part.cache for uid, part in parts.items()}
        if places != staying:
            moved += 1
            now, before_that = ((suffering(pods, each), crowding(each)) for each in (places, staying))
            assert now < before_that, "nobody changes caches for nothing"
        written = sum(uid in before and before[uid].cpus != part.cpus for uid, part in parts.items())
        assert written <= 2 * MOST_PARTED + 2 * EXCHANGES
        assert places != staying or written <= MOST_PARTED, "those of one cache, where nobody changes caches"
        assert divide(machine, machine.sockets[0], pods, Division.CORES, kept(parts)) == parts, "then it is still"
        before = parts
    assert bool(moved) == (caches > 1) or caches > 4, "what is asserted of those that change caches was seen"
