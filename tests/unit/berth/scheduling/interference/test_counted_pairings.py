"""The best pairings by counts: of few pods exactly, of more such that nobody and no two make them better."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference import counted_pairings
from berth.scheduling.interference.assignment import EXACT_PODS
from berth.scheduling.interference.counted_pairings import CountedPairings
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.slowdown import SlowdownModel, Workload

LETTERS = [Workload("", letter) for letter in InterferenceClass]
JUDGE = LeastSlowdown(SlowdownModel(), LETTERS)
SOCKETS = st.integers(1, 9)


def pairings(caches: int = 1, *, more: bool = True) -> CountedPairings:
    return CountedPairings(JUDGE.group_costs(LETTERS, caches, more=more))


def together(own: CountedPairings, pods: list[Workload]) -> int:
    return sum(own.costs.strides[LETTERS.index(pod)] for pod in pods)


@given(st.lists(st.sampled_from(LETTERS), max_size=EXACT_PODS), SOCKETS, st.integers(1, 2), st.booleans())
def test_of_few_pods_it_is_the_best(pods: list[Workload], sockets: int, caches: int, more: bool) -> None:
    own, count = pairings(caches, more=more), len(pods)
    found = own.best(together(own, pods), sockets)
    best = JUDGE.pairing(pods, [0] * count, [1] * sockets, caches=[caches] * sockets, more=more)
    assert found.cost == pytest.approx(best.cost if best else 0.0)
    assert sum(found.groups) == together(own, pods)
    assert len(found.groups) <= sockets
    assert sum(map(own.costs.cost, found.groups)) == pytest.approx(found.cost)


@given(st.lists(st.sampled_from(LETTERS), min_size=EXACT_PODS + 1, max_size=30), SOCKETS)
def test_of_many_nobody_and_no_two_make_it_better(pods: list[Workload], sockets: int) -> None:
    own = pairings()
    found = own.best(together(own, pods), sockets)
    assert sum(found.groups) == together(own, pods)
    assert len(found.groups) <= sockets
    everywhere = [*found.groups, *[0] * (sockets - len(found.groups))]
    assert own.best_change(everywhere) is None


def test_of_many_it_is_as_good_as_a_search_that_adds_the_pods_one_by_one() -> None:
    own, ours, others = pairings(), 0.0, 0.0
    for number in range(60):
        pods = sorted(LETTERS[(number * at * 7 + at // 3) % 4] for at in range(9 + number % 12))
        sockets = (2, 4, 8)[number % 3]
        ours += own.best(together(own, pods), sockets).cost
        other = JUDGE.pairing_of_many(pods, [0] * len(pods), [1] * sockets)
        assert other is not None
        others += other.cost
    assert ours <= others


@given(st.lists(st.sampled_from(LETTERS), min_size=9, max_size=20), st.lists(st.integers(0, 19), max_size=3), SOCKETS)
def test_it_does_not_matter_what_was_asked_before(pods: list[Workload], before: list[int], sockets: int) -> None:
    own, other = pairings(), pairings()
    for count in before:
        own.best(together(own, pods[:count]), sockets)
    assert own.best(together(own, pods), sockets) == other.best(together(other, pods), sockets)


def test_each_is_worked_out_once_and_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    own = pairings()
    pods = together(own, LETTERS * 5)
    first = own.best(pods, 4)
    assert own.looked_at == 1 + 20 - EXACT_PODS
    assert own.best(pods, 4) == first
    assert own.looked_at == 1 + 20 - EXACT_PODS
    monkeypatch.setattr(counted_pairings, "REMEMBERED", 5)
    for count in range(1, 20):
        own.best(together(own, LETTERS * count), 4)
        assert len(own._known) <= 13
    assert own.best(pods, 4) == first
