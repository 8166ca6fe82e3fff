"""Policies: 16 pods that arrive one after another, or together, on 4 nodes of 2 sockets with room for 2 pods each."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

from berth.api.interference import InterferenceClass
from berth.scheduling.interference import greedy, socket_based, sparing
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.pairing import choose_socket
from berth.scheduling.interference.slowdown import Workload

NODES: Final = 4
SOCKETS: Final = 2
ROOM: Final = 2
"""Pods on a socket at most."""

PLACES: Final = 9
"""Places after the point that are kept of a cost: what is alike is the same then."""

Sockets = list[list[Workload]]
"""Pods on each socket."""
Policy = Callable[[Sequence[Workload], random.Random], Sockets]
NodeScore = Callable[[InterferenceClass, Sockets], float]
"""Score of a node for a pod by the classes on its sockets; more is better."""


def at_random(pods: Sequence[Workload], drawn: random.Random) -> Sockets:
    """Every free place has the same chance."""
    order = drawn.sample(pods, len(pods))
    return [order[start : start + ROOM] for start in range(0, NODES * SOCKETS * ROOM, ROOM)]


def one_at_a_time(score: NodeScore, *, pinned: bool) -> Policy:
    """A node by its score, a socket by the pairing rules; chance decides between equals.

    Without pinning, the sockets that the policy thinks of are not those on which the pods run.
    """

    def place(pods: Sequence[Workload], drawn: random.Random) -> Sockets:
        nodes: list[Sockets] = [[[] for _ in range(SOCKETS)] for _ in range(NODES)]
        for pod in pods:
            free = [node for node in nodes if sum(map(len, node)) < SOCKETS * ROOM]
            drawn.shuffle(free)
            node = max(free, key=lambda node: score(pod.interference_class, node))
            open_sockets = {
                number: [each.interference_class for each in residents]
                for number, residents in enumerate(node)
                if len(residents) < ROOM
            }
            choice = choose_socket(pod.interference_class, open_sockets)
            if choice is None:
                raise ValueError("a node with room has a socket with room")
            node[choice.socket].append(pod)
        return [socket for node in nodes for socket in (node if pinned else _unpinned(_all_of(node), drawn))]

    return place


def least_occupied(_newcomer: InterferenceClass, node: Sockets) -> float:
    """Score of the source's "random": the node with the fewest pods."""
    return -sum(map(len, node))


def by_greedy(newcomer: InterferenceClass, node: Sockets) -> float:
    """Score of the published choice "greedy"."""
    return greedy.score(newcomer, [pod.interference_class for socket in node for pod in socket])


def by_sparing(newcomer: InterferenceClass, node: Sockets) -> float:
    """Score of the published choice "sparing"."""
    return sparing.score(newcomer, [pod.interference_class for socket in node for pod in socket])


def by_socket(newcomer: InterferenceClass, node: Sockets) -> float:
    """Score of the published choice "socket-based"."""
    room = [[pod.interference_class for pod in socket] for socket in node if len(socket) < ROOM]
    return socket_based.score(newcomer, room, empty_node=not any(node))


def least_slowdown(judge: LeastSlowdown) -> Policy:
    """Berth's own choice, one pod at a time; those that are there move where that is worth its price."""

    def place(pods: Sequence[Workload], drawn: random.Random) -> Sockets:
        nodes: list[list[Workload]] = [[] for _ in range(NODES)]
        seats: list[list[int]] = [[] for _ in range(NODES)]
        for pod in pods:
            added = {}
            for number in drawn.sample(range(NODES), NODES):
                residents = nodes[number]
                cost = judge.added_harm(pod, 1, residents, [1] * len(residents), [ROOM] * SOCKETS)
                if cost is not None:
                    added[number] = cost
            number = min(added, key=lambda number: added[number])
            nodes[number].append(pod)
            there = nodes[number]
            found = judge.seats(there, [1] * len(there), [ROOM] * SOCKETS, [*seats[number], None])
            if found is None:
                raise ValueError("a node with room has no socket with room")
            seats[number] = found
        return [
            [pod for pod, at in zip(node, places, strict=True) if at == socket]
            for node, places in zip(nodes, seats, strict=True)
            for socket in range(SOCKETS)
        ]

    return place


def least_slowdown_by_chance(judge: LeastSlowdown) -> Policy:
    """Berth's own choice of nodes that pin nobody, one pod at a time."""

    def cost(pods: Sequence[Workload]) -> float:
        return judge.unpinned(pods, [1] * len(pods), [ROOM] * SOCKETS)

    def place(pods: Sequence[Workload], drawn: random.Random) -> Sockets:
        nodes: list[list[Workload]] = [[] for _ in range(NODES)]
        for pod in pods:
            free = [node for node in nodes if len(node) < SOCKETS * ROOM]
            drawn.shuffle(free)
            min(free, key=lambda node: round(cost([*node, pod]) - cost(node), PLACES)).append(pod)
        return [socket for node in nodes for socket in _unpinned(node, drawn)]

    return place


def spread_and_paired(judge: LeastSlowdown) -> Policy:
    """The least occupied node, and Berth's pairing inside it."""
    spread = one_at_a_time(least_occupied, pinned=True)

    def place(pods: Sequence[Workload], drawn: random.Random) -> Sockets:
        sockets = spread(pods, drawn)
        nodes = [_all_of(sockets[start : start + SOCKETS]) for start in range(0, len(sockets), SOCKETS)]
        return [socket for node in nodes for socket in _paired(judge, node, SOCKETS)]

    return place


def together(judge: LeastSlowdown) -> Policy:
    """Berth's pairing of all pods at once on the sockets of all nodes, as if these were one node."""
    return lambda pods, _drawn: _paired(judge, pods, NODES * SOCKETS)


def _paired(judge: LeastSlowdown, pods: Sequence[Workload], sockets: int) -> Sockets:
    found = judge.pairing(pods, [1] * len(pods), [ROOM] * sockets, more=False)
    if found is None:
        raise ValueError("more pods than places")
    return [[pods[number] for number in group] for group in found.sockets]


def _all_of(sockets: Sockets) -> list[Workload]:
    return [pod for socket in sockets for pod in socket]


def _unpinned(pods: Sequence[Workload], drawn: random.Random) -> Sockets:
    """The kernel keeps sockets equally loaded and knows nothing of interference."""
    order = drawn.sample(pods, len(pods))
    return [order[socket::SOCKETS] for socket in range(SOCKETS)]
