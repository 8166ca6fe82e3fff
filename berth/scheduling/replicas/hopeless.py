"""Pods whose required affinity nobody can meet, as where two workloads each want to come after the other.

Orders of binding are judged for whole plans only, so that a search would try all plans before it knew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace

import numpy as np

from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.problem import PodSet, Problem, Rule
from berth.scheduling.replicas.rule import Affinity


def without_hopeless(problem: Problem, budget: Budget) -> Generator[None, None, Problem]:
    """Make the problem with no node for pods that can never come, in turns; the same one where there are none."""
    hopeless = yield from never_come(problem.pod_sets, problem.rules, budget)
    if not hopeless:
        return problem
    nowhere = np.zeros(problem.nodes.size, dtype=np.bool_)
    sets = [replace(each, mask=nowhere) if row in hopeless else each for row, each in enumerate(problem.pod_sets)]
    return replace(problem, pod_sets=sets)


def never_come(pod_sets: Sequence[PodSet], rules: Iterable[Rule], budget: Budget) -> Generator[None, None, set[int]]:
    """Find the pod sets that wait for each other, or for those that do; the first of its kind waits for nobody.

    Chains are followed in turns, from those who wait for nobody on: a group may have thousands of steps.
    """
    unmet = Counter[int]()
    followers: defaultdict[int, list[set[int]]] = defaultdict(list)
    for rule in rules:
        yield from budget.pause()
        if not isinstance(rule, Affinity) or rule.weight is not None or (rule.placed is not None and rule.placed.any()):
            continue
        waiting = set(rule.subjects).difference(rule.selects)
        unmet.update(waiting)
        for row in rule.selects if waiting else ():
            if pod_sets[row].replicas:
                followers[row].append(waiting)
    come = [row for row in range(len(pod_sets)) if not unmet[row]]
    while come:
        yield from budget.pause()
        for waiting in followers.pop(come.pop(), ()):
            unmet.subtract(waiting)
            come += [row for row in waiting if not unmet[row]]
            waiting.clear()  # one of those that a rule selects is enough
    return {row for row, count in unmet.items() if count}
