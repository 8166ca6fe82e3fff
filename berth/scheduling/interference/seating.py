"""The best pairing of a node's pods, on its sockets as they are: as few pods as possible move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from berth.scheduling.interference.residents import Resident


def seats(
    residents: Sequence[Resident],
    now: Sequence[int | None],
    groups: Sequence[Sequence[Resident]],
    capacities: Sequence[int],
) -> list[int]:
    """Return the place of each pod's socket.

    Sockets of one size are the same for a pairing, and so are pods that are alike: those are kept where they are.

    Args:
        residents: the pods.
        now: place of each pod's socket as it is, None where it has none.
        groups: pods of each socket in the pairing, all residents in all.
        capacities: size of each socket.
    """
    wanted = [Counter(group) for group in groups]
    there: list[Counter[Resident]] = [Counter() for _ in capacities]
    for resident, place in zip(residents, now, strict=True):
        if place is not None:
            there[place][resident] += 1
    found: list[int | None] = [None] * len(residents)
    open_places = dict(enumerate(_matched(wanted, there, capacities)))
    left = {place: wanted[group].copy() for place, group in open_places.items()}
    for at, (resident, place) in enumerate(zip(residents, now, strict=True)):
        if place is not None and left[place][resident]:
            left[place][resident] -= 1
            found[at] = place
    for at, resident in enumerate(residents):
        if found[at] is None:
            place = next(place for place, group in left.items() if group[resident])
            left[place][resident] -= 1
            found[at] = place
    return [place for place in found if place is not None]


def _matched(
    wanted: Sequence[Counter[Resident]], there: Sequence[Counter[Resident]], capacities: Sequence[int]
) -> list[int]:
    """Number of the group for each place, most pods that stay first; groups go to sockets of their own size alone."""
    pairs = sorted(
        (
            (-(wanted[group] & there[place]).total(), abs(place - group), place, group)
            for place in range(len(capacities))
            for group in range(len(capacities))
            if capacities[place] == capacities[group]
        ),
    )
    chosen: dict[int, int] = {}
    for _, _, place, group in pairs:
        if place not in chosen and group not in chosen.values():
            chosen[place] = group
    return [chosen[place] for place in range(len(capacities))]
