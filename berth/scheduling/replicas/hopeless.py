"""Pods whose required affinity nobody can meet, as where two workloads each want to come after the other.

Orders of binding are judged for whole plans only, so that a search would try all plans before it knew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from berth.scheduling.replicas.problem import PodSet, Problem, Rule
from berth.scheduling.replicas.rule import Affinity


def without_hopeless(problem: Problem) -> Problem:
    """The problem with no node for pods that can never come; the same one where there are none."""
    hopeless = never_come(problem.pod_sets, problem.rules)
    if not hopeless:
        return problem
    nowhere = np.zeros(problem.nodes.size, dtype=np.bool_)
    sets = [replace(each, mask=nowhere) if row in hopeless else each for row, each in enumerate(problem.pod_sets)]
    return replace(problem, pod_sets=sets)


def never_come(pod_sets: Sequence[PodSet], rules: Iterable[Rule]) -> set[int]:
    """Find the pod sets that wait for each other, or for those that do; the first of its kind waits for nobody."""
    unmet = [0] * len(pod_sets)
    awaited: defaultdict[int, list[list[int]]] = defaultdict(list)  # who waits for the pod set, by rule
    for rule in rules:
        if isinstance(rule, Affinity) and rule.weight is None and not (rule.placed is not None and rule.placed.any()):
            selected = set(rule.selects)
            waiting = [row for row in rule.subjects if row not in selected]
            for row in waiting:
                unmet[row] += 1
            for row in selected if waiting else ():
                awaited[row].append(waiting)
    come = [row for row, each in enumerate(pod_sets) if each.replicas and not unmet[row]]
    while come:
        for waiting in awaited.pop(come.pop(), ()):
            for row in waiting:
                unmet[row] -= 1
                if not unmet[row] and pod_sets[row].replicas:
                    come.append(row)
            waiting.clear()  # one of those that a rule selects is enough
    return {row for row, rules_unmet in enumerate(unmet) if rules_unmet}
