"""Many pods on sockets: all there, each with room, in bounded work, none better off elsewhere or in another's place."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduling.interference.assignment import Assignment
from berth.scheduling.interference.local_search import LocalSearch, Neighbours
from berth.scheduling.interference.slowdown import harm
from berth.scheduling.interference.socket_costs import SocketCosts
from tests.support.work import CALL, Work

EXCESSES = st.sampled_from([0.0, 0.01, 0.05, 0.06, 0.1, 0.23])
NODES = st.integers(1, 9).flatmap(
    lambda pods: st.tuples(
        st.lists(st.lists(EXCESSES, min_size=pods, max_size=pods), min_size=pods, max_size=pods),
        st.lists(EXCESSES, min_size=pods, max_size=pods),
        st.lists(st.integers(1, 3), min_size=pods, max_size=pods),
        st.lists(st.integers(2, 12), min_size=1, max_size=4),
    )
)
Drawn = tuple[list[list[float]], list[float], list[int], list[int]]


class Pods(NamedTuple):
    """Pods of a node, each with a row and a column of its own."""

    excess: list[list[float]]
    alone: list[float]
    sizes: list[int]

    def on(self, capacities: list[int], alike: list[int] | None = None) -> Neighbours:
        """As the search knows them; all are told apart unless somebody says who is alike."""
        costs = {
            each: SocketCosts(np.array(self.excess), np.where(np.array(self.sizes) < each, self.alone, 0.0))
            for each in capacities
        }
        apart = range(len(self.sizes))
        return Neighbours([costs[each] for each in capacities], apart, self.sizes, apart if alike is None else alike)

    def cost(self, capacities: list[int], groups: list[set[int]]) -> float:
        """What they cost on sockets, one pod after another."""
        total = 0.0
        for group, capacity in zip(groups, capacities, strict=True):
            if len(group) == 1:
                (pod,) = group
                total += self.alone[pod] * (self.sizes[pod] < capacity)
            else:
                total += sum(harm(1 + sum(self.excess[one][other] for other in group - {one})) for one in group)
        return total

    def room(self, capacities: list[int], groups: list[set[int]]) -> bool:
        return all(
            sum(self.sizes[pod] for pod in group) <= each for group, each in zip(groups, capacities, strict=True)
        )


def filled(pods: Neighbours, capacities: list[int]) -> LocalSearch | None:
    """All pods where each adds least; None where they do not fit."""
    search = LocalSearch(pods, capacities)
    return search if all(search.add(pod) is not None for pod in range(len(pods.sizes))) else None


@given(NODES)
def test_all_are_there_and_fit_and_cost_what_they_cost(drawn: Drawn) -> None:
    excess, alone, sizes, capacities = drawn
    pods = Pods(excess, alone, sizes)
    search = filled(pods.on(capacities), capacities)
    if search is None:
        return
    before = search.found()
    search.improve()
    found = search.found()
    groups = [set(group) for group in found.sockets]
    assert sorted(pod for group in found.sockets for pod in group) == list(range(len(pods.sizes)))
    assert pods.room(capacities, groups)
    assert found.cost == pytest.approx(pods.cost(capacities, groups))
    assert found.cost <= before.cost + 1e-9


@given(NODES)
def test_no_move_and_no_exchange_would_be_better(drawn: Drawn) -> None:
    excess, alone, sizes, capacities = drawn
    pods = Pods(excess, alone, sizes)
    search = filled(pods.on(capacities), capacities)
    if search is None:
        return
    search.improve()
    groups = [set(group) for group in search.found().sockets]
    others = [[*groups[:at], group - {pod}, *groups[at + 1 :]] for at, group in enumerate(groups) for pod in group]
    moved = [
        [group | gone if place == at else group for place, group in enumerate(left)]
        for left in others
        for gone in [set(range(len(pods.sizes))) - set().union(*left)]
        for at in range(len(left))
    ]
    exchanged = [
        [
            group - {one, other} | ({other} if one in group else set()) | ({one} if other in group else set())
            for group in groups
        ]
        for one, other in combinations(range(len(pods.sizes)), 2)
    ]
    for changed in moved + exchanged:
        if pods.room(capacities, changed):
            assert pods.cost(capacities, changed) >= search.found().cost - 1e-6


@given(NODES)
def test_a_newcomer_makes_it_no_worse_than_where_it_adds_least(drawn: Drawn) -> None:
    excess, alone, sizes, capacities = drawn
    pods, newcomer = Pods(excess, alone, sizes), len(sizes) - 1
    search = LocalSearch(pods.on(capacities), capacities)
    if any(search.add(pod) is None for pod in range(newcomer)):
        return
    before = search.found().sockets
    search = LocalSearch(pods.on(capacities), capacities, before)
    socket = search.add(newcomer)
    places = range(len(before))
    joined = [[{*each, newcomer} if at == place else {*each} for at, each in enumerate(before)] for place in places]
    staying = [pods.cost(capacities, groups) for groups in joined if pods.room(capacities, groups)]
    if socket is None:
        assert not staying
        return
    assert search.found().cost == pytest.approx(min(staying))
    search.improve()
    assert search.found().cost <= min(staying) + 1e-9


def test_a_newcomer_has_others_move() -> None:
    # 2 goes to the empty socket, and 1 follows it there, away from 0.
    pods = Pods([[0, 0.01, 0.09], [0.01, 0, 0], [0.09, 0, 0]], [0.0] * 3, [1] * 3)
    search = LocalSearch(pods.on([4, 4]), [4, 4], [(0, 1)])
    socket = search.add(2)
    assert socket == 1
    search.improve()
    assert search.found() == Assignment(0, ((0,), (1, 2)))


@pytest.mark.parametrize("pods", [20, 40, 160], ids="{} pods".format)
def test_work_is_bounded(pods: int) -> None:
    drawn, work = np.random.default_rng(1), Work()
    table = drawn.uniform(0, 0.1, (pods, pods))
    node = Pods(table.tolist(), [0.1] * pods, [1] * pods).on([pods, pods])
    with work.counting():
        search = filled(node, [pods, pods])
        assert search is not None
        search.improve()
    assert search.left >= 0
    assert work.seconds / CALL < 150 * pods + 30_000


@given(NODES, st.integers(0, 5))
def test_a_pod_goes_elsewhere_where_that_is_worth_its_price(drawn: Drawn, price: int) -> None:
    excess, alone, sizes, capacities = drawn
    pods = Pods(excess, alone, sizes)
    known = pods.on(capacities)
    search = filled(known, capacities)
    if search is None:
        return
    homes = search.found().sockets
    elsewhere = np.full((len(pods.sizes), len(capacities)), price / 20)
    for socket, group in enumerate(homes):
        elsewhere[list(group), socket] = 0
    search = LocalSearch(known._replace(elsewhere=elsewhere), capacities, homes)
    before = search.found().cost
    search.improve()
    after = search.found()
    moved = sum(pod not in homes[socket] for socket, group in enumerate(after.sockets) for pod in group)
    assert after.cost == pytest.approx(pods.cost(capacities, [set(group) for group in after.sockets]))
    assert after.cost + price / 20 * moved <= before + 1e-9


def test_pods_that_are_alike_are_weighed_once() -> None:
    pods, sockets = 60, [30, 30]
    known = Pods(np.full((pods, pods), 0.02).tolist(), [0.0] * pods, [1] * pods).on(sockets)
    known = known._replace(elsewhere=np.zeros((pods, 2)))
    halves = [tuple(range(30)), tuple(range(30, pods))]
    one = LocalSearch(known._replace(number=[0] * pods, alike=[0] * pods), sockets, halves)
    each = LocalSearch(known, sockets, halves)
    before = each.left
    for search in (one, each):
        search.improve()
    assert 0 < 15 * (before - one.left) < before - each.left


@settings(max_examples=20)
@given(NODES, st.integers(0, 3))
def test_alike_or_not_nothing_gets_worse(drawn: Drawn, seed: int) -> None:
    _, alone, sizes, capacities = drawn
    kinds = np.random.default_rng(seed).integers(0, 2, len(sizes))
    table = np.array([[0.01, 0.06], [0.07, 0.23]])[np.ix_(kinds, kinds)]
    pods = Pods(table.tolist(), [alone[0]] * len(sizes), [sizes[0]] * len(sizes))
    for alike in (None, kinds.tolist()):
        search = filled(pods.on(capacities, alike), capacities)
        if search is None:
            return
        before = search.found().cost
        search.improve()
        found = search.found()
        assert found.cost <= before + 1e-9
        assert found.cost == pytest.approx(pods.cost(capacities, [set(group) for group in found.sockets]))
