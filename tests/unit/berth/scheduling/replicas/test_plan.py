"""Whole plans: Online Boutique, optima by brute force, rules judged by plain loops, partial plans."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.brute import best
from bench.replicas_core.cases import Figures, boutique, cluster, figures
from bench.replicas_core.judge import Judge
from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.gang.budget import Budget
from berth.scheduling.planning import finish
from berth.scheduling.replicas.plan import Effort, plan
from berth.scheduling.replicas.problem import Edge, Nodes, PodSet, Prices, Problem, Workload
from berth.scheduling.replicas.result import Plan
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread
from tests.support import counts

OPTIMA: dict[str, float | None] = json.loads(
    (Path(__file__).parents[4] / "data" / "replica_optima.json").read_text(encoding="utf-8")
)["optima"]
"""Lowest objective of generated problems by seed, None where no placement exists: ``best`` found them."""
ZONE = Routing.SAME_ZONE
ONE_CORE = cluster(24, 4, cpu=1000)


def state_of(answer: Plan) -> list[tuple[int, ...]]:
    return [tuple(node for node, n in sorted(counts.items()) for _ in range(n)) for counts in answer.counts]


def group(*seeds: int) -> list[str]:
    return [str(seed) for seed in seeds if str(seed) in OPTIMA]


@pytest.mark.parametrize(
    ("problem", "cost", "node", "zone"),
    [
        pytest.param(boutique(), 0.45, 1.0, 0.0, id="3 replicas, all endpoints"),
        pytest.param(boutique(routing=ZONE), 0.0, 1.0, 1.0, id="3 replicas, PreferSameZone"),
        pytest.param(boutique(rule="required"), 0.67, 1.0, 0.0, id="3 replicas, required anti-affinity"),
        pytest.param(boutique(rule="preferred"), 0.67, 1.0, 0.0, id="3 replicas, preferred anti-affinity"),
        pytest.param(boutique(rule="required", routing=ZONE), 0.34, 1.0, 1.0, id="3 replicas, required, zone"),
        pytest.param(boutique(rule="hard", routing=ZONE), 0.0, 1.0, 1.0, id="3 replicas, hard spread, PreferSameZone"),
        pytest.param(boutique(rule="hard", limits=False), 36.7, 1.0, 1.0, id="3 replicas, hard spread over zones"),
        pytest.param(boutique(4), 0.66, 1.0, 0.0, id="4 replicas, all endpoints"),
        pytest.param(boutique(4, routing=ZONE), 0.0, 1.0, 1.0, id="4 replicas, PreferSameZone"),
        pytest.param(boutique(4, rule="required"), 0.75, 1.0, 0.0, id="4 replicas, required anti-affinity"),
        pytest.param(boutique(4, rule="hard", routing=ZONE), 0.0, 1.0, 1.0, id="4 replicas, hard, PreferSameZone"),
        pytest.param(boutique(nodes=ONE_CORE), 0.9, 1.0, 0.0, id="1 core, all endpoints"),
        pytest.param(boutique(nodes=ONE_CORE, routing=ZONE), 0.32, 1.0, 1.0, id="1 core, PreferSameZone"),
        pytest.param(boutique(nodes=ONE_CORE, rule="required"), 0.72, 1.0, 0.0, id="1 core, required anti-affinity"),
        pytest.param(boutique(nodes=ONE_CORE, rule="hard", routing=ZONE), 0.14, 1.0, 1.0, id="1 core, hard, zone"),
        pytest.param(boutique(nodes=cluster(200, 4)), 0.45, 1.0, 0.0, id="200 nodes, all endpoints"),
        pytest.param(boutique(nodes=cluster(200, 4), routing=ZONE), 0.0, 1.0, 1.0, id="200 nodes, PreferSameZone"),
    ],
)
def test_boutique_is_close_and_survives(problem: Problem, cost: float, node: float, zone: float) -> None:
    answer = finish(plan(problem))
    found: Figures = figures(problem, answer)
    assert answer.complete
    assert not Judge(problem).broken(state_of(answer))
    assert found.cost <= cost + 1e-9
    assert (found.survive_node, found.survive_zone) >= (node, zone)
    assert found.worst_load <= 1.1
    assert answer.objective == pytest.approx(Judge(problem).objective(state_of(answer)))
    if problem.workloads[0].routing is ZONE and not problem.rules:
        assert found.everywhere <= 2.51


def test_without_prices_of_survival_everything_is_on_one_node() -> None:
    problem = replace(boutique(), prices=Prices(survive_node=0, survive_zone=0))
    answer = finish(plan(problem))
    assert len({node for counts in answer.counts for node in counts}) == 1
    assert answer.objective == 0


def test_a_high_price_of_zones_survives_them() -> None:
    problem = replace(boutique(), prices=Prices(survive_zone=100))
    found = figures(problem, finish(plan(problem)))
    assert found.survive_zone == 1.0
    assert found.cost <= 2.23


@pytest.mark.parametrize("hard", [True, False], ids=["three zones by rule", "three zones by choice"])
def test_eleven_replicas_over_three_zones_carry_the_same_load(hard: bool) -> None:
    nodes = cluster(24, 3)
    cost = np.array([[1.0, 5, 5], [5, 1, 5], [5, 5, 1]])
    problem = boutique(11, nodes=replace(nodes, location_cost=cost), routing=ZONE, rule="hard" if hard else "none")
    found = figures(problem, finish(plan(problem)))
    assert found.worst_load <= 1.1
    assert (found.survive_node, found.survive_zone) == (1.0, 1.0)


@pytest.mark.parametrize("block", range(4))
def test_small_plans_are_found_and_optimal(block: int) -> None:
    found = optimal = 0
    plans = bests = 0.0
    for seed in group(*range(60 * block, 60 * (block + 1))):
        problem, lowest = small_problem(int(seed)), OPTIMA[seed]
        answer = finish(plan(problem))
        assert answer.complete is (lowest is not None), seed
        if lowest is None:
            continue
        judge = Judge(problem)
        value = judge.objective(state_of(answer))
        assert not math.isinf(value), (seed, judge.broken(state_of(answer)))
        assert value == pytest.approx(answer.objective), seed
        assert value >= lowest - 1e-5, seed
        found, optimal = found + 1, optimal + (value <= lowest + 1e-5)
        plans, bests = plans + value, bests + lowest
    assert optimal >= 0.98 * found
    assert plans <= 1.001 * bests


@pytest.mark.parametrize("seed", [3, 12, 32, 40])
def test_the_optima_are_those_of_brute_force(seed: int) -> None:
    lowest, state = best(small_problem(seed))
    assert (None if state is None else pytest.approx(lowest, abs=1e-5)) == OPTIMA[str(seed)]


@settings(max_examples=40, deadline=None)
@given(st.integers(1000, 100_000))
def test_no_plan_breaks_a_rule_whole_or_partial(seed: int) -> None:
    problem = small_problem(seed)
    judge = Judge(problem)
    for partial in (False, True):
        answer = finish(plan(problem, partial=partial, effort=Effort(kicks=2, rescue=2, steps=200)))
        assert answer.complete or partial or not any(answer.counts)
        placed = [sum(counts.values()) for counts in answer.counts]
        wanted = [pod_set.replicas for pod_set in problem.pod_sets]
        assert [n + m for n, m in zip(placed, answer.missing, strict=True)] == wanted
        if answer.complete or partial:
            assert judge.broken(state_of(answer)) == []


@pytest.mark.parametrize("seed", range(1, 8))
def test_a_plan_is_the_same_each_time(seed: int) -> None:
    problem = small_problem(seed)
    assert finish(plan(problem)).counts == finish(plan(problem)).counts


def tiny(rules: list[AntiAffinity | Affinity | Spread], *replicas: int, cpu: int = 2) -> Problem:
    """Three nodes in two zones, workloads without edges."""
    location = np.array([0, 0, 1])
    nodes = Nodes(
        free=np.full((3, 1), cpu, dtype=np.int64),
        location=location,
        location_cost=np.array([[1.0, 9.0], [9.0, 1.0]]),
        zone=location,
    )
    sets = [PodSet(workload=w, replicas=n, request=np.array([1])) for w, n in enumerate(replicas)]
    return Problem(nodes=nodes, workloads=[Workload(name=str(w)) for w in range(len(sets))], pod_sets=sets, rules=rules)


HOST, PLACE = np.arange(3), np.array([0, 0, 1])


@pytest.mark.parametrize(
    ("problem", "missing"),
    [
        pytest.param(tiny([], 7), (1,), id="no room for one"),
        pytest.param(tiny([AntiAffinity(domain=HOST, subjects=[0], selects=[0])], 5), (2,), id="one a node"),
        pytest.param(tiny([Spread(domain=PLACE, subjects=[0], selects=[0], max_skew=1)], 6), (1,), id="zones in step"),
        pytest.param(
            tiny([Spread(domain=PLACE, subjects=[0], selects=[0], max_skew=1, min_domains=3)], 6),
            (4,),
            id="too few zones",
        ),
        pytest.param(tiny([Affinity(domain=HOST, subjects=[0], selects=[0])], 3), (1,), id="all on one node"),
        pytest.param(tiny([Affinity(domain=HOST, subjects=[0], selects=[1])], 3, 1), (2, 0), id="near another"),
        pytest.param(
            tiny(
                [Affinity(domain=HOST, subjects=[0], selects=[1]), Affinity(domain=HOST, subjects=[1], selects=[0])],
                1,
                1,
            ),
            (1, 1),
            id="waiting for each other",
        ),
    ],
)
def test_partial_places_as_many_as_the_rules_allow(problem: Problem, missing: tuple[int, ...]) -> None:
    answer = finish(plan(problem, partial=True))
    assert answer.missing == missing
    assert Judge(problem).broken(state_of(answer)) == []
    whole = finish(plan(problem))
    assert whole.missing == tuple(pod_set.replicas for pod_set in problem.pod_sets)
    assert not any(whole.counts)


def test_without_time_a_plan_is_whole_all_the_same() -> None:
    clock = iter([0.0])
    answer = finish(plan(boutique(), budget=Budget(lambda: next(clock, 2.0), 1.0)))
    assert answer.complete
    assert answer.cut_short


def test_no_nodes_no_plan() -> None:
    nodes = cluster(0, 1)
    answer = finish(plan(boutique(nodes=nodes), partial=True))
    assert answer.missing == (3,) * 11


@pytest.mark.parametrize("replicas", [pytest.param(1, id="one of each, on one node"), pytest.param(8, id="many")])
@pytest.mark.parametrize("old", [pytest.param(0, id="callers"), pytest.param(1, id="endpoints")])
def test_a_plan_keeps_limits_of_what_goes_later(old: int, replicas: int) -> None:
    """All would be cheapest beside what the second of them calls, in the other region."""
    calls = [Edge(caller=0, callee=1, max_cost=5.0), Edge(caller=1, callee=2)]
    asked = counts.problem(replicas, replicas, 0, edges=calls, placed={2: {7: 1}})
    workloads = [
        replace(one, leaving={0: replicas} if number == old else {}) for number, one in enumerate(asked.workloads)
    ]
    answer = finish(plan(replace(asked, workloads=workloads)))
    assert answer.missing == (0, 0, 0)
    assert {node for nodes in answer.counts for node in nodes} <= {0, 1, 2, 3}


@pytest.mark.parametrize("old", [pytest.param(0, id="callers"), pytest.param(1, id="endpoints")])
def test_moves_see_limits_of_what_goes_later(old: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without exact search, and without pods being taken off a plan that breaks a rule."""
    monkeypatch.setattr("berth.scheduling.replicas.plan.repair", None)
    calls = [Edge(caller=0, callee=1, max_cost=5.0), Edge(caller=1, callee=2)]
    asked = counts.problem(8, 8, 0, edges=calls, placed={2: {7: 1}})
    workloads = [replace(one, leaving={0: 8} if number == old else {}) for number, one in enumerate(asked.workloads)]
    answer = finish(plan(replace(asked, workloads=workloads), effort=Effort(steps=0)))
    assert answer.complete
    assert {node for nodes in answer.counts for node in nodes} <= {0, 1, 2, 3}


