"""Prices of the objective: what a profile says, and what an AppGroup says instead."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from berth.api.spread import SpreadLevel
from berth.network.groups import Group, GroupEdge, GroupKey
from berth.network.routing import Routing
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate
from berth.scheduling.replica_plan.pod_sets import Alike
from berth.scheduling.replica_plan.prices import kept_endpoints, objective_prices
from berth.scheduling.replicas.problem import Rule
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread
from tests.support.placement import Lab, member, zoned

EDGES = tuple(GroupEdge("a", "b", 0, np.inf) for _ in range(3))


def shop(spread: SpreadLevel | None = None) -> Group:
    return Group(GroupKey("default", "shop"), edges=EDGES, spread=spread)


@pytest.mark.parametrize(("highest", "lost"), [(5.0, 100.0), (3000.0, 3000.0)])
def test_a_call_that_fails_is_never_the_cheapest(highest: float, lost: float) -> None:
    prices = objective_prices(shop(), 2.0, np.array([[1.0, highest], [highest, 1.0]]), SpreadLevel.SOFT)
    assert (prices.network, prices.lost_calls) == (2.0, lost)


@pytest.mark.parametrize(
    ("stated", "node", "zone"),
    [
        pytest.param(SpreadLevel.SOFT, 5.0, 1.0, id="soft"),
        pytest.param(SpreadLevel.NONE, 0.0, 0.0, id="none"),
        pytest.param(SpreadLevel.NODE, np.inf, 1.0, id="node"),
        pytest.param(SpreadLevel.ZONE, np.inf, np.inf, id="zone"),
    ],
)
@pytest.mark.parametrize("annotated", [False, True], ids=["profile", "annotation"])
def test_what_must_be_survived_is_worth_any_call(
    stated: SpreadLevel, node: float, zone: float, annotated: bool
) -> None:
    costs = np.array([[1.0, 3000.0], [3000.0, 1.0]])
    other = SpreadLevel.NODE if stated is SpreadLevel.NONE else SpreadLevel.NONE
    group, profile = (shop(stated), other) if annotated else (shop(), stated)
    prices = objective_prices(group, 1.0, costs, profile)
    for price, expected in ((prices.survive_node, node), (prices.survive_zone, zone)):
        if np.isinf(expected):
            assert price > 3000.0 * len(EDGES)
            assert np.isfinite(price)
        else:
            assert price == expected


@pytest.mark.parametrize("endpoints", [0, 10_000])
def test_what_must_be_survived_is_worth_all_calls_at_one_endpoint(endpoints: int) -> None:
    prices = objective_prices(shop(SpreadLevel.NODE), 1.0, np.zeros((1, 1)), SpreadLevel.SOFT, endpoints=endpoints)
    assert prices.survive_node > prices.load * endpoints


def waiting(*counts: int, costs: dict[str, np.ndarray] | None = None, mask: np.ndarray | None = None) -> list[Alike]:
    """So many pods of the workloads a, b, ..., on three nodes."""
    lab = Lab([zoned(f"n{number}") for number in range(3)])
    found = []
    for workload, count in zip("abc", counts, strict=False):
        pods = [member(f"{workload}{number}", workload) for number in range(count)]
        lab.see(*pods)
        infos = [lab.cache.state.info(pod) for pod in pods]
        result = FilterResult(mask=lab.cache.state.alive.copy(), nodes=3)
        candidates = [Candidate(info, result, {}) for info in infos]
        request = lab.cache.state.request_vector(infos[0].template)
        found.append(
            Alike(
                workload,
                infos[0].template,
                result,
                request,
                result.mask if mask is None else mask,
                costs or {},
                candidates,
            )
        )
    return found


def more_than_calls(pods: list[Alike], *rules: Rule) -> float:
    """What a node that must be survived is worth beyond what calls can cost."""
    cases: list[tuple[list[Alike], Sequence[Rule]]] = [([], []), (pods, rules)]
    pair = [
        objective_prices(shop(SpreadLevel.NODE), 1.0, np.zeros((1, 1)), SpreadLevel.SOFT, *more).survive_node
        for more in cases
    ]
    return pair[1] - pair[0]


HOST = np.arange(3)
ONE, TWO = np.array([0, 1, 0]), np.array([2, 0, 0])


@pytest.mark.parametrize(
    ("rule", "amount"),
    [
        pytest.param(Spread(domain=HOST, subjects=[0], selects=[0], max_skew=1), 0, id="hard spread"),
        pytest.param(
            Spread(domain=HOST, subjects=[0], selects=[0, 1], max_skew=1, hard=False), 5 * 5, id="soft spread"
        ),
        pytest.param(
            Spread(domain=HOST, subjects=[0], selects=[0], max_skew=1, hard=False, placed=TWO), 5 * 5, id="placed ones"
        ),
        pytest.param(
            Spread(domain=HOST, subjects=[0], selects=[0, 1], max_skew=1, hard=False, price=70.0),
            70 * 5,
            id="spread with a price of its own",
        ),
        pytest.param(AntiAffinity(domain=HOST, subjects=[0], selects=[0]), 0, id="required anti-affinity"),
        pytest.param(
            AntiAffinity(domain=HOST, subjects=[0], selects=[0, 1], placed=ONE, placed_subjects=TWO, weight=50),
            5 * 0.5 * (3 * (5 + 1) + 2 * 5),
            id="preferred anti-affinity",
        ),
        pytest.param(Affinity(domain=HOST, subjects=[0], selects=[1]), 0, id="required affinity"),
        pytest.param(
            Affinity(domain=HOST, subjects=[0], selects=[1], placed=ONE, placed_subjects=TWO, weight=100),
            5 * (3 + 2),
            id="preferred affinity",
        ),
    ],
)
def test_what_must_be_survived_is_worth_any_soft_rule(rule: Rule, amount: float) -> None:
    assert more_than_calls(waiting(3, 2), rule) == pytest.approx(amount)
    assert more_than_calls(waiting(3, 2), rule, rule) == pytest.approx(2 * amount)


@pytest.mark.parametrize(
    ("mask", "amount"),
    [
        pytest.param([True, True, True], 3 * 8, id="everywhere"),
        pytest.param([True, True, False], 3 * 3, id="where they may go"),
        pytest.param([False, False, False], 0, id="nowhere"),
    ],
)
def test_what_must_be_survived_is_worth_any_node(mask: list[bool], amount: float) -> None:
    costs = {"price": np.array([1.0, 2, 9]), "preferences": np.array([0.0, 2, 0])}
    assert more_than_calls(waiting(3, costs=costs, mask=np.array(mask))) == pytest.approx(amount)


def test_endpoints_of_services_that_keep_calls_near_are_counted_waiting_and_placed() -> None:
    routing = {"a": Routing.ALL, "b": Routing.SAME_ZONE, "c": Routing.LOCAL}
    placed = {"a": {0: 7}, "b": {0: 1, 2: 3}}
    assert kept_endpoints(routing, waiting(3, 2, 1), placed) == 2 + 4 + 1


def test_what_must_be_survived_is_worth_the_harm_of_all_pods() -> None:
    prices = objective_prices(
        shop(SpreadLevel.NODE), 1.0, np.zeros((1, 1)), SpreadLevel.SOFT, waiting(3, 2), interference=70.0
    )
    assert prices.survive_node > 5 * 70
