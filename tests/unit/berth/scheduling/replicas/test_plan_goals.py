"""What plans reach beside bounds that share no code with the planner: growth, and nodes too small for a slice."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from bench.replicas_core.cases import BOUTIQUE, CALLS, boutique, cluster, figures, mesh
from berth.network.routing import Routing
from berth.scheduling.gang.budget import Budget
from berth.scheduling.planning import finish
from berth.scheduling.replicas import plan as planning
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.plan import MANY, MANY_RESUMED, Effort, plan, starts_to_improve
from berth.scheduling.replicas.problem import Problem
from berth.scheduling.replicas.result import Plan
from berth.scheduling.replicas.search.draft import Draft
from berth.scheduling.replicas.search.fill import fill_slices
from berth.scheduling.replicas.search.patterns import Pattern
from berth.scheduling.replicas.search.template import Part

NAMES = ["frontend", "checkout", "cart", "catalog", "recommendation", "currency", "shipping", "ad", "redis", "email"]
NAMES.append("payment")
EDGES = [(NAMES.index(caller), NAMES.index(callee)) for caller, callees in CALLS.items() for callee in callees]


def least_cost_inside_a_zone(replicas: int, cpu: int, lowest: float, nodes: int = 6) -> float:
    """Sum over the edges of what calls cost inside a zone at least, by trying all placements of one or two replicas.

    `lowest` is a cost that is known to be beaten.
    """
    need = [BOUTIQUE[name][0] for name in NAMES]
    free = [cpu] * nodes
    homes: list[tuple[int, ...]] = [(-1, -1)] * len(NAMES)
    callers = [[min(edge) for edge in EDGES if max(edge) == number] for number in range(len(NAMES))]

    def place(number: int, cost: float, used: int) -> None:
        nonlocal lowest
        if number == len(NAMES):
            lowest = min(lowest, cost)
            return
        for one in range(min(nodes, used + 1)):
            for other in [one] if replicas == 1 else range(one, min(nodes, max(used, one + 1) + 1)):
                ends = (one, other)[:replicas]
                if any(free[node] < need[number] * ends.count(node) for node in ends):
                    continue
                pairs = sum(node != home for near in callers[number] for node in ends for home in homes[near])
                total = cost + pairs / replicas**2
                if total < lowest:
                    for node in ends:
                        free[node] -= need[number]
                    homes[number] = ends
                    place(number + 1, total, max(used, other + 1))
                    for node in ends:
                        free[node] += need[number]

    place(0, 0.0, 0)
    return lowest


def test_slices_on_small_nodes_cost_what_they_must_at_even_load() -> None:
    """Three replicas survive a zone and share the load evenly only as two in one zone and one in another."""
    problem = boutique(3, nodes=cluster(24, 4, cpu=1000), routing=Routing.SAME_ZONE, limits=False)
    bound = (2 * least_cost_inside_a_zone(2, 1000, 6.01) + least_cost_inside_a_zone(1, 1000, 2.01)) / 3 / len(EDGES)
    found = figures(problem, finish(plan(problem)))
    assert bound == pytest.approx(14 / 45)
    assert found.cost == pytest.approx(bound)
    assert found.worst_load == pytest.approx(1.0)
    assert (found.survive_node, found.survive_zone) == (1.0, 1.0)


WORTH = {"frontend": 5, "checkout": 5, "catalog": 2, "cart": 1}
"""Dual prices of the program that fills nodes of one core with as many edges as possible."""


def test_no_node_of_one_core_has_more_calls_inside_than_its_workloads_are_worth() -> None:
    """By all subsets: so such nodes, with one replica of a workload each, have 13 edges for every replica at most."""
    for size in range(1, len(NAMES) + 1):
        for content in itertools.combinations(range(len(NAMES)), size):
            inside = sum(caller in content and callee in content for caller, callee in EDGES)
            fits = sum(BOUTIQUE[NAMES[workload]][0] for workload in content) <= 1000
            assert not fits or inside <= sum(WORTH.get(NAMES[workload], 0) for workload in content)
    assert sum(WORTH.values()) == 13


@pytest.mark.parametrize(
    ("routing", "rule", "bound"),
    [
        # 13 of 15 edges for each of three replicas are 39 of 135 pairs that cost nothing, the others 1 at least.
        pytest.param(Routing.ALL, "required", (15 - 39 / 9) / 15, id="required anti-affinity by host"),
        # One endpoint in a zone: 39 of 45 callers have it on their node, the others pay 1 at least.
        pytest.param(Routing.SAME_ZONE, "hard", (45 - 39) / 45, id="hard spread, PreferSameZone"),
    ],
)
def test_one_replica_a_node_costs_no_more_than_it_must(routing: Routing, rule: str, bound: float) -> None:
    problem = boutique(3, nodes=cluster(24, 4, cpu=1000), routing=routing, rule=rule, limits=False)
    found = figures(problem, finish(plan(problem)))
    assert found.cost == pytest.approx(bound)
    assert found.worst_load == pytest.approx(1.0)
    assert found.survive_node == 1.0


def grown(first: Problem, answer: Plan) -> Problem:
    """As many replicas again, on top of a plan."""
    free = first.nodes.free.copy()
    for pod_set, counts in zip(first.pod_sets, answer.counts, strict=True):
        for node, count in counts.items():
            free[node] -= count * pod_set.request
    placed = [replace(w, placed=counts) for w, counts in zip(first.workloads, answer.counts, strict=True)]
    return replace(first, workloads=placed, nodes=replace(first.nodes, free=free))


@pytest.mark.parametrize(
    ("routing", "factor"),
    [pytest.param(Routing.ALL, 1.1, id="all endpoints"), pytest.param(Routing.SAME_ZONE, 1.0, id="PreferSameZone")],
)
def test_a_grown_application_is_as_good_as_one_from_scratch(routing: Routing, factor: float) -> None:
    first = boutique(3, routing=routing)
    after = finish(plan(grown(first, finish(plan(first)))))
    scratch = finish(plan(boutique(6, routing=routing)))
    assert after.complete
    assert all(after.survives_node)
    assert after.objective <= factor * scratch.objective + 1e-9


def bound_in_part(first: Problem, answer: Plan, location: int, pods: int) -> Problem:
    """The same application with the first so many pods of a plan in one location bound, and all others waiting."""
    free = first.nodes.free.copy()
    workloads, sets = list(first.workloads), list(first.pod_sets)
    planned = [(row, node) for row, counts in enumerate(answer.counts) for node in sorted(counts)]
    for row, node in [each for each in planned if first.nodes.location[each[1]] == location][:pods]:
        workloads[row] = replace(workloads[row], placed={node: 1})
        sets[row] = replace(sets[row], replicas=sets[row].replicas - 1)
        free[node] -= sets[row].request
    return replace(first, workloads=workloads, pod_sets=sets, nodes=replace(first.nodes, free=free))


@pytest.mark.parametrize("pods", [2, 4, 5, 7, 10])
@pytest.mark.parametrize("cpu", [1000, 2000])
@pytest.mark.parametrize("location", [0, 1])
def test_an_application_that_was_bound_in_part_ends_nearly_as_well_as_from_scratch(
    location: int, cpu: int, pods: int
) -> None:
    """Slices in other zones have endpoints of their own, though one pod alone would call those that are bound."""
    first = boutique(3, nodes=cluster(24, 4, cpu=cpu), routing=Routing.SAME_ZONE, limits=False)
    scratch = finish(plan(first))
    after = finish(plan(bound_in_part(first, scratch, location, pods)))
    assert after.complete
    assert all(after.survives_zone)
    assert after.objective <= 1.5 * scratch.objective


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        pytest.param(boutique(), {1, 2}, id="two plans are better than the third pattern"),
        pytest.param(mesh(33, 3, nodes=cluster(24, 4), routing=Routing.SAME_ZONE), {2}, id="two ways of the best"),
        pytest.param(boutique(nodes=cluster(24, 4, cpu=300)), {1, 2, 3}, id="too little room for what they promise"),
    ],
)
def test_patterns_that_promise_worse_than_plans_found_are_not_filled(
    problem: Problem, expected: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    widths = set[int]()

    def fill(draft: Draft, budget: Budget, pattern: Pattern, parts: Sequence[Part]) -> Generator[None, None, None]:
        widths.add(len(pattern))
        return fill_slices(draft, budget, pattern, parts)

    monkeypatch.setattr(planning, "fill_slices", fill)
    assert finish(plan(problem)).complete
    assert widths == expected


@pytest.mark.parametrize(
    ("replicas", "routing", "placed", "starts"),
    [
        pytest.param(3, Routing.SAME_ZONE, 1, Effort().resumed, id="bound in part, calls kept near"),
        pytest.param(3, Routing.SAME_ZONE, 0, Effort().improved, id="from scratch"),
        pytest.param(3, Routing.ALL, 1, Effort().improved, id="bound in part, calls to all endpoints"),
        pytest.param(MANY_RESUMED // 11 + 1, Routing.SAME_ZONE, 1, Effort().improved, id="bound in part, large"),
        pytest.param(MANY // 11 + 1, Routing.SAME_ZONE, 1, 1, id="bound in part, very large"),
        pytest.param(MANY // 11 + 1, Routing.ALL, 0, 1, id="from scratch, very large"),
    ],
)
def test_more_starts_are_improved_where_that_pays(replicas: int, routing: Routing, placed: int, starts: int) -> None:
    asked = boutique(replicas, routing=routing)
    there = {0: placed} if placed else {}
    workloads = [replace(asked.workloads[0], placed=there), *asked.workloads[1:]]
    model = Model(replace(asked, workloads=workloads), np.arange(asked.nodes.size))
    assert starts_to_improve(model, range(len(asked.pod_sets)), Effort()) == starts
