"""Shared links: which of them traffic between two nodes uses."""

from __future__ import annotations

import numpy as np
import pytest

from berth.network.peers import LinkShortage
from berth.scheduling.framework import reasons
from berth.scheduling.gang import LinkModel

LINKS = LinkModel(
    names=("rack-1", "spine"),
    capacity=np.array([10.0, 20.0]),
    free=np.array([10.0, 20.0]),
    by_location={(0, 1): (1,)},
    by_node={0: (0,)},
)
WHERE = np.array([0, 1, 0], dtype=np.int32)


def rows(*nodes: int) -> np.ndarray:
    return np.isin(np.arange(5), nodes)


def test_reasons_name_three_links_and_the_rest_is_one() -> None:
    links = LinkModel(tuple("abcde"), np.full(5, 9e9), np.full(5, 9e9))
    short = [LinkShortage(number, 1500.0 * (number + 1), rows(number)) for number in range(5)]
    free = [0, -7, 10**9, 5, 5]
    found = {reason: np.flatnonzero(nodes).tolist() for reason, nodes in links.rejections(short, free)}
    assert found == {
        reasons.link_too_narrow("a", 1500, 0): [0],
        reasons.link_too_narrow("b", 3000, 0): [1],
        reasons.link_too_narrow("c", 4500, 10**9): [2],
        reasons.LINK_TOO_NARROW: [3, 4],
    }


def test_nodes_with_a_link_of_their_own_are_a_kind_of_their_own() -> None:
    assert len(set(LINKS.kinds(WHERE).tolist())) == 3
    apart = LinkModel(LINKS.names, LINKS.capacity, LINKS.free, by_location={(0, 1): (1,)})
    assert apart.kinds(WHERE).tolist() == WHERE.tolist()


@pytest.mark.parametrize(
    ("nodes", "links", "used"),
    [
        pytest.param([0, 1, 2], [0, 1], [0, 1], id="all"),
        pytest.param([1, 2], [0, 1], [1], id="no-node-with-a-link-of-its-own"),
        pytest.param([0, 2], [0, 1], [0], id="one-location"),
        pytest.param([0, 1], [1], [1], id="of-some"),
    ],
)
def test_links_that_some_nodes_use(nodes: list[int], links: list[int], used: list[int]) -> None:
    assert LINKS.among(np.array(nodes), WHERE, np.array(links)).tolist() == used


class TestLinks:
    @pytest.mark.parametrize(
        ("first", "second", "path"),
        [
            pytest.param(0, 0, (), id="same-node"),
            pytest.param(0, 1, (0, 1), id="rack-and-spine"),
            pytest.param(1, 0, (0, 1), id="either-direction"),
            pytest.param(0, 2, (0,), id="same-location"),
            pytest.param(1, 2, (1,), id="spine-only"),
        ],
    )
    def test_path(self, first: int, second: int, path: tuple[int, ...]) -> None:
        assert LINKS.path(first, second, WHERE) == path

    def test_incidence_says_the_same_as_path(self) -> None:
        order = np.array([2, 0, 1], dtype=np.int32)
        table = LINKS.incidence(order, WHERE, np.arange(2))
        np.testing.assert_array_equal(LINKS.incidence(order, WHERE, np.array([1])), table[:, :, 1:])
        for row, first in enumerate(order.tolist()):
            for column, second in enumerate(order.tolist()):
                assert tuple(np.flatnonzero(table[row, column])) == LINKS.path(first, second, WHERE)
