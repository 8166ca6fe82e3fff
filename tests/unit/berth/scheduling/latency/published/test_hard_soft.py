"""The published rule with both limits: the soft condition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.latency.classification import Limits
from berth.scheduling.latency.published import hard
from berth.scheduling.latency.published.hard_soft import leave
from berth.scheduling.latency.published.search import Visited

LIMITS = Limits(40, 30)


def unseen(count: int) -> list[Visited]:
    return [Visited(f"u{number}") for number in range(count)]


def dropped(count: int) -> list[Visited]:
    return [Visited(f"d{number}", 35, 0, 1, True) for number in range(count)]


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        pytest.param([Visited("a", 35, 1), *unseen(7)], ("a",), id="hard-valid, and many others may be valid"),
        pytest.param([Visited("a", 21, 1), *unseen(7)], (), id="soft-valid"),
        pytest.param([Visited("a", 70, 1), *unseen(7)], ("a",), id="invalid"),
        pytest.param([Visited("a", 35, 1), *dropped(3), *unseen(4)], ("a",), id="half of eight are left without it"),
        pytest.param([Visited("a", 35, 1), *dropped(4), *unseen(3)], (), id="fewer than half would be left"),
        pytest.param(
            [Visited("a", 35, 1), *(Visited(f"i{at}", 70) for at in range(4)), *unseen(3)],
            (),
            id="invalid ones do not count",
        ),
        pytest.param(
            [
                Visited("a", 35, 1),
                Visited("b", 36, 1),
                Visited("c", 39, 1),
                *(Visited(f"s{at}", 15) for at in range(3)),
            ],
            ("c", "b", "a"),
            id="the worst go first while it holds",
        ),
        pytest.param(
            [Visited("a", 35, 1), Visited("b", 36, 1), *dropped(1), *unseen(1)], ("b",), id="until it does not"
        ),
        pytest.param(
            [Visited("a", 70, 1), Visited("b", 35, 1), *unseen(1)], ("a",), id="one of three is less than half"
        ),
    ],
)
def test_which_nodes_are_left(nodes: list[Visited], left: tuple[str, ...]) -> None:
    assert leave(nodes, LIMITS) == left


NODES = st.lists(
    st.tuples(st.none() | st.integers(10, 60), st.integers(0, 2), st.booleans()), min_size=1, max_size=10
).map(lambda rows: [Visited(f"n{at}", far, pods, 0, gone) for at, (far, pods, gone) in enumerate(rows)])


@given(NODES)
def test_what_the_hard_limit_leaves_and_beyond_that_only_hard_valid_ones(nodes: list[Visited]) -> None:
    left = leave(nodes, LIMITS)
    invalid = hard.leave(nodes, LIMITS)
    by_name = {node.node: node for node in nodes}
    assert left[: len(invalid)] == invalid
    assert all(30 < (by_name[name].microseconds or 0) <= 40 for name in left[len(invalid) :])
    assert len(set(left)) == len(left)
