"""One more pod: the change of the objective on every node, judged by plain loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.scheduling.replicas.one_more import one_more
from berth.scheduling.replicas.problem import Problem
from berth.scheduling.replicas.rule import Spread


def soft(problem: Problem) -> Problem:
    """Without the hard rules, which filters judge."""
    rules = [rule for rule in problem.rules if (not rule.hard if isinstance(rule, Spread) else rule.weight is not None)]
    edges = [replace(edge, max_cost=np.inf) for edge in problem.edges]
    return replace(problem, rules=rules, edges=edges)


@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_change_of_the_joint_objective(seed: int) -> None:
    whole = small_problem(seed)
    for row in range(len(whole.pod_sets)):
        problem = soft(whole)
        changes = one_more(problem, row)
        charge = problem.pod_sets[row].cost
        judge = Judge(problem)
        nothing: list[tuple[int, ...]] = [()] * len(problem.pod_sets)
        before = judge.objective(nothing)
        for node in range(problem.nodes.size):
            total = sum(change[node] for change in changes.values()) + (0.0 if charge is None else charge[node])
            state = [*nothing[:row], (node,), *nothing[row + 1 :]]
            if np.isfinite(judge.objective(state)):  # room and masks
                assert judge.objective(state) - before == pytest.approx(total)


def test_hard_rules_are_nobodys_cost() -> None:
    for seed in range(60):
        problem = small_problem(seed)
        edges = [replace(edge, max_cost=np.inf) for edge in problem.edges]
        with_rules, without = one_more(replace(problem, edges=edges)), one_more(soft(problem))
        assert with_rules.keys() == without.keys()
        assert all(np.allclose(with_rules[term], without[term]) for term in without)
