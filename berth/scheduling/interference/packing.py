"""Whether pods fit their sockets at all, and how: asked where each has gone where it adds least, and one is left over.

Which pods get on with each other is not asked here; who asks makes that better afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

STEPS: Final = 4096
"""Places that may be tried for one packing: about 20 ms, a quarter of a second on a busy machine."""


def pack(sizes: Sequence[int], capacities: Sequence[int], *, steps: int = STEPS) -> list[list[int]] | None:
    """Return the numbers of the pods on each socket; None where they do not fit, or no way is found within `steps`.

    Args:
        sizes: what each pod takes.
        capacities: what each socket has, in the same unit.
        steps: places that may be tried.
    """
    if sum(sizes) > sum(capacities):
        return None
    order, room = sorted(range(len(sizes)), key=lambda pod: -sizes[pod]), list(capacities)
    places: list[int] = []
    # What is left of the sockets says whether the others fit, whichever socket has it: what led nowhere is not tried
    # again.
    seen: set[tuple[int, ...]] = set()
    untried = [_tightest_first(room)]
    while len(places) < len(order):
        size = sizes[order[len(places)]]
        place = next((place for place in untried[-1] if room[place] >= size), None)
        if place is not None:
            steps -= 1
            if steps < 0:
                return None
            room[place] -= size
            left = len(places), *sorted(room)
            if left in seen:
                room[place] += size
                continue
            seen.add(left)
            places.append(place)
            untried.append(_tightest_first(room))
        elif places:
            untried.pop()
            place = places.pop()
            room[place] += sizes[order[len(places)]]
        else:
            return None
    groups: list[list[int]] = [[] for _ in capacities]
    for pod, place in zip(order, places, strict=True):
        groups[place].append(pod)
    return groups


def _tightest_first(room: Sequence[int]) -> Iterator[int]:
    """Places of sockets, those with least room first; of several alike one."""
    return iter([place for _, place in sorted({each: place for place, each in enumerate(room)}.items())])
