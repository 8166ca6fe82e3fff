"""Terms of several workloads for many states at once, beside the judge's loops over pods, state by state."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.judge import Judge, State
from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.replicas.problem import Rule
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread
from berth.scheduling.replicas.search.joint_rules import load_part, rule_part
from tests.support.counts import ZONE, books_of, problem, seeds_of, with_rules

STATES = 12


def states_of(replicas: list[int], size: int, rng: np.random.Generator) -> tuple[dict[int, np.ndarray], list[State]]:
    """Counts of all pod sets, float64[K] but for one, which is float64[P, K], and the same pod by pod."""
    varying = int(rng.integers(len(replicas)))
    homes = [tuple(sorted(rng.integers(0, size, count).tolist())) for count in replicas]
    ways = [tuple(sorted(rng.integers(0, size, replicas[varying]).tolist())) for _ in range(STATES)]
    counts = {row: np.bincount(nodes, minlength=size).astype(np.float64) for row, nodes in enumerate(homes)}
    counts[varying] = np.array([np.bincount(way, minlength=size) for way in ways], dtype=np.float64)
    return counts, [[way if row == varying else nodes for row, nodes in enumerate(homes)] for way in ways]


KINDS = [(AntiAffinity, False), (AntiAffinity, True), (Affinity, False), (Spread, False), (Spread, True)]
NAMES = {AntiAffinity: "anti-affinity", Affinity: "affinity", Spread: "spread"}


@pytest.mark.parametrize(
    ("kind", "required"), KINDS, ids=lambda value: value.__name__ if isinstance(value, type) else f"required={value}"
)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_rules_cost_what_they_cost_pod_by_pod(kind: type[Rule], required: bool, data: st.DataObject) -> None:
    seed = data.draw(st.sampled_from(seeds_of(cast(Any, kind), required=required)))
    asked = with_rules(seed, kind, required=required)
    model, rng = books_of(asked).model, np.random.default_rng(seed)
    counts, states = states_of(model.replicas, model.size, rng)
    for rule in model.rules:
        part = next(part for part in Judge(replace(asked, rules=[rule])).parts if part.name == NAMES[kind])
        found = np.broadcast_to(rule_part(model, rule)(counts), STATES)
        assert found.tolist() == pytest.approx([part.value(state) for state in states], abs=1e-9)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_required_affinity_is_never_held_against_what_can_be_bound(data: st.DataObject) -> None:
    """Domains decide, not the order: two that wait for each other are looked at in whole plans."""
    seed = data.draw(st.sampled_from(seeds_of(Affinity, required=True)))
    asked = with_rules(seed, Affinity, required=True)
    model, rng = books_of(asked).model, np.random.default_rng(seed)
    counts, states = states_of(model.replicas, model.size, rng)
    for rule in model.rules:
        part = next(p for p in Judge(replace(asked, rules=[rule])).parts if p.name == "required affinity")
        found = np.broadcast_to(rule_part(model, rule)(counts), STATES).tolist()
        for value, state in zip(found, states, strict=True):
            assert not math.isinf(value) or math.isinf(part.value(state))


@pytest.mark.parametrize("routing", [Routing.SAME_ZONE, Routing.SAME_NODE, Routing.LOCAL], ids=lambda each: each.value)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_load_is_that_of_the_calls(routing: Routing, seed: int) -> None:
    asked = small_problem(seed)
    asked = replace(asked, rules=(), workloads=[replace(workload, routing=routing) for workload in asked.workloads])
    model, rng = books_of(asked).model, np.random.default_rng(seed)
    counts, states = states_of(model.replicas, model.size, rng)
    rows = {w: model.relations.sets(w) for w in range(len(asked.workloads))}
    parts = iter([part for part in Judge(asked).parts if part.name == "load"])
    for callee in range(len(asked.workloads)):
        callers = [edge.caller for edge in asked.edges if edge.callee == callee]
        if not callers:
            continue
        part = next(parts)
        found = np.broadcast_to(load_part(model, callee, callers, rows)(counts), STATES)
        assert found.tolist() == pytest.approx([part.value(state) for state in states], rel=1e-9, abs=1e-9)


def test_the_load_of_nobody_is_nothing() -> None:
    model = books_of(problem(2, 0, edges=[(0, 1)], routing=Routing.SAME_ZONE)).model
    value = load_part(model, 1, [0], {0: [0]})({0: np.eye(8)})
    assert not value.any()


def test_required_affinity_needs_the_key() -> None:
    rule = Affinity(domain=np.array([-1, 0, 0, 0, 0, 0, 0, 0]), subjects=[0], selects=[0])
    model = books_of(problem(1, rules=[rule])).model
    assert rule_part(model, rule)({0: np.eye(8)}).tolist() == [math.inf, *[0.0] * 7]


@pytest.mark.parametrize(
    ("placed", "cost"),
    [
        pytest.param([0, 0, 0, 0, 0, 0, 0, 3], 5.0 * 2, id="three outside: two beyond maxSkew"),
        pytest.param([0, 0, 1, 0, 1, 0, 1, 0], 0.0, id="one in each domain"),
    ],
)
def test_domains_that_no_plan_reaches_count_for_spread(placed: list[int], cost: float) -> None:
    for price, factor in ((None, 1), (40.0, 8)):
        rule = Spread(
            domain=ZONE, subjects=[0], selects=[0], max_skew=1, hard=False, placed=np.array(placed), price=price
        )
        model = books_of(problem(1, rules=[rule]), [0, 1]).model
        assert float(rule_part(model, rule)({0: np.array([1.0, 0.0])})) == cost * factor
