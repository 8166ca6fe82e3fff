"""What the generator of rules draws: every kind, hard and soft, with and without placed pods."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bench.replicas_core.small import REQUIRED, small_problem
from berth.network.routing import Routing
from berth.scheduling.replicas.problem import Problem, Rule
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread

PROBLEMS = [small_problem(seed) for seed in range(240)]
RULES = [rule for problem in PROBLEMS for rule in problem.rules]


def is_port(rule: Rule) -> bool:
    alike = isinstance(rule, AntiAffinity) and list(rule.subjects) == list(rule.selects)
    return alike and len(rule.subjects) > 1 and len(np.unique(rule.domain)) == len(rule.domain)


def is_default(rule: Rule) -> bool:
    return isinstance(rule, Spread) and not rule.hard and rule.max_skew in (3, 5)


def shared_name(zones: np.ndarray) -> bool:
    named = zones[zones >= 0].tolist()
    return len(set(named)) < len(named)


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(lambda rule: isinstance(rule, AntiAffinity) and rule.weight is None, id="required anti-affinity"),
        pytest.param(lambda rule: isinstance(rule, AntiAffinity) and rule.weight, id="preferred anti-affinity"),
        pytest.param(
            lambda rule: isinstance(rule, AntiAffinity) and rule.weight and rule.placed_subjects is not None,
            id="placed pods that prefer to be apart",
        ),
        pytest.param(is_port, id="host port of two workloads"),
        pytest.param(lambda rule: is_port(rule) and rule.placed is not None, id="host port that is in use"),
        pytest.param(lambda rule: isinstance(rule, Affinity) and rule.weight is None, id="required affinity"),
        pytest.param(
            lambda rule: isinstance(rule, Affinity) and rule.weight is None and rule.subjects[0] not in rule.selects,
            id="required affinity towards others",
        ),
        pytest.param(
            lambda rule: isinstance(rule, Affinity) and rule.weight and rule.placed is not None,
            id="preferred affinity towards placed pods",
        ),
        pytest.param(
            lambda rule: isinstance(rule, Affinity) and rule.weight and rule.placed_subjects is not None,
            id="preferred affinity of placed pods",
        ),
        pytest.param(lambda rule: isinstance(rule, Spread) and rule.hard and rule.min_domains > 1, id="minDomains"),
        pytest.param(lambda rule: isinstance(rule, Spread) and rule.hard and rule.eligible is not None, id="policies"),
        pytest.param(lambda rule: isinstance(rule, Spread) and not rule.hard and rule.max_skew < 3, id="soft spread"),
        pytest.param(is_default, id="default spreading"),
        pytest.param(
            lambda rule: is_default(rule) and rule.placed is not None, id="default spreading, placed replicas"
        ),
        pytest.param(lambda rule: (rule.domain < 0).any(), id="a node without the label"),
    ],
)
def test_every_kind_of_rule_is_drawn(wanted: Callable[[Rule], bool]) -> None:
    assert sum(bool(wanted(rule)) for rule in RULES) >= 5


@pytest.mark.parametrize(
    "wanted",
    [
        *(
            pytest.param(lambda problem, r=routing: any(w.routing is r for w in problem.workloads), id=routing.value)
            for routing in Routing
        ),
        pytest.param(lambda problem: any(w.placed for w in problem.workloads), id="placed replicas"),
        pytest.param(lambda problem: len(problem.pod_sets) > len(problem.workloads), id="a rollout"),
        pytest.param(lambda problem: any(e.max_cost < np.inf for e in problem.edges), id="maxNetworkCost"),
        pytest.param(lambda problem: problem.nodes.bandwidth is not None, id="minBandwidth"),
        pytest.param(lambda problem: problem.nodes.reserve is not None, id="nodes kept for pods that name them"),
        pytest.param(lambda problem: problem.nodes.service_zone.min() < 0, id="nodes without a zone"),
        pytest.param(lambda problem: shared_name(problem.nodes.service_zone), id="one zone name in two regions"),
        pytest.param(lambda problem: problem.prices.survive_node == 0, id="spread: none"),
        pytest.param(lambda problem: problem.prices.survive_node == REQUIRED, id="spread: node"),
        pytest.param(lambda problem: problem.prices.survive_zone == REQUIRED, id="spread: zone"),
    ],
)
def test_every_kind_of_problem_is_drawn(wanted: Callable[[Problem], bool]) -> None:
    assert sum(bool(wanted(problem)) for problem in PROBLEMS) >= 5


def test_problems_are_those_of_their_seed() -> None:
    one, other = small_problem(7), small_problem(7)
    assert one.workloads == other.workloads
    assert one.edges == other.edges
    assert np.array_equal(one.nodes.free, other.nodes.free)
    assert [type(rule) for rule in one.rules] == [type(rule) for rule in other.rules]
