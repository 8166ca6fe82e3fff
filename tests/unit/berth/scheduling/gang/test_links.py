"""Shared links: which of them traffic between two nodes uses."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.gang import LinkModel

LINKS = LinkModel(
    names=("rack-1", "spine"),
    capacity=np.array([10.0, 20.0]),
    free=np.array([10.0, 20.0]),
    by_location={(0, 1): (1,)},
    by_node={0: (0,)},
)
WHERE = np.array([0, 1, 0], dtype=np.int32)


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
        table = LINKS.incidence(order, WHERE)
        for row, first in enumerate(order.tolist()):
            for column, second in enumerate(order.tolist()):
                assert tuple(np.flatnonzero(table[row, column])) == LINKS.path(first, second, WHERE)