def test_applications_one_after_another_leave_room_to_grow_in_every_zone() -> None:
    """Each is inside one zone, where a replica more is as near; none is full while others are empty."""
    nodes = counts.nodes(12)
    zones = []
    for _ in range(8):
        made = finish(plan(counts.problem(2, 2, 2, edges=[(0, 1), (1, 2)], on=nodes)))
        taken = np.zeros(nodes.size, dtype=np.int64)
        for placed in made.counts:
            for node, count in placed.items():
                taken[node] += count
        zones.append(set(nodes.zone[np.flatnonzero(taken)].tolist()))
        nodes = replace(nodes, free=nodes.free - taken[:, None])
    assert [len(each) for each in zones] == [1] * 8
    assert np.bincount(nodes.zone, weights=nodes.free[:, 0]).tolist() == [12, 12, 12, 12]


def test_slices_of_applications_one_after_another_leave_room_to_grow_in_every_zone() -> None:
    """Zones are as far from each other, and each application is in two of them: the first one was in all pairs."""
    cost = np.full((4, 4), 5.0)
    np.fill_diagonal(cost, 1.0)
    nodes = replace(counts.nodes(12), location_cost=cost)
    for _ in range(8):
        made = finish(plan(counts.problem(2, 2, 2, edges=[(0, 1), (1, 2)], on=nodes, routing=Routing.SAME_ZONE)))
        taken = np.zeros(nodes.size, dtype=np.int64)
        for placed in made.counts:
            assert len(set(nodes.zone[[*placed]].tolist())) == 2
            for node, count in placed.items():
                taken[node] += count
        nodes = replace(nodes, free=nodes.free - taken[:, None])
    assert np.bincount(nodes.zone, weights=nodes.free[:, 0]).tolist() == [12, 12, 12, 12]


