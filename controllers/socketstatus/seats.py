"""Pods on the sockets of a node: the assignments of its SocketStatus, held against its sockets and pods. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Final, NamedTuple

from berth.api.conditions import find_condition
from berth.api.cpulist import format_cpulist
from berth.api.interference import InterferenceClass, stated_class
from berth.api.socketstatus import (
    CONDITION_OBSERVE_ONLY,
    CONDITION_PINNED,
    CONDITION_TOPOLOGY_UNKNOWN,
    KIND,
    MAX_PODS,
    REASON_UNABLE,
    Assignment,
    SocketStatus,
)
from berth.scheduling.interference.exchange import Seated
from berth.scheduling.interference.pairing import PairQuality, choose_socket, pair_quality
from berth.scheduling.interference.residents import caches_of, cores_of
from controllers.socketstatus.pods import NodePods, SocketPod

_MILLI: Final = 1000


class Pair(NamedTuple):
    """Two pods on one socket that disturb each other by the pairing rules."""

    socket: int
    """number of the socket"""
    pods: tuple[str, str]
    """each with its class, such as ``shop/web (D)``"""


@dataclass(frozen=True, kw_only=True)
class Seats:
    """A node, as far as its pods disturb each other."""

    numbers: tuple[int, ...]
    """numbers of its sockets, ascending; empty: nobody knows them"""
    capacities: tuple[int, ...]
    """thousandths of a CPU of each"""
    caches: tuple[int, ...] = ()
    """last-level caches of each that its pods are kept apart in; empty: one each"""
    cores: tuple[int, ...] = ()
    """cores of each, where some have SMT siblings, otherwise 0; empty: 0 each"""
    why_not: str
    """one word: why nobody makes assignments true; empty: somebody does"""
    pods: tuple[Seated, ...]
    """pods with a class that are on sockets and stay on the node"""
    assignments: tuple[Assignment, ...]
    """theirs, in the same order"""
    absent: tuple[Assignment, ...]
    """those of pods that the node is not known to have"""
    classless: tuple[Assignment, ...]
    """those of Berth's own whose pods are there and have no class any more"""
    lost: frozenset[str] = frozenset()
    """uids of assignments of Berth's own to sockets that the node has not, whose pods placement has given none"""
    problems: tuple[str, ...]
    """what people wrote and makes no sense, with object, field and remedy"""

    def pairs(self) -> list[Pair]:
        """Return the violations of the pairing rules, those on the socket with the least number first."""
        seated = list(zip(self.pods, self.assignments, strict=True))
        found = [
            Pair(self.numbers[one.place], (_named(one, its), _named(other, others)))
            for (one, its), (other, others) in combinations(seated, 2)
            if one.place == other.place
            and pair_quality(one.workload.interference_class, other.workload.interference_class) is PairQuality.WORST
        ]
        return sorted(found)

    def held(self) -> list[str]:
        """Return the pods that stay where somebody else wants them, as ``namespace/name``."""
        seated = zip(self.pods, self.assignments, strict=True)
        return sorted(f"{each.namespace}/{each.name}" for pod, each in seated if pod.held)


def read_seats(status: SocketStatus, movable: frozenset[str], pods: NodePods, class_label: str) -> Seats:
    """Return who sits where.

    Args:
        status: the node's SocketStatus.
        movable: uids of assignments that may be changed.
        pods: pods of nodes.
        class_label: label with the class of a pod.
    """
    node = status.metadata.name
    true = {condition.type for condition in status.status.conditions if condition.status == "True"}
    unknown = CONDITION_TOPOLOGY_UNKNOWN in true or not status.status.sockets
    pinned = find_condition(status.status.conditions, CONDITION_PINNED)
    unable = REASON_UNABLE if pinned is not None and pinned.reason == REASON_UNABLE else ""
    sockets = [] if unknown else sorted(status.status.sockets, key=lambda each: each.socket)
    places = {each.socket: place for place, each in enumerate(sockets)}
    here = pods.of(node)
    seated: list[Seated] = []
    assignments: list[Assignment] = []
    absent: list[Assignment] = []
    classless: list[Assignment] = []
    lost: set[str] = set()
    problems: list[str] = []
    for index, each in enumerate(status.spec.assignments):
        pod = here.get(each.uid)
        if pod is None or pod.key != f"{each.namespace}/{each.name}":
            absent.append(each)
            continue
        stated, workload = stated_class(pod.metadata.labels, class_label), pods.workload(pod)
        if stated.problem is not None:
            problems.append(f"Pod {pod.key}: {stated.problem}")
        elif workload is None and each.uid in movable:
            classless.append(each)
        if unknown or workload is None or pod.leaving:
            continue
        if each.socket not in places:
            if each.uid in movable and not pod.bound_with_socket:
                lost.add(each.uid)
            problems.append(
                f"{KIND} {node}: spec.assignments[{index}].socket: {node} has no socket {each.socket}, it has "
                f"{format_cpulist(places)}; pod {pod.key} counts for nothing; assign it to one of these"
            )
            continue
        seated.append(Seated(workload, pod.cpu, places[each.socket], each.time, held=each.uid not in movable))
        assignments.append(each)
    return Seats(
        numbers=tuple(places),
        capacities=tuple(_MILLI * each.cpu_count for each in sockets),
        caches=caches_of(each.pinned_caches or 1 for each in sockets),
        cores=cores_of((each.cpu_count, each.core_count or 0) for each in sockets),
        why_not="TopologyUnknown" if unknown else "ObserveOnly" if CONDITION_OBSERVE_ONLY in true else unable,
        pods=tuple(seated),
        assignments=tuple(assignments),
        absent=tuple(absent),
        classless=tuple(classless),
        lost=frozenset(lost),
        problems=tuple(problems),
    )


class Newcomer(NamedTuple):
    """A pod without assignment, or with one to a socket that is not there, and the socket for it."""

    pod: SocketPod
    """the pod"""
    interference_class: InterferenceClass
    """class by its label"""
    socket: int
    """number of the socket"""


def newcomers(status: SocketStatus, seats: Seats, pods: Iterable[SocketPod], class_label: str) -> list[Newcomer]:
    """Return a socket by the pairing rules for each pod with a class label that is assigned to none there is, by age.

    Pods that placement chose a socket for are left to it, and those for which no socket has room are left alone.

    Args:
        status: the node's SocketStatus.
        seats: who sits where.
        pods: the node's pods.
        class_label: label with the class of a pod.
    """
    assigned = {each.uid for each in status.spec.assignments}
    settled = assigned - seats.lost
    classes: dict[int, list[InterferenceClass]] = {place: [] for place in range(len(seats.numbers))}
    left = list(seats.capacities)
    for seated in seats.pods:
        classes[seated.place].append(seated.workload.interference_class)
        left[seated.place] -= seated.size
    found: list[Newcomer] = []
    for pod in sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp, pod.key)):
        letter = stated_class(pod.metadata.labels, class_label).interference_class
        if letter is None or pod.metadata.uid in settled or pod.leaving or pod.bound_with_socket:
            continue
        room = {place: there for place, there in classes.items() if pod.cpu <= left[place]}
        chosen = choose_socket(letter, room)
        if chosen is None or (pod.metadata.uid not in assigned and len(assigned) >= MAX_PODS):
            continue
        assigned.add(pod.metadata.uid)
        classes[chosen.socket].append(letter)
        left[chosen.socket] -= pod.cpu
        found.append(Newcomer(pod, letter, seats.numbers[chosen.socket]))
    return found


def _named(pod: Seated, assignment: Assignment) -> str:
    return f"{assignment.namespace}/{assignment.name} ({pod.workload.interference_class})"
