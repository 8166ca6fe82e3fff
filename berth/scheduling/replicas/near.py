"""Nodes where pods can be near those that they must be near: a chain of required affinity goes where it ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Sequence
from dataclasses import replace

import numpy as np

from berth.scheduling.gang.budget import Budget
from berth.scheduling.replicas.company import Company
from berth.scheduling.replicas.problem import Bools, PodSet, Problem
from berth.scheduling.replicas.rule import Affinity


def near_enough(problem: Problem, budget: Budget, *, whole: bool = True) -> Generator[None, None, Problem]:
    """Narrow masks to the domains where some pod is or can be that a pod must be near, in turns.

    There must be room there for a pod of each step of its chain, and for all pods of chains that end at a single one.
    No plan that keeps the rules is lost. Without time left, some masks stay wider than they could be.

    Args:
        problem: what is to be placed.
        budget: time.
        whole: whether only plans count that place all pods.
    """
    rules = [rule for rule in problem.rules if isinstance(rule, Affinity) and rule.weight is None]
    if not rules:
        return problem
    sets = problem.pod_sets
    able, narrowed = list[Bools](), dict[int, Bools]()
    for pod_set in sets:
        yield from budget.pause()
        able.append(_able(problem, pod_set))
    asked_by: defaultdict[int, list[int]] = defaultdict(list)
    for number, rule in enumerate(rules):
        for row in rule.selects:
            asked_by[row].append(number)
    company = Company(problem, rules)
    ties = company.tied() if whole else []
    for number, tied in enumerate(ties, start=len(rules)):
        for row in tied.rows:
            asked_by[row].append(number)
    queue = dict.fromkeys([*range(len(rules), len(rules) + len(ties)), *range(len(rules))])
    while queue and not budget.over:
        yield from budget.pause()
        number = next(iter(queue))
        del queue[number]
        near: dict[int, Bools] = {}
        if number >= len(rules):
            near = dict.fromkeys(ties[number - len(rules)].rows, company.holds(ties[number - len(rules)], able))
        else:
            rule = rules[number]
            # One that is selected itself may be the first.
            subjects = set(rule.subjects).difference(rule.selects)
            if subjects:
                there = _near(rule, able, sets, np.any([able[row] for row in subjects], axis=0))
                near = {row: there & company.fits(row, rule.domain) for row in subjects}
        for row, here in near.items():
            if (able[row] & ~here).any():
                able[row] = narrowed[row] = able[row] & here
                queue.update(dict.fromkeys(asked_by[row]))
    if not narrowed:
        return problem
    return replace(problem, pod_sets=[replace(one, mask=narrowed.get(row, one.mask)) for row, one in enumerate(sets)])


def _able(problem: Problem, pod_set: PodSet) -> Bools:
    """bool[N], nodes with room for a pod of the set."""
    free = problem.nodes.free
    able: Bools = ((free >= pod_set.request) | (pod_set.request == 0)).all(axis=1)
    return able if pod_set.mask is None else able & pod_set.mask


def _near(rule: Affinity, able: Sequence[Bools], sets: Sequence[PodSet], wanted: Bools) -> Bools:
    """bool[N], of the nodes that are wanted those in whose domain a pod that the rule selects is or can be."""
    there = np.zeros(len(rule.domain), dtype=np.bool_) if rule.placed is None else rule.placed > 0
    for row in rule.selects:
        if sets[row].replicas:
            there = there | able[row]
            if not (wanted & ~there).any():
                break
    near = np.zeros(int(rule.domain.max(initial=-1)) + 2, dtype=np.bool_)
    near[rule.domain[there]] = True
    near[-1] = False
    found: Bools = near[rule.domain]
    return found