KINDS = {"large": [20] * 3, "middling": [8] * 8, "small": [4] * 20, "remainders": [2] * 60, "one": [100]}
"""What nodes of a zone have; a slice of the application below takes six."""


@pytest.mark.parametrize("routing", [Routing.ALL, Routing.SAME_ZONE])
@pytest.mark.parametrize(("one", "other"), [*permutations(KINDS, 2)])
def test_zones_with_other_nodes_make_no_plan_worse(one: str, other: str, routing: Routing) -> None:
    """Two zones of each kind, at the same distance: the emptiest are not the best."""
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5)]

    def value(*kinds: str) -> float:
        zone = np.repeat(np.arange(2 * len(kinds)), [len(KINDS[kind]) for kind in kinds for _ in range(2)])
        cost = np.full((2 * len(kinds), 2 * len(kinds)), 5.0)
        np.fill_diagonal(cost, 1.0)
        free = np.array([[amount] for kind in kinds for _ in range(2) for amount in KINDS[kind]])
        on = Nodes(free=free, location=zone, location_cost=cost, zone=zone)
        asked = counts.problem(*[2] * 6, edges=edges, on=on, routing=routing)
        return finish(plan(asked, effort=Effort(steps=0))).objective

    assert value(one, other) <= min(value(one), value(other)) + 1e-6
