"""Pods that share the sockets of a small problem's nodes, and what plain loops make of their harm."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from berth.api.interference import InterferenceClass
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.node_costs import NodeCosts
from berth.scheduling.interference.residents import Kind, Layout, Resident
from berth.scheduling.interference.slowdown import SlowdownModel, Workload
from berth.scheduling.replica_plan.socket_harm import SocketHarm
from berth.scheduling.replicas.problem import Problem
from berth.scheduling.replicas.sharing import Sharing

PRICE = 10.0
LIKELY = [Workload("", letter) for letter in InterferenceClass]


def resident(letter: str, size: int = 1) -> Resident:
    return Resident(Workload("", InterferenceClass(letter)), size)


def shared(
    problem: Problem, letters: Sequence[str], *, there: Mapping[int, str] | None = None, room: int = 2, sockets: int = 2
) -> Problem:
    """The problem with a class for each pod set, a blank for none.

    `there` are pods with a class by node, and each socket has room for so many.
    """
    numbers = {letter: at for at, letter in enumerate(sorted(set(letters) - {" "}))}
    residents = [resident(letter) for letter in numbers]
    layout = Layout((room,) * sockets, pinned=True)
    before = [tuple(sorted(map(resident, (there or {}).get(node, "")))) for node in range(problem.nodes.size)]
    kinds = [Kind(layout, pods) for pods in dict.fromkeys(before)]
    costs = NodeCosts(LeastSlowdown(SlowdownModel(), LIKELY))
    harm = SocketHarm(costs, kinds, residents, PRICE)
    return replace(
        problem,
        sharing=Sharing(
            kind=np.array([kinds.index(Kind(layout, pods)) for pods in before]),
            number={row: numbers[letter] for row, letter in enumerate(letters) if letter != " "},
            alone=np.array([[harm(kind, (number,)) for kind in range(len(kinds))] for number in numbers.values()]),
            together=harm,
            highest=7 * PRICE,
        ),
    )


def harm_of(letters: str, *, room: int, sockets: int) -> float:
    """What pods of a node cost, all ways to put them on sockets tried; nobody is expected beside a full socket."""
    model, pods = SlowdownModel(), [Workload("", InterferenceClass(letter)) for letter in letters]

    @cache
    def on_socket(there: tuple[Workload, ...]) -> float:
        if len(there) != 1 or room == 1:
            return model.harm(there)
        pairs = [model.harm((there[0], other)) for other in LIKELY]
        return sum(pairs) / len(pairs) / 2

    def ways() -> Iterator[float]:
        for way in itertools.product(range(sockets), repeat=len(pods)):
            if max(map(way.count, way), default=0) <= room:
                groups = [[pod for pod, at in zip(pods, way, strict=True) if at == socket] for socket in range(sockets)]
                yield sum(on_socket(tuple(group)) for group in groups)

    return PRICE * min(ways())
