"""Required affinity that no order of binding meets: who is told apart, and that a plan knows at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.replicas_core.brute import best
from bench.replicas_core.small import small_problem
from berth.scheduling.gang.budget import UNLIMITED, Budget, finish
from berth.scheduling.replicas.hopeless import never_come, without_hopeless
from berth.scheduling.replicas.plan import plan
from berth.scheduling.replicas.rule import Affinity
from tests.support.counts import ZONE, problem

SOMEBODY = np.eye(1, len(ZONE), dtype=np.int64)[0]


def wants(row: int, *selects: int, placed: bool = False, weight: int | None = None) -> Affinity:
    return Affinity(domain=ZONE, subjects=[row], selects=selects, placed=SOMEBODY if placed else None, weight=weight)


@pytest.mark.parametrize(
    ("rules", "never"),
    [
        pytest.param([], set(), id="no-rule"),
        pytest.param([wants(0)], {0}, id="nobody-is-selected"),
        pytest.param([wants(0, placed=True)], set(), id="somebody-is-there"),
        pytest.param([wants(0, 1)], set(), id="one-after-the-other"),
        pytest.param([wants(0, 0)], set(), id="the-first-of-its-kind"),
        pytest.param([wants(0, 1), wants(1, 0)], {0, 1}, id="each-after-the-other"),
        pytest.param([wants(0, 1), wants(1, 0), wants(1, 2)], {0, 1}, id="one-of-two-rules-is-met"),
        pytest.param([wants(0, 1), wants(1, 0, 1)], set(), id="one-of-them-may-be-first"),
        pytest.param([wants(0, 1), wants(1, 0, placed=True)], set(), id="one-of-them-has-company"),
        pytest.param([wants(0, 1), wants(1, 2), wants(2, 0)], {0, 1, 2}, id="in-a-circle"),
        pytest.param([wants(0, 1), wants(1, 1), wants(2, 0)], set(), id="in-a-row"),
        pytest.param([wants(2, 0), wants(0, 1), wants(1, 0)], {0, 1, 2}, id="after-some-who-never-come"),
        pytest.param([wants(0, 3)], {0}, id="of-whom-there-are-to-be-none"),
        pytest.param([wants(0, 1, weight=100), wants(1, 0, weight=1)], set(), id="preferred"),
    ],
)
def test_who_never_comes(rules: list[Affinity], never: set[int]) -> None:
    asked = problem(2, 2, 2, 0, rules=rules)
    assert finish(never_come(asked.pod_sets, rules, UNLIMITED)) == never
    masks = [each.mask for each in finish(without_hopeless(asked, UNLIMITED)).pod_sets]
    assert {row for row, mask in enumerate(masks) if mask is not None and not mask.any()} == never
    left = [each.replicas for each in finish(without_hopeless(asked, UNLIMITED, whole=False)).pod_sets]
    assert left == [0 if row in never else each.replicas for row, each in enumerate(asked.pod_sets)]


@given(st.lists(st.lists(st.integers(0, 3), max_size=2), min_size=4, max_size=4))
def test_others_come_in_some_order_and_these_in_none(selects: list[list[int]]) -> None:
    rules = [wants(row, *each) for row, each in enumerate(selects) if each]
    never, came = finish(never_come(problem(1, 1, 1, 1).pod_sets, rules, UNLIMITED)), set[int]()
    for _ in selects:
        came |= {row for row, each in enumerate(selects) if not each or came & {*each} or row in each}
    assert never == {0, 1, 2, 3} - came


class Looked(list[int]):
    """Pod sets that a rule selects; counts how often they are gone through."""

    times = 0

    def __iter__(self) -> Iterator[int]:
        Looked.times += 1
        return super().__iter__()


def test_long_chains_are_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four thousand workloads each of which comes after the next one took 4.6 s at a stretch."""
    monkeypatch.setattr(Looked, "times", 0)
    chain = [Affinity(domain=ZONE, subjects=[row], selects=Looked([row + 1])) for row in range(199)]
    clock, sets = count(), problem(*[1] * 200).pod_sets
    budget = Budget(lambda: float(next(clock)), 1e9)
    assert finish(never_come(sets, chain, budget)) == set()
    assert budget.pauses >= len(chain)
    assert Looked.times <= 2 * len(chain)


def test_where_nobody_waits_pod_sets_are_not_gone_through() -> None:
    clock = count()
    budget = Budget(lambda: float(next(clock)), 1e9)
    assert finish(never_come(problem(*[1] * 200).pod_sets, [wants(0, 0), wants(1, 2, weight=1)], budget)) == set()
    assert budget.pauses <= 2


@pytest.mark.parametrize("partial", [False, True])
def test_a_plan_knows_at_once(*, partial: bool) -> None:
    """Three workloads of three replicas: to try their plans takes 20,000 steps, and more."""
    clock = count()
    rules = [wants(0, 1), wants(1, 0)]
    asked = problem(3, 3, 3, edges=[(0, 1), (1, 2)], rules=rules)
    made = finish(plan(asked, partial=partial, budget=Budget(lambda: float(next(clock)), 1e9)))
    assert not made.complete
    assert next(clock) < 2_000


@pytest.mark.parametrize("seed", [6, 77, 96, 205, 265, 302, 316, 342, 376, 592])
def test_others_are_placed_as_well_as_without_those_who_never_come(seed: int) -> None:
    """Exact search finds no plan of all, and those of the rest were what other searches came upon."""
    asked = small_problem(seed)
    *others, last = asked.pod_sets
    hopeless = Affinity(domain=np.arange(asked.nodes.size), subjects=[len(others)], selects=[])
    made = finish(plan(replace(asked, rules=[*asked.rules, hopeless]), partial=True))
    lowest, state = best(replace(asked, pod_sets=[*others, replace(last, replicas=0)]))
    assert state is not None
    assert made.missing == made.blocked == (*[0] * len(others), last.replicas)
    assert made.objective == pytest.approx(lowest)


@pytest.mark.parametrize("partial", [False, True])
def test_where_nobody_can_come_nobody_is_placed(*, partial: bool) -> None:
    made = finish(plan(problem(3, 2, edges=[(0, 1)], rules=[wants(0, 1), wants(1, 0)]), partial=partial))
    assert made.missing == made.blocked == (3, 2)
    assert made.counts == ({}, {})


def test_nobody_is_placed_where_all_are_to_be_and_who_is_in_the_way_is_told() -> None:
    made = finish(plan(problem(2, 1, 3, rules=[wants(1)])))
    assert (made.missing, made.blocked) == ((2, 1, 3), (0, 1, 0))
    assert made.counts == ({}, {}, {})
