"""Where one more pod goes on a node whose pods count by their number, and who makes room for it, where that is proved.

Most newcomers go where they add least, and most others have one pod beside them go elsewhere. What all pods cost in
their best pairing says whether more can be won; where it does not, `LeastSlowdown.seats` looks at everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from berth.scheduling.interference.assignment import EXACT_PODS
from berth.scheduling.interference.counted_pairings import CountedPairings
from berth.scheduling.interference.group_costs import MOST, ROUNDING
from berth.scheduling.interference.slowdown import PRICE


class Guest(NamedTuple):
    """A pod on a socket of a node."""

    pod: int
    """one of its workload, as a group"""
    size: int
    """thousandths of a CPU that it requests"""
    place: int
    """place of its socket"""


class Step(NamedTuple):
    """Where a newcomer goes."""

    place: int
    """place of its socket"""
    moved: int | None = None
    """number of the guest that goes elsewhere for it"""
    to: int = -1
    """place of the socket that this one goes to"""


def step_for(
    pairings: CountedPairings, newcomer: int, size: int, guests: Sequence[Guest], capacities: Sequence[int]
) -> Step | None:
    """Return where a newcomer goes so that all suffer least; None where that is not proved so quickly.

    Of more than `EXACT_PODS` pods it is a good place, of which no move and no exchange of two makes a better one.

    Args:
        pairings: what pods cost, alone on a socket nothing.
        newcomer: one of its workload, as a group.
        size: thousandths of a CPU that it requests.
        guests: pods that are there.
        capacities: thousandths of a CPU of each socket, by place.
    """
    if len(guests) >= MOST:
        return None
    cost, groups, room = pairings.costs.cost, [0] * len(capacities), list(capacities)
    for pod, takes, place in guests:
        groups[place] += pod
        room[place] -= takes
    added = [
        cost(group + newcomer) - cost(group) if size <= left else inf for group, left in zip(groups, room, strict=True)
    ]
    place = _first_least(added)
    if added[place] == inf:
        return None
    step, before, exact = Step(place), sum(map(cost, groups)), len(guests) < EXACT_PODS
    # Whoever moves, the price of one is paid, and no less is left than in the best pairing.
    least = PRICE + ROUNDING - before + (pairings.best(sum(groups) + newcomer, len(groups)).cost if exact else 0.0)
    if added[place] <= least or (not exact and _settled(pairings, groups, newcomer, guests, step)):
        return step
    adds = added[place]
    for (pod, takes, here), number in {guest: number for number, guest in enumerate(guests)}.items():
        if size > room[here] + takes:
            continue
        elsewhere = [
            cost(group + pod) - cost(group) if takes <= left else inf for group, left in zip(groups, room, strict=True)
        ]
        elsewhere[here] = inf
        to = _first_least(elsewhere)
        moved = cost(groups[here] + newcomer - pod) - cost(groups[here]) + elsewhere[to] + PRICE
        if moved < adds - ROUNDING:
            adds, step = moved, Step(here, number, to)
    proved = adds <= least if exact else _settled(pairings, groups, newcomer, guests, step)
    return step if proved else None


def _first_least(added: Sequence[float]) -> int:
    """Place of the first of those that add least."""
    least = min(added) + ROUNDING
    return next(place for place, each in enumerate(added) if each <= least)


def _settled(
    pairings: CountedPairings, groups: Sequence[int], newcomer: int, guests: Sequence[Guest], step: Step
) -> bool:
    """Whether nobody who moves, and no two that change places, make it better by the price after a step.

    Nor does the newcomer on another socket, where another moved for it: it goes anywhere for nothing.
    """
    cost, after = pairings.costs.cost, list(groups)
    if step.moved is not None:
        pod = guests[step.moved].pod
        after[step.place] -= pod
        after[step.to] += pod
        added = [cost(group + newcomer) - cost(group) for group in after]
        if min(added) < added[step.place] - ROUNDING:
            return False
    after[step.place] += newcomer
    change = pairings.best_change(after)
    return change is None or change.cost + PRICE >= -ROUNDING
