"""Plans beside the optimum: what is counted, and that the two agree on what cannot be."""

from __future__ import annotations

import pytest

from bench.replicas.comparison import Comparison, Outcome, compare, page

OUTCOMES = [
    Outcome(0, best=1.0, planned=1.0, broken=0),
    Outcome(1, best=1.0, planned=4.0, broken=0),
    Outcome(2, best=2.0, planned=None, broken=0),
    Outcome(3, best=None, planned=None, broken=0),
    Outcome(4, best=2.0, planned=2.0, broken=1),
]


def test_what_counts_as_missed() -> None:
    assert [item.seed for item in OUTCOMES if item.missed] == [2, 4]


def test_figures() -> None:
    rows = dict(line.strip("| ").split(" | ") for line in Comparison(OUTCOMES).lines())
    assert list(rows.values()) == ["5", "4", "2 (50.0%)", "1 (25.0%)", "5", "2", "1"]


def test_seeds_to_look_at() -> None:
    text = page(Comparison(OUTCOMES))
    assert "Seeds without a placement: 2, 4" in text
    assert "Seeds farthest from the optimum: 1 (4.00 for 1.00), 0 (1.00 for 1.00)" in text


def test_nothing_compared() -> None:
    assert "Seeds without a placement: none\nSeeds farthest from the optimum: none" in page(Comparison([]))


@pytest.mark.parametrize("preferences", [False, True], ids=["any node", "preferences"])
@pytest.mark.parametrize("grown", [False, True], ids=["new", "grown"])
def test_no_plan_is_better_than_the_optimum_or_breaks_a_rule(grown: bool, preferences: bool) -> None:
    for item in compare(range(25), grown=grown, preferences=preferences).outcomes:
        assert item.broken == 0, item
        if item.planned is not None:
            assert item.best is not None, item
            assert item.planned >= item.best - 1e-6, item
