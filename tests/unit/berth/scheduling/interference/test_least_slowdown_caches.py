"""Sockets of several last-level caches: what pods cost there, by one pod after another and every assignment."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from math import inf
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference import least_slowdown, node_costs
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.node_costs import NodeCosts, alike
from berth.scheduling.interference.residents import Kind, Layout, Resident
from berth.scheduling.interference.slowdown import SlowdownModel, Workload, harm

A, B, C, D = (Workload("", letter) for letter in InterferenceClass)
MODEL = SlowdownModel()


class Node(NamedTuple):
    pods: list[Workload]
    sizes: list[int]
    capacities: list[int]
    caches: list[int]

    def cost(self, at: int, group: Sequence[int], *, price: float = 0.0) -> float:
        """What some pods cost on a socket: each suffers from each, by half in another cache."""
        capacity, caches = self.capacities[at], self.caches[at]
        if sum(self.sizes[pod] for pod in group) > capacity:
            return inf
        if len(group) == 1 and self.sizes[group[0]] < capacity:
            return price
        pairs = list(combinations(range(len(group)), 2))
        near = sum(one % caches == other % caches for one, other in pairs) / max(1, len(pairs))
        weight = 0.5 + 0.5 * near
        if caches > 1 and any(self.sizes[pod] > capacity / caches for pod in group):
            weight = 1.0
        slowdowns = [
            1 + weight * sum(MODEL.excess(self.pods[pod], self.pods[other]) for other in group if other != pod)
            for pod in group
        ]
        return sum(map(harm, slowdowns))

    def alone(self, at: int, pod: int, likely: Sequence[Workload]) -> float:
        """Half of what a pod and a likely partner would cost there, one that fits into a cache."""
        halves = []
        for partner in likely:
            both = Node([self.pods[pod], partner], [self.sizes[pod], 0], self.capacities, self.caches)
            halves.append(both.cost(at, [0, 1]) / 2)
        return sum(halves) / max(1, len(halves))

    def total(self, groups: Sequence[Sequence[int]], judge: LeastSlowdown | None = None) -> float:
        likely = judge.likely if judge else ()
        return sum(
            self.cost(at, group, price=self.alone(at, group[0], likely) if len(group) == 1 else 0.0)
            for at, group in enumerate(groups)
        )

    def best(self, judge: LeastSlowdown | None = None) -> float:
        def groups(places: Sequence[int]) -> list[list[int]]:
            return [[pod for pod, at in enumerate(places) if at == place] for place in range(len(self.capacities))]

        every = product(range(len(self.capacities)), repeat=len(self.pods))
        return min((self.total(groups(places), judge) for places in every), default=0.0)


@st.composite
def nodes(draw: st.DrawFn, least: int = 0, most: int = 5) -> Node:
    pods = draw(st.lists(st.tuples(st.sampled_from([A, B, C, D]), st.integers(0, 5)), min_size=least, max_size=most))
    sockets = draw(st.lists(st.tuples(st.integers(4, 12), st.integers(1, 4)), min_size=1, max_size=3))
    return Node([pod for pod, _ in pods], [size for _, size in pods], *map(list, zip(*sockets, strict=True)))


@given(nodes(), st.booleans())
def test_the_best_pairing_is_the_best_of_all(node: Node, more: bool) -> None:
    judge = LeastSlowdown(MODEL, [A, D])
    found = judge.pairing(node.pods, node.sizes, node.capacities, caches=node.caches, more=more)
    assert (inf if found is None else found.cost) == pytest.approx(node.best(judge if more else None), abs=1e-6)
    if found is not None:
        assert node.total(found.sockets, judge if more else None) == pytest.approx(found.cost, abs=1e-6)


@given(nodes(), st.data())
def test_seats_are_where_those_that_are_there_suffer_least(node: Node, data: st.DataObject) -> None:
    now = [data.draw(st.none() | st.integers(0, len(node.capacities) - 1)) for _ in node.pods]
    judge = LeastSlowdown(MODEL)
    found = judge.seats(node.pods, node.sizes, node.capacities, now, caches=node.caches, price=0.0)
    if found is None:
        assert node.best() == inf
        return
    groups = [[pod for pod, at in enumerate(found) if at == place] for place in range(len(node.capacities))]
    assert node.total(groups) == pytest.approx(node.best(), abs=1e-6)


@settings(max_examples=60)
@given(nodes(1, 10), st.booleans())
def test_a_good_pairing_costs_what_it_says_and_no_less_than_the_best(node: Node, improve: bool) -> None:
    judge = LeastSlowdown(MODEL, [A, D])
    found = judge.pairing_of_many(node.pods, node.sizes, node.capacities, caches=node.caches, improve=improve)
    if found is not None:
        assert node.total(found.sockets, judge) == pytest.approx(found.cost, abs=1e-6)
        if len(node.pods) < 5:
            assert found.cost >= node.best(judge) - 1e-6


@settings(max_examples=60)
@given(nodes(1, 9), st.sampled_from([A, B, C, D]), st.integers(0, 5))
def test_one_more_pod_in_a_good_pairing(node: Node, newcomer: Workload, size: int) -> None:
    judge = LeastSlowdown(MODEL, [A, D])
    before = judge.pairing_of_many(node.pods, node.sizes, node.capacities, caches=node.caches)
    if before is not None:
        grown = node._replace(pods=[*node.pods, newcomer], sizes=[*node.sizes, size])
        found = judge.pairing_with(before, grown.pods, grown.sizes, grown.capacities, caches=grown.caches)
        if found is not None:
            assert grown.total(found.sockets, judge) == pytest.approx(found.cost, abs=1e-6)


@pytest.mark.parametrize("caches", [1, 2, 8])
@pytest.mark.parametrize("one", [B, C, D], ids=["B", "C", "D"])
@pytest.mark.parametrize("sockets", [1, 2])
def test_an_empty_node_is_no_dearer_than_a_socket_where_somebody_suffers(
    caches: int, one: Workload, sockets: int
) -> None:
    costs = NodeCosts(LeastSlowdown(MODEL, [A, B, C, D]))
    layout = Layout((32000,) * sockets, True, (caches,) * sockets if caches > 1 else ())
    kinds = [Kind(layout, ()), Kind(layout, (Resident(D, 1000),) * sockets)]
    every = np.ones(2, dtype=np.bool_)
    empty, taken = costs.added(Resident(one, 1000), np.arange(2, dtype=np.int32), kinds, every, every).tolist()
    assert 0 < empty < taken


def test_exact_or_not_a_node_costs_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node([D, D, A, A, B, C], [1] * 6, [8, 8], [2, 4])
    exact = LeastSlowdown(MODEL, [A, D]).pairing(node.pods, node.sizes, node.capacities, caches=node.caches)
    monkeypatch.setattr(least_slowdown, "EXACT_PODS", 1)
    part_by_part = LeastSlowdown(MODEL, [A, D]).pairing(node.pods, node.sizes, node.capacities, caches=node.caches)
    assert exact is not None
    assert part_by_part is not None
    assert part_by_part.cost == pytest.approx(exact.cost)


def test_where_sockets_have_several_caches_none_is_known_to_be_settled() -> None:
    groups = [[A] * 5, [D] * 5]
    judge = LeastSlowdown(MODEL)
    judge.settled(groups, price=100.0)
    assert judge.settled(groups, price=100.0)
    assert not judge.settled(groups, caches=[2, 2], price=100.0)


def kind(node: Node) -> Kind:
    residents = sorted(Resident(pod, size) for pod, size in zip(node.pods, node.sizes, strict=True))
    return Kind(Layout(tuple(node.capacities), True, tuple(node.caches)), tuple(residents))


@given(nodes())
def test_what_stands_for_a_node_costs_the_same(node: Node) -> None:
    judge = LeastSlowdown(MODEL, [A, D])
    best = node.best(judge)
    if node.pods and best < inf:
        assert NodeCosts(judge).cost(kind(node)) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize(
    ("sizes", "caches", "stands"),
    [
        pytest.param([1, 2], [2, 2], Layout((1, 1), True, (2, 2)), id="each fits into a cache"),
        pytest.param([1, 5], [2, 2], None, id="one is too large for a cache"),
        pytest.param([1, 2], [2, 3], None, id="sockets differ"),
    ],
)
def test_sizes_matter_where_a_cache_is_too_small(sizes: list[int], caches: list[int], stands: Layout | None) -> None:
    this = kind(Node([A, D], sizes, [8, 8], caches))
    assert alike(this) == (this if stands is None else Kind(stands, (Resident(A, 0), Resident(D, 0))))


def test_many_pods_and_few_cost_by_the_same_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node([D, A, D, B, C, A], [1] * 6, [6, 6], [2, 2])
    judge = LeastSlowdown(MODEL, [A, D])
    few = NodeCosts(judge).cost(kind(node))
    monkeypatch.setattr(node_costs, "EXACT", 1)
    assert NodeCosts(judge).cost(kind(node)) == pytest.approx(few)


def test_what_is_made_quickly_or_of_a_pod_less_counts_caches_too(monkeypatch: pytest.MonkeyPatch) -> None:
    judge, few = LeastSlowdown(MODEL, [A, D]), Node([D, D, D], [1] * 3, [8], [4])
    many = few._replace(pods=[D] * 4, sizes=[1] * 4)
    before, after = (NodeCosts(judge).cost(kind(node)) for node in (few, many))
    assert NodeCosts(judge).at_most(kind(many)) == pytest.approx(after)
    monkeypatch.setattr(node_costs, "EXACT", 1)
    added = NodeCosts(judge).added_to(Resident(D, 1), 0, [kind(few)])
    assert added[0] == pytest.approx(after - before)


def test_the_more_caches_the_less_two_cost_that_disturb_each_other() -> None:
    judge = LeastSlowdown(MODEL, [A, D])
    crowd = [D, D, D, D]
    costs = [NodeCosts(judge).cost(kind(Node(crowd, [1] * 4, [16], [caches]))) for caches in (1, 2, 4, 8)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[1] > costs[2] == costs[3]
