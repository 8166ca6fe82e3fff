"""How pods on one socket are kept apart in it: last-level caches and cores of their own. No I/O.

Pods that share a cache disturb each other more than those that share a socket alone, and those that share a core more
still. So each is kept to one of the socket's last-level caches, dealt by the pairing rules, and those in one cache that
disturb each other have cores of their own, with all SMT siblings of a core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import combinations
from typing import Final, NamedTuple

from agents.node.pinning.pod_cpus import MILLI
from agents.node.topology.machine import Machine, Socket
from berth.api.interference import InterferenceClass
from berth.api.socketstatus import MAX_CACHES
from berth.scheduling.interference.pairing import choose_socket, victims

_L3: Final = 3
MOST_PARTED: Final = 8
"""Pods of a cache with cores of their own at most: each that comes or goes changes those of all."""
EXCHANGES: Final = 16
"""Times that pods change caches in one division; what is left is better at the next."""

TRIED: Final = 8
"""Pods of a class in a cache that are tried for a change of places."""
CROWD: Final = 2
"""A cache is crowded beside another if it has more than so many times the pods that the other has with one more: less
is not worth a move, and whoever moved would soon move back."""


class Division(StrEnum):
    """How far the CPUs of a socket are divided among its pods."""

    CORES = "cores"
    """each pod is kept to a last-level cache, and those in one cache that disturb each other have cores of their own"""
    CACHES = "caches"
    """each pod is kept to a last-level cache"""
    SOCKET = "socket"
    """not at all: each has all of the socket"""


class Tenant(NamedTuple):
    """A pod on a socket."""

    uid: str
    """UID of the pod"""
    interference_class: InterferenceClass
    """its class"""
    requested: int
    """thousandths of a CPU that it requests"""
    least: int
    """thousandths of a CPU that it is to be able to use: its limit, or what it requests where it has none"""


class Part(NamedTuple):
    """What a pod has of its socket."""

    cache: int | None
    """place of its cache among those of the socket; None: it may use all of them"""
    cpus: frozenset[int]
    """its CPUs"""


def divided_caches(machine: Machine, socket: Socket) -> tuple[frozenset[int], ...]:
    """Return the CPUs of each cache that pods of a socket are kept apart in; none where they are not.

    They are only where the socket has several, each is an L3 at least and has two cores at least, no core is in two,
    and all cores are alike: what virtual machines and odd firmware show is not worth a pod's being on one CPU.
    Isolated CPUs are left out: the kernel spreads no load over them.
    """
    shared = socket.cpus - machine.isolated
    there = [cache for cache in machine.last_level_caches if cache.cpus & shared]
    caches = tuple(cache.cpus & shared for cache in there)
    if not 2 <= len(caches) <= MAX_CACHES or machine.core_types or any(cache.level < _L3 for cache in there):
        return ()
    cores = [_cores(machine, cpus) for cpus in caches]
    whole = all(sum(map(len, own)) == len(cpus) for own, cpus in zip(cores, caches, strict=True))
    return caches if whole and min(map(len, cores)) > 1 else ()


def divide(
    machine: Machine,
    socket: Socket,
    tenants: Sequence[Tenant],
    division: Division,
    before: Mapping[str, frozenset[int]],
) -> dict[str, Part]:
    """Return what each pod has of its socket, by UID.

    Args:
        machine: the machine.
        socket: the socket.
        tenants: its pods, those first that came first.
        division: how far it is divided.
        before: CPUs of a cache, or some of them, that a pod was kept to, by UID; it stays there unless fewer suffer.
            Places are not the same any more once another cache has no CPU online.
    """
    caches = divided_caches(machine, socket) if division is not Division.SOCKET else ()
    places = _dealt(caches, tenants, before) if caches else {}
    numbers = _numbers(machine, socket, caches)
    parts = {
        each.uid: Part(None, socket.cpus) if place is None else Part(numbers[place], caches[place])
        for each in tenants
        for place in [places.get(each.uid)]
    }
    if division is Division.CORES and not machine.core_types:
        for cpus in caches or (socket.cpus,):
            together = [each for each in tenants if parts[each.uid].cpus == cpus]
            for uid, own in _own_cores(_cores(machine, cpus - machine.isolated), together).items():
                parts[uid] = parts[uid]._replace(cpus=own)
    return parts


def _numbers(machine: Machine, socket: Socket, caches: Iterable[frozenset[int]]) -> list[int]:
    """Places of caches among all of the socket, those of isolated CPUs alone counted."""
    there = [cache.cpus for cache in machine.last_level_caches if cache.cpus & socket.cpus]
    return [next(number for number, cpus in enumerate(there) if own <= cpus) for own in caches]


def _cores(machine: Machine, cpus: frozenset[int]) -> list[frozenset[int]]:
    return [core for core in machine.cores if core <= cpus]


def _dealt(
    caches: Sequence[frozenset[int]], tenants: Sequence[Tenant], before: Mapping[str, frozenset[int]]
) -> dict[str, int | None]:
    """Place of each pod's cache: where it was, else by the pairing rules.

    Then changed as long as fewer suffer, and from crowded ones to others where no more do.
    """
    room = _Room([MILLI * len(cpus) for cpus in caches])
    dealt: dict[str, int | None] = {}
    for each in tenants:
        place = _most_of(caches, before.get(each.uid, frozenset()))
        if place is not None and room.fits(each, place):
            room.add(each, place)
            dealt[each.uid] = place
    for each in tenants:
        if each.uid not in dealt:
            open_to = {place: there for place, there in enumerate(room.classes()) if room.fits(each, place)}
            chosen = choose_socket(each.interference_class, open_to)
            dealt[each.uid] = None if chosen is None else chosen.socket
            if chosen is not None:
                room.add(each, chosen.socket)
    for _ in range(EXCHANGES):
        moves = room.better() or room.evener()
        if not moves:
            break
        dealt.update({tenant.uid: place for tenant, place in moves.items()})
    return dealt


def _most_of(caches: Sequence[frozenset[int]], cpus: frozenset[int]) -> int | None:
    """Place of the cache with the most of some CPUs; None where none has any."""
    shared = [len(cache & cpus) for cache in caches] if cpus else [0]
    most = max(shared)
    return shared.index(most) if most else None


_Moves = tuple[tuple[Tenant, int, int], ...]
"""Pods, each with the place that it leaves and the place that it goes to."""


class _Room:
    """Pods in the caches of a socket."""

    def __init__(self, capacities: Sequence[int]) -> None:
        self._capacities = capacities
        self._left = list(capacities)
        self._there: list[dict[Tenant, None]] = [{} for _ in capacities]

    def classes(self) -> list[list[InterferenceClass]]:
        return [[each.interference_class for each in there] for there in self._there]

    def fits(self, tenant: Tenant, place: int, *, instead: Tenant | None = None) -> bool:
        left = self._left[place] + (instead.requested if instead else 0)
        return tenant.requested <= left and tenant.least <= self._capacities[place]

    def add(self, tenant: Tenant, place: int) -> None:
        self._there[place][tenant] = None
        self._left[place] -= tenant.requested

    def better(self) -> dict[Tenant, int]:
        """Do the best that one pod that moves can do, or two that change places; who went where, nobody if none does.

        By classes: of pods of one class in a cache the first that fits stands for all, of a few.
        """
        firsts = [_by_class(there) for there in self._there]
        presses = [_pressing(there) for there in self._there]
        relief = [
            max((there[letter] - _PRESSING[letter][letter] for letter in present), default=0)
            for there, present in zip(presses, firsts, strict=True)
        ]
        best: tuple[int, _Moves] = 0, ()
        for one, other in combinations(range(len(firsts)), 2):
            # No more can be won than what goes with those that leave: most pairs of caches need no look.
            if relief[one] + relief[other] <= best[0]:
                continue
            for mine, ours in (*firsts[one].items(), _NOBODY):
                for theirs, others in (*firsts[other].items(), _NOBODY):
                    gain = _gain(presses[one], presses[other], mine, theirs)
                    if gain > best[0] and (moves := self._moves(one, ours, other, others)):
                        best = gain, moves
        return self._done(best[1])

    def evener(self) -> dict[Tenant, int]:
        """Move a pod from a crowded cache to one that has as much room then, where no more suffer; who went where.

        Others may have left a cache empty, or moved for those that did: pods would share a part of the socket for ever.
        """
        by_crowd = sorted(range(len(self._there)), key=lambda place: len(self._there[place]))
        for other in by_crowd:
            for one in reversed(by_crowd):
                if len(self._there[one]) <= CROWD * (len(self._there[other]) + 1):
                    break
                here, there = _pressing(self._there[one]), _pressing(self._there[other])
                for letter, ours in _by_class(self._there[one]).items():
                    if _gain(here, there, letter, None) < 0:
                        continue
                    for mine in ours:
                        room = self._left[other] - self._left[one] >= 2 * mine.requested
                        if room and (moves := self._moves(one, [mine], other)):
                            return self._done(moves)
        return {}

    def _done(self, moves: _Moves) -> dict[Tenant, int]:
        for tenant, from_place, _ in moves:
            del self._there[from_place][tenant]
            self._left[from_place] += tenant.requested
        for tenant, _, to_place in moves:
            self.add(tenant, to_place)
        return {tenant: to_place for tenant, _, to_place in moves}

    def _moves(self, one: int, ours: Sequence[Tenant], other: int, others: Sequence[Tenant] = ()) -> _Moves:
        """The first pod of each that can change places, or of one that can move; none where none has room."""
        for mine in ours or (None,):
            for theirs in others or (None,):
                there = mine is None or self.fits(mine, other, instead=theirs)
                here = theirs is None or self.fits(theirs, one, instead=mine)
                if there and here:
                    moves = ((mine, one, other), (theirs, other, one))
                    return tuple((each, start, end) for each, start, end in moves if each is not None)
        return ()


_Pressing = dict[InterferenceClass, int]
_NOBODY: Final[tuple[None, list[Tenant]]] = None, []
_PRESSING: Final = {one: {other: victims(one, other) for other in InterferenceClass} for one in InterferenceClass}
"""Who suffers of two classes in one cache: 0, 1 or both."""


def _by_class(there: Mapping[Tenant, None]) -> dict[InterferenceClass, list[Tenant]]:
    found: dict[InterferenceClass, list[Tenant]] = {}
    for each in there:
        of_class = found.setdefault(each.interference_class, [])
        if len(of_class) < TRIED:
            of_class.append(each)
    return found


def _pressing(there: Iterable[Tenant]) -> _Pressing:
    """How many more suffer, by class of one more pod, each as often as there is a pod that it suffers from."""
    counts = Counter(each.interference_class for each in there)
    return {
        letter: sum(pressing[other] * count for other, count in counts.items())
        for letter, pressing in _PRESSING.items()
    }


def _gain(one: _Pressing, other: _Pressing, mine: InterferenceClass | None, theirs: InterferenceClass | None) -> int:
    """By how much fewer suffer when a pod of a class in one changes places with one of another class in the other."""
    if mine is theirs:
        return 0
    gain = 0
    for letter, start, end in ((mine, one, other), (theirs, other, one)):
        if letter is not None:
            gain += start[letter] - _PRESSING[letter][letter] - end[letter]
    # Neither meets the one that it changes places with.
    return gain + (2 * _PRESSING[mine][theirs] if mine and theirs else 0)


def _own_cores(cores: Sequence[frozenset[int]], tenants: Sequence[Tenant]) -> dict[str, frozenset[int]]:
    """CPUs of those pods that disturb each other, by UID: whole cores of their own, by what they request.

    Nobody where cores have no siblings, or are too few for what each is to be able to use.
    """
    # A core whose sibling is offline may be anybody's: each is reckoned with no more than such cores have.
    threads = min(map(len, cores), default=1)
    pressing = _pressing(tenants)
    alone = {letter: _PRESSING[letter][letter] for letter in pressing}
    # One whose limit is more than all of them has what it may have of it anywhere, as where there are several caches.
    most = MILLI * sum(map(len, cores))
    fighting = [
        each
        for each in tenants
        if pressing[each.interference_class] > alone[each.interference_class] and each.least <= most
    ]
    if max(map(len, cores), default=1) < 2 or not 2 <= len(fighting) <= MOST_PARTED:
        return {}
    least = [max(1, -(-each.least // (MILLI * threads))) for each in fighting]
    if sum(least) > len(cores):
        return {}
    shares, found, begin = _shares(len(cores), least, [each.requested for each in fighting]), {}, 0
    for each, share in zip(fighting, shares, strict=True):
        found[each.uid] = frozenset[int]().union(*cores[begin : begin + share])
        begin += share
    return found


def _shares(cores: int, least: Sequence[int], requested: Sequence[int]) -> list[int]:
    """Cores for each: its least, and one more at a time to whoever then has the fewest for what it requests."""
    found = list(least)
    for _ in range(cores - sum(least)):
        at = min(range(len(found)), key=lambda at: (found[at] / max(1, requested[at]), at))
        found[at] += 1
    return found
