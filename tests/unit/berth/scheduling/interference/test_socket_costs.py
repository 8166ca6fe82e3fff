"""What a socket costs with one pod more, less or another: as the slowdown model says, whoever is there."""

from __future__ import annotations

import tracemalloc
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference import socket_costs
from berth.scheduling.interference.closeness import Caches, Need, closeness
from berth.scheduling.interference.excess_table import ExcessTable
from berth.scheduling.interference.slowdown import SlowdownModel, Workload
from berth.scheduling.interference.socket_costs import Company, SocketCosts

NAMES = ["shop/a", "shop/b", "shop/c"]
PODS = [Workload(name, InterferenceClass.D) for name in NAMES] + [Workload("", letter) for letter in InterferenceClass]
MODEL = SlowdownModel(
    {
        one: {other: 1.02 + 0.05 * (at + 2 * by) for by, other in enumerate(NAMES) if by != at}
        for at, one in enumerate(NAMES)
    }
)
ALONE = [0.3 + 0.1 * number for number in range(len(PODS))]
NUMBERS = st.integers(0, len(PODS) - 1)


def costs(caches: int = 1, spanning: set[int] | None = None) -> SocketCosts:
    several = Caches(caches, [Need(number in (spanning or ())) for number in range(len(PODS))]) if caches > 1 else None
    return SocketCosts(ExcessTable(MODEL).between(PODS), np.array(ALONE), several)


def expected(company: list[int]) -> object:
    """One pod after another."""
    alone = len(company) == 1
    return pytest.approx(ALONE[company[0]] if alone else MODEL.harm([PODS[number] for number in company]), abs=1e-9)


@given(st.lists(NUMBERS, max_size=7), NUMBERS)
def test_every_change_of_one_pod_is_weighed(company: list[int], newcomer: int) -> None:
    there = costs().of(tuple(sorted(company)))
    assert there.one_more[0] == expected(company)
    assert there.one_more[1 + newcomer] == expected([*company, newcomer])
    for gone in set(company):
        staying = list(company)
        staying.remove(gone)
        assert there.without(gone)[0] == expected(staying)
        assert there.without(gone)[1 + newcomer] == expected([*staying, newcomer])


@given(st.lists(NUMBERS, max_size=7), NUMBERS, st.integers(2, 4), st.sets(NUMBERS, max_size=2))
def test_pods_in_different_caches_count_less(company: list[int], newcomer: int, count: int, spanning: set[int]) -> None:
    known = costs(count, spanning)

    def cost(pods: list[int]) -> object:
        if len(pods) == 1:
            return pytest.approx(ALONE[pods[0]], abs=1e-9)
        weight = 1.0 if spanning & set(pods) else closeness(count, len(pods))
        return pytest.approx(MODEL.harm([PODS[number] for number in pods], together=weight), abs=1e-9)

    there = known.of(tuple(sorted(company)))
    assert there.one_more[0] == cost(company)
    assert there.one_more[1 + newcomer] == cost([*company, newcomer])
    for gone in set(company):
        staying = list(company)
        staying.remove(gone)
        assert there.without(gone)[0] == cost(staying)
        assert there.without(gone)[1 + newcomer] == cost([*staying, newcomer])


def test_a_company_is_weighed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[tuple[int, ...]] = []
    known = costs()

    def counted(pods: tuple[int, ...], *figures: Any) -> Company:
        weighed.append(pods)
        return Company(pods, *figures)

    monkeypatch.setattr(socket_costs, "Company", counted)
    for company in [(0, 1), (0, 1, 1), (0, 1)]:
        known.of(company)
    assert weighed == [(0, 1), (0, 1, 1)]


COMPANIES = st.lists(NUMBERS, max_size=4).map(lambda pods: tuple(sorted(pods)))


