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
    wants: defaultdict[int, list[Affinity]] = defaultdict(list)
    for rule in rules:
        if isinstance(rule, Affinity) and rule.weight is None:
            for row in rule.subjects:
                wants[row].append(rule)
    come = {row for row, each in enumerate(pod_sets) if each.replicas and row not in wants}
    waiting = set(wants)

    def may_come(row: int) -> bool:
        return all(
            row in rule.selects or not come.isdisjoint(rule.selects) or (rule.placed is not None and rule.placed.any())
            for rule in wants[row]
        )

    while more := {row for row in waiting if may_come(row)}:
        come |= {row for row in more if pod_sets[row].replicas}
        waiting -= more
    return waiting
