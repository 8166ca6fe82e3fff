"""Budgets under a plan are judged once for all of its pods, whatever others take meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.labels import LABEL_REGION
from berth.kube.objects import Pod
from berth.network.link_budgets import PlacePair, taken
from berth.scheduling.configuration import Profile
from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.framework.framework import FilterResult, Framework
from berth.scheduling.gang import budget
from berth.scheduling.gang.exact import UNLIMITED, ExactAmounts
from berth.scheduling.planning import finish
from berth.scheduling.replica_plan.shared_budgets import SharedBudgets
from tests.support import builders
from tests.support.placement import ZONE_COSTS, Lab, chain, group_object, member, where, zoned

LINK = PlacePair(LABEL_REGION, "r1", "r2")
REPLICAS = 4


class Books:
    """Budgets of some nodes and links, of which a plan and others take."""

    def __init__(self, nodes: list[int], links: list[int], kept: int = 0) -> None:
        self.exact = self._of(nodes, links, kept)

    @staticmethod
    def _of(nodes: list[int], links: list[int], kept: int) -> ExactAmounts:
        empty = np.zeros((len(nodes), 0), dtype=np.int64)
        amounts = np.array(nodes, dtype=np.int64)
        return ExactAmounts(empty, empty, amounts, np.full(len(nodes), kept), amounts.copy(), tuple(links))

    def take(self, nodes: list[int], links: list[int]) -> None:
        """Take bit/s of each; what is given back is below 0."""
        self.exact.bandwidth_free = self.exact.bandwidth_free - nodes
        left = zip(self.exact.link_free, links, strict=True)
        self.exact.link_free = tuple(free - amount for free, amount in left)

    def rebuild(self) -> None:
        """Nodes are others, with as much left."""
        exact = self.exact
        self.exact = self._of(exact.bandwidth_free.tolist(), list(exact.link_free), 0)


@pytest.mark.parametrize(
    ("nodes", "links", "kept_back", "takes", "kept"),
    [
        pytest.param([5], [5], 0, ([5], [5]), True, id="all-of-it"),
        pytest.param([5], [5], 0, ([6], [0]), False, id="one-bit-more-of-a-node"),
        pytest.param([5], [5], 0, ([0], [6]), False, id="one-bit-more-of-a-link"),
        pytest.param([UNLIMITED], [], 0, ([2**40], []), True, id="a-node-without-a-budget"),
        pytest.param([5], [], 1, ([5], []), False, id="what-is-kept-for-pods-that-name-the-node"),
        pytest.param([5], [], 1, ([4], []), True, id="all-but-what-is-kept"),
        pytest.param([-3], [-3], 0, ([0], [0]), True, id="nothing-of-what-is-overdrawn"),
        pytest.param([-3], [5], 0, ([1], [0]), False, id="a-bit-of-a-node-that-is-overdrawn"),
        pytest.param([5], [-3], 0, ([0], [1]), False, id="a-bit-of-a-link-that-is-overdrawn"),
        pytest.param([-3], [-3], 0, ([-1], [-1]), True, id="less-than-before-of-what-is-overdrawn"),
        pytest.param([2**61], [-(2**61)], 0, ([2**61], [0]), True, id="as-much-as-is-counted"),
        pytest.param([], [2**61], 0, ([], [2**61 + 1]), False, id="more-of-a-link-than-is-counted"),
    ],
)
def test_a_plan_takes_no_more_than_is_free(
    nodes: list[int], links: list[int], kept_back: int, takes: tuple[list[int], list[int]], kept: bool
) -> None:
    books = Books(nodes, links, kept_back)
    shared = SharedBudgets(lambda: books.exact)
    books.take(*takes)
    assert shared.kept is kept


@pytest.mark.parametrize(
    ("others", "kept"),
    [
        pytest.param([4], True, id="they-leave-enough"),
        pytest.param([5], False, id="they-take-a-bit-of-what-it-needs"),
        pytest.param([-2], True, id="they-give-back"),
    ],
)
def test_what_others_take_in_their_turn_is_theirs(others: list[int], kept: bool) -> None:
    books = Books([], [10])
    shared = SharedBudgets(lambda: books.exact)
    books.take([], [3])
    over = shared.others_turn()
    books.take([], others)
    over()
    books.take([], [3])
    assert shared.kept is kept


def test_what_others_give_back_of_an_overdrawn_link_is_not_for_the_plan() -> None:
    """5 too much; others give back 5: nothing is free, and the plan takes 5."""
    books = Books([], [-5])
    shared = SharedBudgets(lambda: books.exact)
    over = shared.others_turn()
    books.take([], [-5])
    over()
    books.take([], [5])
    assert not shared.kept


@pytest.mark.parametrize("turn", [True, False], ids=["in-others-turn", "unseen"])
def test_other_nodes_are_not_compared(turn: bool) -> None:
    books = Books([10], [10])
    shared = SharedBudgets(lambda: books.exact)
    over = shared.others_turn() if turn else None
    books.rebuild()
    if over is not None:
        over()
    assert not shared.kept


@given(st.integers(-20, 20), st.lists(st.tuples(st.integers(0, 9), st.integers(-9, 9)), max_size=6))
def test_only_the_sum_of_what_the_plan_takes_counts(free: int, turns: list[tuple[int, int]]) -> None:
    books = Books([free], [free])
    shared = SharedBudgets(lambda: books.exact)
    for own, others in turns:
        books.take([own], [own])
        over = shared.others_turn()
        books.take([others], [others])
        over()
    own, left = sum(each for each, _ in turns), free - sum(each for _, each in turns)
    assert shared.kept is (own <= max(left, 0))


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
    shared = SharedBudgets(lambda: view.current(ZONE_COSTS, bandwidth).exact)
    over = shared.others_turn()
    view.current(small.costs, bandwidth)
    over()
    assert shared.kept
    assert view.current(ZONE_COSTS, bandwidth).exact.link_free == ()
