"""A compiled problem: columns, locations and service zones, penalties, targets, and what is kept for some pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from berth.network.routing import Routing
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Edge, PodSet, Prices, Problem, ProblemError, Rule, Workload
from berth.scheduling.replicas.rule import AntiAffinity, Spread
from tests.support.counts import COST, HOST, ZONE, nodes, problem


def model_of(asked: Problem, columns: Sequence[int] = tuple(range(8))) -> Model:
    return Model(asked, np.array(columns, dtype=np.int64))


def test_only_locations_with_a_column_have_a_number() -> None:
    model = model_of(problem(1), [1, 6, 7])
    assert model.location.tolist() == [0, 1, 1]
    assert model.cost.tolist() == [[1.0, 80.0], [80.0, 1.0]]
    assert model.incidence.tolist() == [[1, 0], [0, 1], [0, 1]]


def test_amounts_by_column_are_added_up_by_location() -> None:
    assert model_of(problem(1), [1, 6, 7]).located(np.array([1.0, 2, 4])).tolist() == [1, 6]


@pytest.mark.parametrize("routing", [Routing.ALL, Routing.SAME_ZONE])
def test_targets_share_costs_without_penalties(routing: Routing) -> None:
    model = model_of(problem(1, 1, 1, edges=[(0, 1), (0, 2)], routing=routing))
    one, other = model.plain(0), model.plain(1)
    assert one.spread_cost is other.spread_cost
    assert one.near_cost is other.near_cost


def test_dropped_calls_cost_as_much_as_the_dearest_way_of_the_whole_cluster() -> None:
    asked = problem(1, 1, edges=[(0, 1)], routing=Routing.LOCAL)
    assert model_of(asked, [0, 1]).lost == pytest.approx(0.95 * 80)
    assert model_of(replace(asked, prices=Prices(lost_calls=7.0))).lost == pytest.approx(0.95 * 7)


def test_a_placed_replica_must_be_a_column() -> None:
    asked = problem(1, placed={0: {3: 2}})
    assert model_of(asked).placed.tolist() == [[0, 0, 0, 2, 0, 0, 0, 0]]
    with pytest.raises(ProblemError, match="node 3 with a placed replica is no column"):
        model_of(asked, [0, 1])


@pytest.mark.parametrize(
    ("names", "zones", "named"),
    [
        pytest.param(None, [0, 1, 2, 3], [1, 1, 1, 1], id="every location"),
        pytest.param([9, 4, 9, 7], [0, 1, 0, 2], [1, 1, 1], id="one name twice"),
        pytest.param([-1, 4, -1, 4], [0, 1, 2, 1], [0, 1, 0], id="two without, each by itself"),
        pytest.param([-1, -1, -1, -1], [0, 1, 2, 3], [0, 0, 0, 0], id="none"),
    ],
)
def test_service_zones(names: list[int] | None, zones: list[int], named: list[int]) -> None:
    model = model_of(problem(1, on=nodes(service_zone=None if names is None else np.array(names))))
    assert model.service_of.tolist() == zones
    assert model.service_zone.tolist() == np.repeat(zones, 2).tolist()
    assert model.zoned.tolist() == [bool(name) for name in named]
    amounts = np.array([1.0, 2, 4, 8])
    gathered = model.gathered(amounts)
    assert gathered.tolist() == [sum(amounts[np.array(zones) == zone]) for zone in range(len(named))]
    assert model.by_location(gathered).tolist() == [gathered[zone] for zone in zones]
    together = np.equal.outer(zones, zones)
    assert model.within(COST, amounts).tolist() == ((COST * together) @ amounts).tolist()
    many = np.array([amounts, 3 * amounts])
    assert model.within(COST, many).tolist() == (many @ (COST * together).T).tolist()


@pytest.mark.parametrize(
    ("names", "endpoints", "served"),
    [
        pytest.param(None, [2, 0, 1, 0], [1, 0, 1, 0], id="where endpoints are"),
        pytest.param([-1, 1, 2, 3], [0, 0, 1, 0], [0, 0, 1, 0], id="none without a zone"),
        pytest.param([-1, 1, 2, 3], [1, 0, 1, 0], [0, 0, 0, 0], id="one without a zone: nowhere"),
    ],
)
def test_zones_that_keep_calls(names: list[int] | None, endpoints: list[float], served: list[int]) -> None:
    model = model_of(problem(1, on=nodes(service_zone=None if names is None else np.array(names))))
    assert model.served(np.array(endpoints)).tolist() == [bool(each) for each in served]


def test_what_is_kept_for_pods_that_name_the_node_is_a_resource_of_the_others() -> None:
    sets = [PodSet(workload=0, replicas=1, request=np.array([3, 5]), names_nodes=name) for name in (True, False)]
    free = np.full((8, 2), 9)
    kept = np.zeros((8, 2), dtype=np.int64)
    kept[2, 0] = 4
    on = nodes(free=free, reserve=kept)
    model = model_of(Problem(nodes=on, workloads=[Workload(name="a")], pod_sets=sets), [1, 2])
    assert model.free.tolist() == [[9, 9, 9], [9, 9, 5]]
    assert model.request.tolist() == [[3, 5, 0], [3, 5, 3]]


def test_a_penalty_is_above_all_costs() -> None:
    asked = problem(3, 3, edges=[(0, 1), (1, 0)], cost=np.full(8, 50.0))
    assert model_of(asked).penalty > 100 * (2 * 80 + 50)
    assert model_of(replace(asked, prices=Prices(load=1e9))).penalty > 100 * 1e9


@pytest.mark.parametrize(
    ("cost", "mask", "least"),
    [
        pytest.param(None, None, 0.0, id="no charge"),
        pytest.param([5.0, 3, 4, 9, 9, 9, 9, 9], None, 9.0, id="three pods on the cheapest node"),
        pytest.param([5.0, 3, 4, 9, 9, 9, 9, 9], [1, 0, 1, 0, 0, 0, 0, 0], 12.0, id="on the cheapest it may use"),
        pytest.param([5.0, 3, 4, 9, 9, 9, 9, 9], [0] * 8, 0.0, id="nowhere"),
    ],
)
def test_least_charge(cost: list[float] | None, mask: list[int] | None, least: float) -> None:
    asked = problem(
        3,
        cost=None if cost is None else np.array(cost),
        mask=None if mask is None else np.array(mask, dtype=np.bool_),
    )
    assert model_of(asked).least_charge(0) == least


def test_edges_with_limits_that_mean_the_same_pairs_share_a_target() -> None:
    edges = [Edge(caller=caller, callee=2, max_cost=limit) for caller, limit in ((0, 6.0), (1, 79.0), (3, 80.0))]
    model = model_of(problem(1, 1, 1, 1, edges=[*edges, Edge(caller=0, callee=1)]))
    assert model.target_of == [0, 0, 1, 2]
    assert model.callers == [[0, 1], [3], [0]]
    assert model.called == [[], [2], [0, 1], []]
    assert model.callees == [[2, 1], [2], [], [2]]
    assert model.called_by == [[], [0], [0, 1, 3], []]
    assert model.limited
    beyond = model.beyond[0]
    assert beyond is not None
    assert (beyond > 0).tolist() == (COST > 5).tolist()
    assert (model.beyond[1], model.beyond[2]) == (None, None)


@pytest.mark.parametrize("routing", list(Routing), ids=lambda routing: routing.value)
def test_a_plain_target_has_no_penalty_and_a_limit_nothing_else(routing: Routing) -> None:
    model = model_of(problem(1, 1, edges=[Edge(caller=0, callee=1, max_cost=5.0)], routing=routing))
    plain, limit = model.plain(0), model.limit(0)
    near = np.zeros_like(COST) if plain.near_cost is None else plain.near_cost
    assert plain.spread_cost + near == pytest.approx(COST)
    with_penalty = model.targets[0].spread_cost if routing is Routing.ALL else model.targets[0].near_cost
    assert with_penalty is not None
    assert (with_penalty >= model.penalty).tolist() == (COST > 5).tolist()
    if routing is Routing.LOCAL:
        assert limit is None  # a call that stays on its node goes no distance
    else:
        assert limit is not None
        beyond = limit.spread_cost if routing is Routing.ALL else limit.near_cost
        assert beyond is not None
        assert np.array_equal(beyond, COST > 5)


def test_rules_that_no_plan_can_break_are_left_out() -> None:
    rules: list[Rule] = [
        AntiAffinity(domain=HOST, subjects=[0], selects=[0]),
        AntiAffinity(domain=HOST, subjects=[1], selects=[1]),
        Spread(domain=ZONE, subjects=[0], selects=[0], max_skew=1, hard=False),
        Spread(domain=ZONE, subjects=[1], selects=[1], max_skew=1),
    ]
    model = model_of(problem(1, 2, rules=rules))
    assert model.rule_numbers == [1, 3]
    assert model.rules == [rules[1], rules[3]]


def test_components_are_what_belongs_together_the_largest_first() -> None:
    model = model_of(problem(1, 1, 0, 2, 2, edges=[(0, 2), (2, 1), (3, 4)]))
    assert model.components() == [[3, 4], [0, 1]]


def test_rules_with_one_array_share_their_domains() -> None:
    model = model_of(problem(1))
    assert model.domains(HOST) is model.domains(HOST)
    assert model.domains(HOST).column.tolist() == list(range(8))
    assert model.domains(ZONE).column.tolist() == ZONE.tolist()
