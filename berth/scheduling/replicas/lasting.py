"""Which of a set's planned nodes its pods should keep longest, for the day when its workload has fewer replicas.

Which of several identical pods goes to which node is nothing to a plan, but those that stay when a ReplicaSet shrinks
are known ahead. So nodes are ranked by how good the rest of the plan is without them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Sequence

import numpy as np

from berth.scheduling.gang.budget import BEFORE_LONG, Budget
from berth.scheduling.replicas.problem import Counts
from berth.scheduling.replicas.search.draft import Draft

MOST = 600
"""Pod sets times nodes that are tried at most: more is not worth the time."""


def lasting_first(draft: Draft, budget: Budget) -> Generator[None, None, list[list[int]]]:
    """Columns of each pod set, those first that its pods should keep longest; the draft is in the end as it was.

    First no two pods of a set share a node, as a ReplicaSet deletes those before others. Then a node or a location is
    emptied without which the objective is the least, and so on; the last pod of a set stays. Or columns come zone by
    zone, or zones in turns, where that is better for two pods of each set: to empty one place after another keeps two
    zones where one alone is better, and on many nodes it takes too long. Where time is over they are in their order.
    """
    rows = range(len(draft.missing))
    planned = draft.snapshot(rows)
    found = [np.flatnonzero(counts).tolist() for counts in planned]
    places = _places(draft)
    if budget.cut_short:
        return found
    ways: list[list[list[int]]] = []
    if len(rows) * len(places) * (len(places) + 1) // 2 <= MOST:
        emptied = yield from _emptied(draft, found, places, budget)
        draft.restore(rows, planned)
        if emptied is None:
            return found
        ways.append(emptied)
    ways += _by_zones(draft, found)
    values: list[float] = []
    for order in ways:
        yield from budget.pause(BEFORE_LONG)
        values.append(_of_two(draft, order, planned))
    return ways[values.index(min(values))]


def _emptied(
    draft: Draft, columns: Sequence[list[int]], places: Sequence[frozenset[int]], budget: Budget
) -> Generator[None, None, list[list[int]] | None]:
    """Columns of each pod set, those first that are emptied last where always the least is lost; None out of time.

    The draft has fewer pods afterwards.
    """
    found, last = [*columns], [list[int]() for _ in columns]
    rows = range(len(found))
    draft.restore(rows, np.minimum(draft.snapshot(rows), 1))
    while True:
        values: dict[frozenset[int], float] = {}
        for place in places:
            yield from budget.pause()
            if budget.over:
                return None
            if leaving := _leaving(found, place):
                taken = draft.clear(leaving, sorted(place))
                values[place] = round(draft.books.value(), 6)
                draft.change(taken)
        if not values:
            return [[*columns, *reversed(gone)] for columns, gone in zip(found, last, strict=True)]
        emptied = min(values, key=lambda place: values[place])
        leaving = _leaving(found, emptied)
        draft.clear(leaving, sorted(emptied))
        for row in leaving:
            last[row] += [column for column in reversed(found[row]) if column in emptied]
            found[row] = [column for column in found[row] if column not in emptied]


def _by_zones(draft: Draft, found: Sequence[Sequence[int]]) -> tuple[list[list[int]], list[list[int]]]:
    """The columns of each pod set zone by zone, the zone with most first; and one of each zone before any other.

    In a zone those come first that most pod sets have: so the last pods of all of them are near each other.
    """
    by_zone, in_turns = list[list[int]](), list[list[int]]()
    sets = Counter(column for columns in found for column in columns)
    for unsorted in found:
        columns = sorted(unsorted, key=lambda column: -sets[column])
        zones, seen = draft.model.zone[columns].tolist(), Counter[int]()
        most, places = Counter(zones), list[tuple[int, int, int, int]]()
        for zone, column in zip(zones, columns, strict=True):
            places.append((seen[zone], -most[zone], zone, column))
            seen[zone] += 1
        by_zone.append([column for *_, column in sorted(places, key=lambda place: (*place[1:3], place[0]))])
        in_turns.append([column for *_, column in sorted(places)])
    return by_zone, in_turns


def _of_two(draft: Draft, order: Sequence[Sequence[int]], planned: Counts) -> float:
    """The objective with a pod on the first two columns of each pod set; the draft is as it was afterwards."""
    rows, kept = range(len(order)), np.zeros_like(planned)
    for row in rows:
        kept[row, order[row][:2]] = 1
    draft.restore(rows, kept)
    value = round(draft.books.value(), 6)
    draft.restore(rows, planned)
    return value


def _places(draft: Draft) -> list[frozenset[int]]:
    """Columns that may be emptied together: each that is used, the last first, and those of each location."""
    used = np.flatnonzero(draft.books.planned.any(axis=0)).tolist()
    of_location: defaultdict[int, list[int]] = defaultdict(list)
    for column in used:
        of_location[int(draft.model.location[column])].append(column)
    return [frozenset((column,)) for column in reversed(used)] + [
        frozenset(columns) for columns in of_location.values() if len(columns) > 1
    ]


def _leaving(found: Sequence[Sequence[int]], place: frozenset[int]) -> list[int]:
    """Pod sets that have pods in a place and elsewhere."""
    return [row for row, columns in enumerate(found) if 0 < len(place.intersection(columns)) < len(columns)]