def changes(known: SocketCosts, one: tuple[int, ...], other: tuple[int, ...]) -> list[float]:
    """What both sockets cost more after each move between them and each exchange, one after another."""

    def cost(pods: list[int]) -> float:
        return float(known.of(tuple(sorted(pods))).one_more[0])

    def less(pods: tuple[int, ...], at: int) -> list[int]:
        return [*pods[:at], *pods[at + 1 :]]

    now = cost(list(one)) + cost(list(other))
    return [
        *(cost(less(one, at)) + cost([*other, pod]) - now for at, pod in enumerate(one)),
        *(cost([*one, pod]) + cost(less(other, at)) - now for at, pod in enumerate(other)),
        *(
            cost([*less(one, at), come]) + cost([*less(other, by), gone]) - now
            for at, gone in enumerate(one)
            for by, come in enumerate(other)
        ),
    ]


@given(COMPANIES, COMPANIES, st.integers(1, 3), st.sets(NUMBERS, max_size=2))
def test_the_best_that_two_sockets_can_do(
    one: tuple[int, ...], other: tuple[int, ...], caches: int, spanning: set[int]
) -> None:
    known = costs(caches, spanning)
    least = min(changes(known, one, other), default=np.inf)
    assert known.of(one).least_change(known.of(other)) == pytest.approx(least, abs=1e-9)


@given(st.lists(COMPANIES, min_size=1, max_size=4), st.sampled_from([0.0, 0.2, 1.0, 5.0]))
def test_sockets_are_settled_where_no_two_can_win_the_price(sockets: list[tuple[int, ...]], price: float) -> None:
    known = costs()
    there = [known.of(pods) for pods in sockets]
    won = [-change for pair in combinations(sockets, 2) for change in changes(known, *pair)]
    answers = [known.settled(there, price=price) for _ in range(len(sockets) ** 2)]
    assert answers[-1] == (max(won, default=0.0) <= price + 1e-9)
    assert answers[-1] or not any(answers)  # no until enough is known


def test_what_two_sockets_can_do_is_found_out_a_few_at_a_time_and_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    known, asked = costs(), list[tuple[int, ...]]()
    there = [known.of((number,) * 2) for number in range(len(PODS))]
    least = Company.least_change

    def counted(one: Company, other: Company) -> float:
        asked.append((*one.pods, *other.pods))
        return least(one, other)

    monkeypatch.setattr(Company, "least_change", counted)
    for _ in range(10):
        before = len(asked)
        known.settled(there, price=100.0)
        assert len(asked) - before <= socket_costs.NEW_CHANGES
    assert known.settled(there, price=100.0)
    assert len(asked) == len(set(asked)) == len(PODS) * (len(PODS) - 1) / 2


def test_of_large_companies_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    known = costs()
    there = [known.of((0, 1, 2)), known.of(())]
    assert not known.settled(there)
    assert known.settled(there, price=100.0)
    monkeypatch.setattr(socket_costs, "LARGE", there[0].figures - 1)
    assert not known.settled(there, price=100.0)


def test_what_sockets_can_do_is_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_costs, "CHANGES", 3)
    known = costs()
    for one, other in combinations(range(len(PODS)), 2):
        assert known.settled([known.of((one,)), known.of((other,))], price=100.0)
        assert len(known._changes) <= 3


@pytest.mark.parametrize("remembered", [0, 960], ids=["less than one company", "three companies"])
def test_what_is_remembered_is_bounded(remembered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_costs, "REMEMBERED", remembered)
    known = costs()
    for number in range(len(PODS)):
        for more in range(4):
            assert known.of((number,) * (1 + more)).one_more[0] == expected([number] * (1 + more))
    assert len(known._known) == max(1, remembered // 320)


@pytest.mark.parametrize(("kinds", "most"), [(3, 20), (7, 5)])
def test_companies_of_few_kinds_take_no_more_memory(kinds: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not figures is most of them: 4096 companies of three kinds took twelve times as much."""
    monkeypatch.setattr(socket_costs, "REMEMBERED", 1 << 16)
    known = SocketCosts(np.full((kinds, kinds), 0.1), np.ones(kinds))
    tracemalloc.start()
    try:
        for size in range(1, most + 1):
            for company in combinations_with_replacement(range(kinds), size):
                known.of(company).without(company[0])
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 1.5 * 8 * socket_costs.REMEMBERED
