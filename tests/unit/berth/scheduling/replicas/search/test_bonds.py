"""Who must share a node, and who is placed before whom."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.replicas.rule import Affinity, AntiAffinity
from berth.scheduling.replicas.search.bonds import anchors_first, bonds
from tests.support.counts import HOST, ZONE, books_of, problem


def near(*subjects: int, to: list[int], domain: np.ndarray = HOST, weight: int | None = None) -> Affinity:
    return Affinity(domain=domain, subjects=subjects, selects=to, weight=weight)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(near(0, to=[1]), [(0, 1)], id="by host"),
        pytest.param(near(0, 2, to=[1]), [(0, 1), (2, 1)], id="two of them"),
        pytest.param(near(0, to=[1], domain=ZONE), [], id="by zone"),
        pytest.param(near(0, to=[1], domain=np.where(HOST < 2, HOST, -1)), [(0, 1)], id="nodes without the key"),
        pytest.param(near(0, to=[1, 2]), [], id="one of two"),
        pytest.param(near(0, to=[1, 3]), [], id="one of two, one of which is placed apart"),
        pytest.param(near(0, to=[1], weight=50), [], id="preferred"),
        pytest.param(near(0, 1, to=[1]), [(0, 1)], id="whoever is selected may be alone"),
        pytest.param(near(0, to=[3]), [], id="others"),
        pytest.param(AntiAffinity(domain=HOST, subjects=[0], selects=[1]), [], id="another rule"),
    ],
)
def test_who_must_share_a_node(rule: Affinity | AntiAffinity, expected: list[tuple[int, int]]) -> None:
    assert list(bonds(books_of(problem(1, 1, 1, 1, rules=[rule])), [0, 1, 2])) == expected


@pytest.mark.parametrize(
    ("rules", "ranks"),
    [
        pytest.param([], [0, 0, 0, 0], id="no rule"),
        pytest.param([near(0, to=[1]), near(1, to=[2]), near(2, to=[3], domain=ZONE)], [3, 2, 1, 0], id="a chain"),
        pytest.param([near(0, to=[2]), near(1, to=[2])], [1, 1, 0, 0], id="two near one"),
        pytest.param([near(0, to=[1, 3]), near(1, to=[2])], [2, 1, 0, 0], id="the longest way"),
        pytest.param([near(0, to=[1]), near(1, to=[0]), near(3, to=[2])], [0, 0, 0, 1], id="a circle"),
        pytest.param([near(0, 1, to=[1])], [1, 0, 0, 0], id="selected itself"),
        pytest.param([near(0, to=[1], weight=100)], [0, 0, 0, 0], id="preferred"),
    ],
)
def test_steps_to_the_end_of_the_chain(rules: list[Affinity], ranks: list[int]) -> None:
    assert anchors_first(books_of(problem(1, 1, 1, 1, rules=rules)), range(4)) == dict(enumerate(ranks))


def test_rules_that_select_many_are_left_out() -> None:
    books = books_of(problem(*[1] * 6, rules=[near(0, to=[1, 2, 3, 4, 5])]))
    assert not any(anchors_first(books, range(6)).values())
