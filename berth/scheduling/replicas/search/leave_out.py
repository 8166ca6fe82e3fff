"""Which pods to leave out where not all can have a node: exact search of each way, where there are few.

Without a plan of all pods the other searches end with what they come upon: a pod is left out that has a node in another
plan, or one too many of a workload without which another would have a replica.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, islice

import numpy as np

from berth.scheduling.gang.budget import BEFORE_LONG, Budget
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.hard import keeps_rules
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.search.draft import Draft, Shortage, lacking
from berth.scheduling.replicas.search.exact import LARGEST, Exact, unpunished, without_room

MOST = 60
"""Ways to leave out pods that are looked at, while there is time: 10 ms for each of few pods, 0.6 s of forty."""
STEPS = 200
"""Of each search; a hundred at the most where fewer than ten pods are placed."""


def leave_out(draft: Draft, budget: Budget) -> Generator[None, None, None]:
    """Make a plan without some pods the best one, as far as time and steps suffice; none that breaks a rule."""
    model, sets = draft.model, range(len(draft.missing))
    if sum(model.replicas) * model.size > LARGEST or draft.books.interference.active or budget.over:
        return
    ways = list(islice(_ways(draft), MOST + 1))
    if len(ways) > MOST or not keeps_rules(draft.books):
        return
    found, lowest = draft.shortage(sets), unpunished(draft.books)
    for shortage, counts in sorted(ways):
        if shortage > found or budget.over:
            return
        yield from budget.pause(BEFORE_LONG)
        asked = [replace(model.problem.pod_sets[row], replicas=counts[row]) for row in sets]
        fewer = Model(replace(model.problem, pod_sets=asked), model.columns)
        if without_room(fewer):
            continue
        search = Exact(Draft(Books(fewer)), budget, STEPS)
        search.lowest = lowest if shortage == found else np.inf
        if not (yield from search.run()):
            return
        if search.best is not None:
            draft.restore(sets, search.best)
            found, lowest = shortage, search.lowest


def _ways(draft: Draft) -> Iterator[tuple[Shortage, Sequence[int]]]:
    """What is missing, and how many pods of each set are not, for each way to leave out some, but no more."""
    model = draft.model
    waiting = [row for row, count in enumerate(model.replicas) if count]
    placed = set(np.flatnonzero(model.placed.any(axis=1)).tolist())
    for pods in range(1, sum(draft.missing) + 1):
        for out in map(Counter, combinations_with_replacement(waiting, pods)):
            counts = [count - out[row] for row, count in enumerate(model.replicas)]
            if min(counts) >= 0:
                there = placed.union(model.workload[row] for row in waiting if counts[row])
                yield lacking(model, range(len(counts)), pods, there), counts
