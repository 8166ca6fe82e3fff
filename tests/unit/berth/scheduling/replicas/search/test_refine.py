"""Moves between parts of a slice: who goes over, who makes room, and that nothing gets worse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduling.gang.budget import finish
from berth.scheduling.replicas.search.refine import FEW, Division, Links

Edges = list[tuple[int, int]]


def links_of(count: int, edges: Edges) -> Links:
    links: dict[int, dict[int, float]] = {row: {} for row in range(count)}
    for one, other in edges:
        links[one][other] = links[other][one] = links[one].get(other, 0.0) + 1.0
    return links


def refined(parts: list[list[int]], edges: Edges, sizes: list[int], room: int) -> list[list[int]]:
    division = Division(parts, links_of(len(sizes), edges), np.array(sizes)[:, None], np.array([room]))
    finish(division.refine())
    return sorted(division.parts)


def cut(parts: list[list[int]], edges: Edges) -> int:
    part = {row: number for number, content in enumerate(parts) for row in content}
    return sum(part[one] != part[other] for one, other in edges)


@pytest.mark.parametrize(
    ("parts", "edges", "sizes", "room", "expected"),
    [
        pytest.param([[0, 1], [2, 3]], [(1, 2), (1, 3)], [1] * 4, 3, [[0], [1, 2, 3]], id="goes over"),
        pytest.param([[0, 1], [2, 3]], [(1, 2), (1, 3)], [1, 2, 1, 1], 3, [[0], [1, 2], [3]], id="one comes to it"),
        pytest.param([[0, 1], [2]], [(0, 1), (1, 2)], [1] * 3, 2, [[0, 1], [2]], id="as many links are no reason"),
        pytest.param(
            [[0, 1], [2], [3]], [(0, 1), (0, 2), (0, 3)], [1, 2, 1, 1], 3, [[0, 2, 3], [1]], id="one makes room for two"
        ),
        pytest.param(
            [[0, 1], [2], [3]], [(0, 1), (0, 2)], [1, 2, 1, 1], 3, [[0, 1], [2], [3]], id="not for one like it"
        ),
        pytest.param(
            [[0, 1], [2], [3]], [(0, 1), (0, 2), (0, 3)], [1, 2, 2, 1], 3, [[0, 1], [2], [3]], id="only one has room"
        ),
        pytest.param(
            [[0, 1], [2, 4], [3]],
            [(0, 1), (0, 2), (0, 3), (2, 4)],
            [1, 2, 1, 1, 1],
            3,
            [[0, 1], [2, 4], [3]],
            id="what they leave counts",
        ),
        pytest.param(
            [[0, 1], [2], [3], [4]],
            [(0, 1), (0, 1), (0, 2), (0, 3), (2, 3), (0, 4)],
            [1, 2, 1, 1, 1],
            3,
            [[0, 2, 3], [1], [4]],
            id="links between those who come in",
        ),
        pytest.param(
            [[0, 1], [2], [3]],
            [(0, 1), (0, 2), (1, 2), (1, 3)],
            [1, 2, 1, 1],
            3,
            [[0, 2], [1, 3]],
            id="some come to who is put apart",
        ),
        pytest.param(
            [[0, 1, 2, 3], [4], [5]], [(0, 4), (0, 5)], [9, 9, 1, 1, 1, 1], 3, [[0, 1, 2, 3], [4], [5]], id="too large"
        ),
        pytest.param([[0], [1], [2]], [(0, 1), (1, 2), (0, 2)], [2] * 3, 3, [[0], [1], [2]], id="each by itself"),
    ],
)
def test_who_moves(
    parts: list[list[int]], edges: Edges, sizes: list[int], room: int, expected: list[list[int]]
) -> None:
    assert refined(parts, edges, sizes, room) == expected


@pytest.mark.parametrize(("others", "apart"), [(FEW - 4, True), (FEW - 3, False)])
def test_of_many_nobody_makes_room(others: int, apart: bool) -> None:
    parts = [[0, 1], [2], [3], *([row] for row in range(4, 4 + others))]
    found = refined(parts, [(0, 1), (0, 2), (0, 3)], [1, 2, 1, 1, *([3] * others)], 3)
    assert ([1] in found) is apart


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_more_is_cut_than_before_and_every_part_fits(data: st.DataObject) -> None:
    count, room = data.draw(st.integers(1, 9)), data.draw(st.integers(3, 8))
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))
    ends = st.integers(0, count - 1)
    pairs = data.draw(st.lists(st.tuples(ends, ends), max_size=15))
    edges = [(one, other) for one, other in pairs if one != other]
    before: list[list[int]] = []
    for row in range(count):
        here = [part for part in before if sum(sizes[other] for other in part) + sizes[row] <= room]
        part: list[int] = data.draw(st.sampled_from([*here, []]))
        if not part:
            before.append(part)
        part.append(row)
    after = refined([list(part) for part in before], edges, sizes, room)
    assert sorted(row for part in after for row in part) == list(range(count))
    assert all(sum(sizes[row] for row in part) <= room for part in after)
    assert cut(after, edges) <= cut(before, edges)
