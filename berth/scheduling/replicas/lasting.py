"""Which of a set's planned nodes its pods should keep longest, for the day when its workload has fewer replicas.

Which of several identical pods goes to which node is nothing to a plan, but those that stay when a ReplicaSet shrinks
are known ahead. So nodes are ranked by how good the rest of the plan is without them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Sequence

import numpy as np

from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.search.draft import Draft

MOST = 600
"""Pod sets times nodes that are tried at most: more is not worth the time."""


def lasting_first(draft: Draft, budget: Budget) -> Generator[None, None, list[list[int]]]:
    """Columns of each pod set, those first that its pods should keep longest; the draft is in the end as it was.

    First no two pods of a set share a node, as a ReplicaSet deletes those before others. Then a node or a location is
    emptied without which the objective is the least, and so on; the last pod of a set stays. Where pods are on many
    nodes, and where time is over, columns are in their order.
    """
    rows = range(len(draft.missing))
    planned = draft.snapshot(rows)
    found = [np.flatnonzero(counts).tolist() for counts in planned]
    places = _places(draft)
    if budget.cut_short or len(rows) * len(places) * (len(places) + 1) // 2 > MOST:
        return found
    draft.restore(rows, np.minimum(planned, 1))
    last: list[list[int]] = [[] for _ in found]
    while True:
        values: dict[frozenset[int], float] = {}
        for place in places:
            yield from budget.pause()
            if budget.over:
                draft.restore(rows, planned)
                return [np.flatnonzero(counts).tolist() for counts in planned]
            if leaving := _leaving(found, place):
                taken = draft.clear(leaving, sorted(place))
                values[place] = round(draft.books.value(), 6)
                draft.change(taken)
        if not values:
            draft.restore(rows, planned)
            return [[*columns, *reversed(gone)] for columns, gone in zip(found, last, strict=True)]
        emptied = min(values, key=lambda place: values[place])
        leaving = _leaving(found, emptied)
        draft.clear(leaving, sorted(emptied))
        for row in leaving:
            last[row] += [column for column in reversed(found[row]) if column in emptied]
            found[row] = [column for column in found[row] if column not in emptied]


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
