"""Groups of pods by how many there are of each workload: what they cost, and what two sockets can win."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference import group_costs
from berth.scheduling.interference.closeness import closeness
from berth.scheduling.interference.group_costs import MOST, ROUNDING, STRIDE, GroupCosts, small_groups
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.slowdown import SlowdownModel, Workload

LETTERS = [Workload("", letter) for letter in InterferenceClass]
JUDGE = LeastSlowdown(SlowdownModel(), LETTERS)
COUNTS = st.lists(st.integers(0, 5), min_size=4, max_size=4)


def costs(caches: int = 1, *, more: bool = True) -> GroupCosts:
    return JUDGE.group_costs(LETTERS, caches, more=more)


def group(counts: list[int]) -> int:
    return sum(count * STRIDE**at for at, count in enumerate(counts))


def pods(counts: list[int]) -> list[Workload]:
    return [letter for letter, count in zip(LETTERS, counts, strict=True) for _ in range(count)]


@given(COUNTS, st.integers(1, 3))
def test_they_cost_what_the_model_says(counts: list[int], caches: int) -> None:
    together = closeness(caches, sum(counts))
    expected = JUDGE.on_socket(pods(counts), room=False, together=together)
    assert costs(caches, more=False).cost(group(counts)) == pytest.approx(expected)


@pytest.mark.parametrize("caches", [1, 2, 4])
@pytest.mark.parametrize("at", range(4), ids=list("ABCD"))
def test_one_alone_has_its_price_where_others_come(at: int, caches: int) -> None:
    one = [int(number == at) for number in range(4)]
    expected = JUDGE.on_socket(pods(one), room=True, together=closeness(caches, 2))
    assert costs(caches).cost(group(one)) == pytest.approx(expected)
    assert costs(caches, more=False).cost(group(one)) == 0


def test_nobody_costs_nothing_and_counts_are_told() -> None:
    assert costs().cost(0) == 0
    assert costs().counts(group([1, 0, MOST, 2])) == [1, 0, MOST, 2]


@given(COUNTS, COUNTS)
def test_the_best_change_is_the_best_of_one_and_of_two(one: list[int], other: list[int]) -> None:
    judge, first, second = costs(more=False), group(one), group(other)
    now, least = judge.cost(first) + judge.cost(second), 0.0
    nobody = [0] * 4
    moving = [nobody, *([int(at == number) for at in range(4)] for number in range(4))]
    for goes, comes in product(moving, repeat=2):
        here = [a - b + c for a, b, c in zip(one, goes, comes, strict=True)]
        there = [a + b - c for a, b, c in zip(other, goes, comes, strict=True)]
        if all(a >= b for a, b in zip(one + other, goes + comes, strict=True)):
            least = min(least, judge.cost(group(here)) + judge.cost(group(there)) - now)
    change = judge.best_change(first, second)
    assert change.cost == pytest.approx(least, abs=2 * ROUNDING)
    assert sum(change.after) == first + second
    assert sum(map(judge.cost, change.after)) == pytest.approx(now + change.cost)


def test_small_groups_ascend_from_nobody() -> None:
    groups, counts = small_groups(3, 2)
    assert groups == sorted(set(groups))
    assert groups[0] == 0
    assert groups == [group(each) for each in counts.tolist()]
    assert len(groups) == 10


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    judge, small = costs(), len(small_groups(4, 8).groups)
    monkeypatch.setattr(group_costs, "REMEMBERED", small + 50)
    expected = [judge.cost(group([count, 9, 0, 0])) for count in range(40)]
    for count in range(400):
        judge.cost(group([count, 0, 10, 0]))
        judge.best_change(group([count, 0, 1, 0]), group([1, 2, 0, 0]))
        assert len(judge._costs) <= small + 50
        assert len(judge._changes) <= small + 50
    assert [judge.cost(group([count, 9, 0, 0])) for count in range(40)] == expected
