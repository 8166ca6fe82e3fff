"""Whether pods of a node should be on other sockets than they are: one exchange at a time, and only where it pays.

What counts is what `LeastSlowdown.seats` goes by when a pod comes: what the pods that are there suffer now, and a price
for each that moves, since it loses what it has in caches and its memory stays behind. By classes alone, the sockets
that a pod would move to are in the order of the pairing rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from berth.scheduling.interference.closeness import Caches
from berth.scheduling.interference.pod_sets import sockets_of
from berth.scheduling.interference.slowdown import PRICE, SlowdownModel, Workload, harms

Floats = npt.NDArray[np.float64]
COOL_DOWN: Final = timedelta(minutes=5)
"""How long a pod stays on a socket at least."""
_ROUNDING: Final = 1e-9


class Seated(NamedTuple):
    """A pod on a socket."""

    workload: Workload
    """what the slowdown model knows it by"""
    size: int
    """thousandths of a CPU that it requests"""
    place: int
    """place of its socket"""
    since: datetime | None = None
    """when it was assigned to it; None: nobody knows, and long ago"""
    held: bool = False
    """whether it is to stay there"""


class Terms(NamedTuple):
    """What an exchange has to keep to."""

    price: float = PRICE
    """harm that has to go for each pod that moves; more than 0, or pods would move for nothing"""
    cool_down: timedelta = COOL_DOWN
    """how long a pod stays on a socket at least"""

    def free_at(self, pod: Seated) -> datetime | None:
        """Return when a pod may move; None if it may at any time, unless it is held."""
        return None if pod.since is None else pod.since + self.cool_down

    def cooling(self, pod: Seated, now: datetime) -> bool:
        """Return whether it is too early for a pod to move; a time that is far ahead is none."""
        return pod.since is not None and abs(now - pod.since) < self.cool_down


class Move(NamedTuple):
    """A pod that goes to another socket."""

    pod: int
    """number of the pod"""
    place: int
    """place of the socket"""


class Toll(NamedTuple):
    """What pods suffer from each other."""

    harm: float
    """what their slowdowns count, with the limits that are broken (`slowdown.harm`)"""
    excess: float
    """by how much they are slower, all together"""


class Exchange(NamedTuple):
    """One pod that moves, or two that change places."""

    moves: tuple[Move, ...]
    """one or two"""
    before: Toll
    """of the two sockets as they are"""
    after: Toll
    """of the two sockets then"""


def node_toll(
    pods: Sequence[Seated],
    model: SlowdownModel,
    capacities: Sequence[int] = (),
    caches: Sequence[int] = (),
    cores: Sequence[int] = (),
) -> Toll:
    """Return what the pods of a node suffer from each other; arguments as those of `best_exchange`."""
    count = len(capacities) or max((pod.place for pod in pods), default=0) + 1
    excess, groups = _excess(pods, model), _groups(pods, count)
    sockets = _sockets(pods, capacities or (0,) * count, caches, cores)
    tolls = [_toll(excess, group, socket) for group, socket in zip(groups, sockets, strict=True)]
    return Toll(sum(toll.harm for toll in tolls), sum(toll.excess for toll in tolls))


def best_exchange(
    pods: Sequence[Seated],
    capacities: Sequence[int],
    model: SlowdownModel,
    terms: Terms,
    now: datetime,
    *,
    caches: Sequence[int] = (),
    cores: Sequence[int] = (),
) -> Exchange | None:
    """Return the exchange that takes most harm away after its price; None where none is worth its price.

    None makes pods slower, taken together: that one pod suffers much so that others are below a limit is no gain.

    Of two sockets that have n and m pods, n * m exchanges are looked at, in (n + m) * n * m steps.

    Args:
        pods: pods of the node that are on sockets.
        capacities: thousandths of a CPU of each socket, by place. A socket that holds more may become smaller.
        model: expected slowdowns.
        terms: what it has to keep to.
        now: the time.
        caches: last-level caches of each socket that its pods are kept apart in; none: one each.
        cores: cores of each, where some have SMT siblings, otherwise 0; none: 0 each.
    """
    excess, groups = _excess(pods, model), _groups(pods, len(capacities))
    sockets = _sockets(pods, capacities, caches, cores)
    tolls = [_toll(excess, group, socket) for group, socket in zip(groups, sockets, strict=True)]
    free = [[at for at in group if not (pods[at].held or terms.cooling(pods[at], now))] for group in groups]
    best: tuple[float, Exchange] | None = None
    for one, other in combinations(range(len(capacities)), 2):
        before = Toll(*map(sum, zip(tolls[one], tolls[other], strict=True)))
        if before.harm <= terms.price or not (free[one] or free[other]):
            continue
        mine, theirs = [*free[one], None], [*free[other], None]
        after = _after(excess, sockets[one], groups[one], mine, theirs)
        after += _after(excess, sockets[other], groups[other], theirs, mine).swapaxes(1, 2)
        moving = np.add.outer([at is not None for at in mine], [at is not None for at in theirs], dtype=np.float64)
        gain = before.harm - after[0] - terms.price * moving
        fits = _fits(pods, groups[one], groups[other], mine, theirs, (capacities[one], capacities[other]))
        gain[~fits | (after[1] > before.excess + _ROUNDING)] = -np.inf
        row, column = (int(each) for each in np.unravel_index(int(gain.argmax()), gain.shape))
        if gain[row, column] > (_ROUNDING if best is None else best[0] + _ROUNDING):
            moves = [(mine[row], other), (theirs[column], one)]
            chosen = tuple(Move(at, place) for at, place in moves if at is not None)
            best = float(gain[row, column]), Exchange(chosen, before, Toll(*after[:, row, column].tolist()))
    return None if best is None else best[1]


def _excess(pods: Sequence[Seated], model: SlowdownModel) -> Floats:
    """float64[n, n], by how much each pod is slower because of each other."""
    known: dict[tuple[Workload, Workload], float] = {}
    found = np.zeros((len(pods), len(pods)))
    for at, victim in enumerate(pods):
        for beside, neighbour in enumerate(pods):
            pair = victim.workload, neighbour.workload
            if at != beside:
                if pair not in known:
                    known[pair] = model.excess(*pair)
                found[at, beside] = known[pair]
    return found


def _groups(pods: Sequence[Seated], count: int) -> list[list[int]]:
    groups: list[list[int]] = [[] for _ in range(count)]
    for at, pod in enumerate(pods):
        groups[pod.place].append(at)
    return groups


def _sockets(
    pods: Sequence[Seated], capacities: Sequence[int], caches: Sequence[int], cores: Sequence[int]
) -> list[Caches]:
    return [
        Caches(socket.caches, [socket.need_of(pod.size) for pod in pods], socket.cores)
        for socket in sockets_of(capacities, caches, cores)
    ]


def _toll(excess: Floats, group: list[int], socket: Caches) -> Toll:
    slower = excess[np.ix_(group, group)].sum(axis=1) * socket.weights(group)[0]
    return Toll(float(harms(slower).sum()), float(slower.sum()))


def _after(
    excess: Floats, socket: Caches, group: list[int], leaving: list[int | None], coming: list[int | None]
) -> Floats:
    """float64[2, leaving, coming], toll of a socket with one pod less and one more; None stands for nobody."""
    arrivals = [at for at in coming if at is not None]
    found = np.empty((2, len(leaving), len(coming)))
    for row, gone in enumerate(leaving):
        left = [at for at in group if at != gone]
        own, counts = excess[np.ix_(left, left)].sum(axis=1), socket.weights(left)
        weights = counts[1:][arrivals]
        beside = (own[:, None] + excess[np.ix_(left, arrivals)]) * weights
        newcomers = excess[np.ix_(arrivals, left)].sum(axis=1) * weights
        own *= counts[0]
        found[:, row, -1] = harms(own).sum(), own.sum()
        found[0, row, :-1] = harms(beside).sum(axis=0) + harms(newcomers)
        found[1, row, :-1] = beside.sum(axis=0) + newcomers
    return found


def _fits(
    pods: Sequence[Seated],
    here: list[int],
    there: list[int],
    leaving: list[int | None],
    coming: list[int | None],
    capacities: tuple[int, int],
) -> npt.NDArray[np.bool_]:
    """bool[leaving, coming], whether both sockets have room, or take no more than before."""
    gone = [0 if at is None else pods[at].size for at in leaving]
    come = [0 if at is None else pods[at].size for at in coming]
    change = np.subtract.outer(come, gone).T
    mine, theirs = (sum(pods[at].size for at in group) for group in (here, there))
    found: npt.NDArray[np.bool_] = ((mine + change <= capacities[0]) | (change <= 0)) & (
        (theirs - change <= capacities[1]) | (change >= 0)
    )
    return found
