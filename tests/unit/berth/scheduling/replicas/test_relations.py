"""Which pod sets are related, and what belongs together."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from berth.scheduling.replicas.problem import Rule
from berth.scheduling.replicas.relations import Relations
from berth.scheduling.replicas.rule import AntiAffinity
from tests.support.counts import HOST, problem


def apart(*rows: int) -> AntiAffinity:
    return AntiAffinity(domain=HOST, subjects=rows[:1], selects=rows[1:])


@pytest.mark.parametrize(
    ("edges", "rules", "related", "components"),
    [
        pytest.param([], [], [[0], [1], [2], [3]], [[0], [1], [2], [3]], id="nothing"),
        pytest.param([(0, 1)], [], [[0, 1], [0, 1], [2], [3]], [[0, 1], [2], [3]], id="an edge"),
        pytest.param(
            [(0, 1), (1, 2)], [], [[0, 1], [0, 1, 2], [1, 2], [3]], [[0, 1, 2], [3]], id="two ends are not related"
        ),
        pytest.param([], [apart(3, 0, 1)], [[0, 1, 3], [0, 1, 3], [2], [0, 1, 3]], [[0, 1, 3], [2]], id="a rule"),
        pytest.param([(0, 2)], [apart(2, 3)], [[0, 2], [1], [0, 2, 3], [2, 3]], [[0, 2, 3], [1]], id="both"),
        pytest.param([], [apart(1, 1)], [[0], [1], [2], [3]], [[0], [1], [2], [3]], id="a rule of one"),
    ],
)
def test_related(
    edges: list[tuple[int, int]], rules: list[Rule], related: list[list[int]], components: list[list[int]]
) -> None:
    relations = Relations(problem(1, 1, 1, 1, edges=edges), rules)
    assert [relations.of([row]) for row in range(4)] == related
    assert [[relations.between(row, other) for other in range(4)] for row in range(4)] == [
        [other in each for other in range(4)] for each in related
    ]
    assert relations.components(range(4)) == components


def test_what_has_nothing_to_place_joins_others_and_is_left_out() -> None:
    relations = Relations(problem(1, 1, 1, edges=[(0, 1), (1, 2)]), [])
    assert relations.components([0, 2]) == [[0, 2]]


def test_a_rule_of_everybody_is_kept_once() -> None:
    many = 3000
    asked = problem(*[1] * many)
    everybody = AntiAffinity(domain=np.arange(8), subjects=range(many), selects=range(many))
    tracemalloc.start()
    relations = Relations(asked, [everybody])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert relations.of([7]) == list(range(many))
    assert most < 10 << 20
