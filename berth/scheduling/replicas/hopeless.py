"""Pods whose required affinity nobody can meet, as where two workloads each want to come after the other.

Orders of binding are judged for whole plans only, so that a search would try all plans before it knew. And exact search
finds plans of all pods alone, so that without these it finds the best one of the others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from operator import add
from typing import Any

import numpy as np

from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.problem import PodSet, Problem, Rule
from berth.scheduling.replicas.result import Plan
from berth.scheduling.replicas.rule import Affinity


def without_hopeless(problem: Problem, budget: Budget, *, whole: bool = True) -> Generator[None, None, Problem]:
    """Leave out, in turns, the pods that can never come; the same problem where there are none.

    Args:
        problem: what is to be placed.
        budget: time.
        whole: whether only plans count that place all pods: such pods are left then, without a node that they may use.
    """
    hopeless = yield from never_come(problem.pod_sets, problem.rules, budget)
    if not hopeless:
        return problem
    out: dict[str, Any] = {"mask": np.zeros(problem.nodes.size, dtype=np.bool_)} if whole else {"replicas": 0}
    sets = [replace(each, **out) if row in hopeless else each for row, each in enumerate(problem.pod_sets)]
    return replace(problem, pod_sets=sets)


def with_hopeless(plan: Plan, asked: Problem, planned: Problem) -> Plan:
    """Make a plan of what `without_hopeless` left one of all that was asked, where the others have no node."""
    if asked.pods == planned.pods:
        return plan
    out = [one.replicas - other.replicas for one, other in zip(asked.pod_sets, planned.pod_sets, strict=True)]
    missing, blocked = (tuple(map(add, each, out)) for each in (plan.missing, plan.blocked))
    return replace(plan, missing=missing, blocked=blocked)


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
    if not unmet:
        return set()
    come = [row for row in range(len(pod_sets)) if not unmet[row]]
    while come:
        yield from budget.pause()
        for waiting in followers.pop(come.pop(), ()):
            unmet.subtract(waiting)
            come += [row for row in waiting if not unmet[row]]
            waiting.clear()  # one of those that a rule selects is enough
    return {row for row, count in unmet.items() if count}
