"""Where not all pods can have a node: as many as can be are placed, of most workloads, at the least cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count, groupby, product

import numpy as np
import pytest

from bench.replicas_core.brute import best
from bench.replicas_core.cases import boutique, cluster
from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.scheduling.gang.budget import UNLIMITED, Budget
from berth.scheduling.planning import finish
from berth.scheduling.replicas.hard import keeps_rules
from berth.scheduling.replicas.plan import plan
from berth.scheduling.replicas.problem import Problem
from berth.scheduling.replicas.rule import AntiAffinity
from berth.scheduling.replicas.search.draft import Draft
from berth.scheduling.replicas.search.leave_out import leave_out
from tests.support.counts import HOST, books_of, nodes, problem, state_of


def crowded(seed: int) -> Problem:
    """A generated problem with half of the room."""
    asked = small_problem(seed)
    return replace(asked, nodes=replace(asked.nodes, free=asked.nodes.free // 2))


def lack(asked: Problem, counts: Sequence[int]) -> tuple[int, int, int]:
    """Pods, workloads and dependencies that are missing where so many pods of each set are placed."""
    there = {number for number, one in enumerate(asked.workloads) if one.placed}
    there |= {one.workload for one, pods in zip(asked.pod_sets, counts, strict=True) if pods}
    edges = [edge for edge in asked.edges if not {edge.caller, edge.callee} <= there]
    return asked.pods - sum(counts), len(asked.workloads) - len(there), len(edges)


def least(asked: Problem) -> tuple[tuple[int, int, int], float]:
    """What has to be missing, and the least objective then, by trying all."""
    every = product(*(range(one.replicas + 1) for one in asked.pod_sets))
    by_lack = partial(lack, asked)
    for missing, group in groupby(sorted(every, key=by_lack), key=by_lack):
        lowest = np.inf
        for counts in group:
            sets = [replace(one, replicas=pods) for one, pods in zip(asked.pod_sets, counts, strict=True)]
            lowest = min(lowest, best(replace(asked, pod_sets=sets))[0])
        if np.isfinite(lowest):
            return missing, lowest
    raise AssertionError("nothing breaks no rule")


@pytest.mark.parametrize(
    "asked",
    [
        *(pytest.param(crowded(seed), id=f"one-more-has-a-node-{seed}") for seed in (12, 103, 370)),
        *(pytest.param(crowded(seed), id=f"one-more-workload-{seed}") for seed in (38, 73)),
        *(pytest.param(crowded(seed), id=f"cheaper-{seed}") for seed in (44, 77, 93)),
        *(pytest.param(small_problem(seed), id=f"by-rules-alone-{seed}") for seed in (5, 59, 103, 145)),
    ],
)
def test_nothing_is_left_out_that_need_not_be(asked: Problem) -> None:
    state = state_of(finish(plan(asked, partial=True)))
    missing, lowest = least(asked)
    assert lack(asked, [len(homes) for homes in state]) == missing
    assert Judge(asked).objective(state) == pytest.approx(lowest)


def short() -> Draft:
    """Three workloads of two replicas that share a port, on four nodes; nobody calls the first, which has both."""
    port = AntiAffinity(domain=HOST, subjects=[0, 1, 2], selects=[0, 1, 2])
    draft = Draft(books_of(problem(2, 2, 2, edges=[(1, 2)], rules=[port], on=nodes([1, 1, 1, 1, 0, 0, 0, 0]))))
    for row, node in ((0, 0), (0, 1), (1, 2)):
        draft.put(row, node)
    return draft


def test_a_plan_of_more_workloads_takes_the_place_of_one_of_fewer() -> None:
    draft = short()
    finish(leave_out(draft, UNLIMITED))
    assert sorted(draft.missing) == [0, 1, 1]
    assert keeps_rules(draft.books)


@pytest.mark.parametrize("looks", range(0, 40, 4))
def test_however_soon_time_is_over_a_plan_gets_no_worse(looks: int) -> None:
    draft, clock = short(), count()
    before = draft.standing([0, 1, 2])
    finish(leave_out(draft, Budget(lambda: float(next(clock)), float(looks))))
    assert draft.standing([0, 1, 2]) <= before
    assert keeps_rules(draft.books)


def test_of_many_ways_none_is_looked_at() -> None:
    asked = boutique(3, nodes=cluster(4, 2), limits=False)
    draft = Draft(books_of(asked))
    draft.put(0, 0)
    clock = count()
    finish(leave_out(draft, Budget(lambda: float(next(clock)), 1e9)))
    assert next(clock) <= 2
    assert sum(draft.missing) == asked.pods - 1


def test_where_nodes_have_no_room_for_all_no_plan_of_all_is_searched() -> None:
    """33 pods on 12 nodes took three times their time: 65,000 looks at the clock."""
    clock = count()
    asked = boutique(3, nodes=cluster(12, 2, 310), limits=False)
    made = finish(plan(asked, partial=True, budget=Budget(lambda: float(next(clock)), 1e9)))
    assert 0 < sum(made.missing) <= 2
    assert next(clock) < 20_000
