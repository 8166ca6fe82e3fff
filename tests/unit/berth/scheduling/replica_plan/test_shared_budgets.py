"""Budgets under a plan are judged once for all of its pods, whatever others take meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.labels import LABEL_REGION, RESOURCE_BANDWIDTH
from berth.kube.objects import Pod
from berth.network.link_budgets import PlacePair, taken
from berth.scheduling.configuration import Profile
from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.framework.framework import FilterResult, Framework
from berth.scheduling.gang import budget
from berth.scheduling.gang.exact import UNLIMITED
from berth.scheduling.planning import finish
from berth.scheduling.replica_plan.shared_budgets import BudgetName, Left, SharedBudgets
from berth.scheduling.units import LIMIT
from tests.support import builders
from tests.support.placement import ZONE_COSTS, Lab, chain, group_object, member, where, zoned

LINK = PlacePair(LABEL_REGION, "r1", "r2")
REPLICAS = 4
NODE, LINK_BUDGET = BudgetName(node="n0"), BudgetName(link="n0")


class Books:
    """Budgets of some nodes and links, of which a plan and others take."""

    def __init__(self, nodes: list[int], links: list[int]) -> None:
        self.nodes = [f"n{number}" for number in range(len(nodes))]
        self.links = [f"n{number}" for number in range(len(links))]
        self.amounts = [*nodes, *links]

    def left(self) -> Left:
        return Left(self.nodes, self.links, np.array(self.amounts, dtype=np.int64))

    def take(self, nodes: list[int], links: list[int]) -> None:
        """Take bit/s of each; what is given back is below 0."""
        self.amounts = [left - amount for left, amount in zip(self.amounts, [*nodes, *links], strict=True)]

    def put_before(self, name: str, amount: int, *, link: bool = False) -> None:
        """A node or link with so much left is there, and has the first number."""
        (self.links if link else self.nodes).insert(0, name)
        self.amounts.insert(len(self.nodes) if link else 0, amount)

    def remove(self, name: str) -> int:
        """A node is there no more; returns what it had left."""
        number = self.nodes.index(name)
        del self.nodes[number]
        return self.amounts.pop(number)


def others_turn(shared: SharedBudgets, change: Callable[[], object]) -> None:
    shared.end_turn()
    change()
    shared.begin_turn()


@pytest.mark.parametrize(
    ("nodes", "links", "takes", "exceeded"),
    [
        pytest.param([5], [5], ([5], [5]), [], id="all-of-it"),
        pytest.param([5], [5], ([6], [0]), [NODE], id="one-bit-more-of-a-node"),
        pytest.param([5], [5], ([0], [6]), [LINK_BUDGET], id="one-bit-more-of-a-link"),
        pytest.param([5], [5], ([6], [6]), [NODE, LINK_BUDGET], id="of-both"),
        pytest.param([UNLIMITED], [], ([2**40], []), [], id="a-node-without-a-budget"),
        pytest.param([-3], [-3], ([0], [0]), [], id="nothing-of-what-is-overdrawn"),
        pytest.param([-3], [5], ([1], [0]), [NODE], id="a-bit-of-a-node-that-is-overdrawn"),
        pytest.param([5], [-3], ([0], [1]), [LINK_BUDGET], id="a-bit-of-a-link-that-is-overdrawn"),
        pytest.param([-3], [-3], ([-1], [-1]), [], id="less-than-before-of-what-is-overdrawn"),
        pytest.param([2**61], [-(2**61)], ([2**61], [0]), [], id="as-much-as-is-counted"),
    ],
)
def test_a_plan_takes_no_more_than_is_free(
    nodes: list[int], links: list[int], takes: tuple[list[int], list[int]], exceeded: list[BudgetName]
) -> None:
    books = Books(nodes, links)
    shared = SharedBudgets(books.left)
    books.take(*takes)
    assert shared.exceeded() == exceeded
    assert shared.exceeds(NODE) is (NODE in exceeded)


@pytest.mark.parametrize(
    ("others", "exceeded"),
    [
        pytest.param([4], [], id="they-leave-enough"),
        pytest.param([5], [LINK_BUDGET], id="they-take-a-bit-of-what-it-needs"),
        pytest.param([-2], [], id="they-give-back"),
    ],
)
def test_what_others_take_in_their_turn_is_theirs(others: list[int], exceeded: list[BudgetName]) -> None:
    books = Books([], [10])
    shared = SharedBudgets(books.left)
    books.take([], [3])
    others_turn(shared, lambda: books.take([], others))
    books.take([], [3])
    assert shared.exceeded() == exceeded


def test_what_others_overdraw_is_no_budget_of_a_plan_that_takes_nothing_of_it() -> None:
    books = Books([5, 5], [])
    shared = SharedBudgets(books.left)
    books.take([1, 0], [])
    others_turn(shared, lambda: books.take([0, 9], []))
    assert shared.exceeded() == []


def test_what_others_give_back_of_an_overdrawn_link_is_not_for_the_plan() -> None:
    """5 too much; others give back 5: nothing is free, and the plan takes 5."""
    books = Books([], [-5])
    shared = SharedBudgets(books.left)
    others_turn(shared, lambda: books.take([], [-5]))
    books.take([], [5])
    assert shared.exceeded() == [LINK_BUDGET]


@pytest.mark.parametrize(("then", "exceeded"), [(2, []), (3, [NODE])], ids=["enough", "a-bit-too-little"])
def test_budgets_go_by_name_where_nodes_come_in_others_turn(then: int, exceeded: list[BudgetName]) -> None:
    books = Books([5], [5])
    shared = SharedBudgets(books.left)
    books.take([3], [5])

    def change() -> None:
        books.put_before("other", -1)
        books.put_before("another", -1, link=True)

    others_turn(shared, change)
    books.take([0, then], [0, 0])
    assert shared.exceeded() == exceeded


def test_a_node_that_goes_has_no_budget_and_one_that_comes_back_what_the_plan_took_before() -> None:
    books = Books([5, 5], [])
    shared = SharedBudgets(books.left)
    books.take([3, 0], [])
    others_turn(shared, partial(books.remove, "n0"))
    assert shared.exceeded() == []
    others_turn(shared, lambda: books.put_before("n0", -1))
    assert shared.exceeded() == [NODE]


@given(st.integers(-20, 20), st.lists(st.tuples(st.integers(0, 9), st.integers(-9, 9)), max_size=6))
def test_only_the_sum_of_what_the_plan_takes_counts(free: int, turns: list[tuple[int, int]]) -> None:
    books = Books([free], [free])
    shared = SharedBudgets(books.left)
    for own, others in turns:
        books.take([own], [own])
        others_turn(shared, partial(books.take, [others], [others]))
    own, left = sum(each for each, _ in turns), free - sum(each for _, each in turns)
    assert (shared.exceeded() == []) is (own <= max(left, 0))


@pytest.mark.parametrize(("kept_back", "free"), [(0, 5), (1, 4)], ids=["all", "all-but-what-is-kept"])
def test_what_is_left_is_for_pods_that_do_not_name_the_node(kept_back: int, free: int) -> None:
    threshold = {"usageThreshold": 1 - kept_back / 5}
    node = zoned("n1", extra={RESOURCE_BANDWIDTH: "5"})
    small = Lab([node], Profile.model_validate(threshold))
    left = Left.of(small.planner.view.current(small.costs, small.cache.bandwidth()))
    assert (list(left.nodes), list(left.links), left.amounts.tolist()) == (["n1"], [], [free])


def test_more_of_a_link_than_is_counted_is_all_of_it() -> None:
    small = lab(10)
    infrastructure = small.planner.view.current(small.costs, small.cache.bandwidth())
    infrastructure.exact.link_free = (-(10**30),)
    assert Left.of(infrastructure).amounts[-1] == -LIMIT


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[CycleState]:
    """Pods that filters were run for once the plan was made, in order."""
    looks: list[CycleState] = []
    run = Framework.filter

    def counting(framework: Framework, cycle: CycleState, **arguments: Any) -> FilterResult:
        if "PodTopologySpread" not in arguments.get("skip", ()):
            looks.append(cycle)
        return run(framework, cycle, **arguments)

    monkeypatch.setattr(Framework, "filter", counting)
    return looks


def lab(free: int) -> Lab:
    """A node in each of two regions with a link of so many bit/s between them."""
    nodes = [zoned("n1", "z1", "r1", cpu=64), zoned("n3", "z3", "r2", cpu=64)]
    return Lab(nodes, Profile(), replace(ZONE_COSTS, budgets={LINK: free}))


def callers_and_endpoints(group: str = "shop") -> list[Pod]:
    """Callers in one region, endpoints in the other."""
    return [
        member(f"{group}-{name}{number}", name, group=group, spec={"nodeSelector": {LABEL_REGION: region}})
        for name, region in (("a", "r1"), ("b", "r2"))
        for number in range(REPLICAS)
    ]


def test_pods_of_a_plan_are_not_judged_one_by_one(judged: list[CycleState]) -> None:
    small = lab(REPLICAS * 80)
    shop = small.group(group_object("shop", *chain("a", "b", minBandwidth="80")))
    assert small.place(shop, *callers_and_endpoints()).complete
    assert judged == []


def test_pods_of_a_plan_are_where_links_are_asked_for_their_risk(judged: list[CycleState]) -> None:
    small = lab(REPLICAS * 80)
    profile = Profile.model_validate({"checkRiskNodeBandwidth": {}})
    small = Lab(small.nodes, profile, small.costs)
    shop = small.group(group_object("shop", *chain("a", "b", minBandwidth="80")))
    assert small.place(shop, *callers_and_endpoints()).complete
    assert len(judged) == 2 * REPLICAS


Change = Callable[[Lab], None]


def others_take_half(stage: Lab) -> None:
    """Pods of another group take half of the link."""
    stage.group(group_object("other", *chain("a", "b", minBandwidth=str(REPLICAS * 40))))
    stage.see(member("oa", "a", group="other", on="n1"), member("ob", "b", group="other", on="n3"))


def nodes_change(stage: Lab) -> None:
    """A node joins."""
    stage.cache.update_node(builders.node("n9"))


@pytest.mark.parametrize("partial", [True, False], ids=["what-fits", "all-or-nothing"])
@pytest.mark.parametrize("turns", range(1, 2 * REPLICAS + 4, 2))
@pytest.mark.parametrize(("change", "room"), [(others_take_half, False), (nodes_change, True)], ids=["taken", "nodes"])
def test_a_link_is_not_overdrawn_by_what_happens_between_turns(
    turns: int, change: Change, room: bool, partial: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "TURN_SECONDS", 0.0)
    small = lab(REPLICAS * 80)
    shop = small.group(group_object("shop", *chain("a", "b", minBandwidth="80")))
    pods = callers_and_endpoints()
    small.see(*pods)
    planning = small.planner.place_group(shop, pods, small.costs, partial=partial)
    if sum(1 for _ in zip(range(turns), planning, strict=False)) < turns:
        return  # the plan was made before
    change(small)
    outcome = finish(planning)
    assert taken(small.cache.bandwidth().places).get(LINK, 0) <= REPLICAS * 80
    assert outcome.complete is room
    if partial:
        assert {workload[:6] for workload in where(outcome)} == {"shop-a", "shop-b"}
    assert small.over_committed() == []


def test_links_that_another_namespace_states_are_none_of_the_plan() -> None:
    """Both have the nodes in common; what a plan for the other one leaves behind is no budget of this one."""
    small = lab(REPLICAS * 80)
    view, bandwidth = small.planner.view, small.cache.bandwidth()
    assert len(view.current(small.costs, bandwidth).exact.link_free) == 1
    shared = SharedBudgets(lambda: Left.of(view.current(ZONE_COSTS, bandwidth)))
    others_turn(shared, lambda: view.current(small.costs, bandwidth))
    assert shared.exceeded() == []
    assert view.current(ZONE_COSTS, bandwidth).exact.link_free == ()
