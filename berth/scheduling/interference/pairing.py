"""Which interference classes fit on one socket, and which socket one more pod goes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import combinations
from typing import Final, NamedTuple

from berth.api.interference import InterferenceClass

A, B, C, D = InterferenceClass


class PairQuality(StrEnum):
    """What becomes of two classes on one socket."""

    BEST = "best"
    """nobody suffers, and no workload that fits with all is spent on one that needs no such neighbour"""
    WASTEFUL = "wasteful"
    """nobody suffers, but an A stands where a workload with fewer neighbours to choose from could"""
    WORST = "worst"
    """somebody suffers"""


def _pairs(*names: str) -> list[frozenset[InterferenceClass]]:
    return [frozenset(map(InterferenceClass, name)) for name in names]


_QUALITIES: Final = {
    **dict.fromkeys(_pairs("AB", "AD", "BB", "CC"), PairQuality.BEST),
    **dict.fromkeys(_pairs("AA", "AC"), PairQuality.WASTEFUL),
    **dict.fromkeys(_pairs("BC", "BD", "CD", "DD"), PairQuality.WORST),
}

NEIGHBOURS: Final[dict[InterferenceClass, tuple[InterferenceClass, ...]]] = {
    A: (A, B, C, D),
    B: (A, B),
    C: (A, C),
    D: (A,),
}
"""Classes that may be on a socket beside each, those that are to be preferred first; an A does not mind which."""


class SocketChoice(NamedTuple):
    """Where a pod goes."""

    socket: int
    """number of the socket"""
    by_rule: bool
    """whether everybody there fits with it; otherwise it is where the fewest suffer"""


def pair_quality(one: InterferenceClass, other: InterferenceClass) -> PairQuality:
    """Return what becomes of two classes on one socket."""
    return _QUALITIES[frozenset((one, other))]


def victims(one: InterferenceClass, other: InterferenceClass) -> int:
    """Return how many of two workloads on one socket suffer: 0, 1 or both."""
    return (one.contentious and other.sensitive) + (other.contentious and one.sensitive)


def violations(residents: Iterable[InterferenceClass]) -> int:
    """Return how many pairs of the pods on one socket are such that somebody suffers."""
    return sum(pair_quality(*pair) is PairQuality.WORST for pair in combinations(residents, 2))


def rule_rank(newcomer: InterferenceClass, residents: Iterable[InterferenceClass]) -> int | None:
    """Return the place of a socket in the order of the rules for one more pod; None: a rule is against it.

    0 is the best. An A goes anywhere, all others rather to an empty socket (0) than to an A (1), and rather there than
    beside their like (2). Of several residents the one that is worst for it counts.
    """
    neighbours = NEIGHBOURS[newcomer]
    ranks = []
    for resident in residents:
        if resident not in neighbours:
            return None
        ranks.append(0 if newcomer is A else 1 + neighbours.index(resident))
    return max(ranks, default=0)


def choose_socket(
    newcomer: InterferenceClass, sockets: Mapping[int, Sequence[InterferenceClass]]
) -> SocketChoice | None:
    """Return the socket for one more pod; None without sockets.

    The first that the rules prefer; of several the one where it makes the fewest wasteful pairs, with the fewest
    pods, with the least number. Where no rule can be met, the one where the fewest suffer.

    Args:
        newcomer: class of the pod.
        sockets: classes of the pods on each socket that has room, by the socket's number.
    """

    def order(socket: int) -> tuple[int, ...]:
        residents = sockets[socket]
        rank = rule_rank(newcomer, residents)
        suffering = sum(victims(newcomer, resident) for resident in residents)
        wasted = sum(pair_quality(newcomer, resident) is PairQuality.WASTEFUL for resident in residents)
        return (rank is None, rank or 0, suffering, wasted, len(residents), socket)

    best = min(sockets, key=order, default=None)
    return None if best is None else SocketChoice(best, rule_rank(newcomer, sockets[best]) is not None)
