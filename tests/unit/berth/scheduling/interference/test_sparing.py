"""The choice "sparing" as it was published."""

from __future__ import annotations

import pytest

from berth.api.interference import InterferenceClass
from berth.scheduling.interference.sparing import score

A, B, C, D = InterferenceClass


@pytest.mark.parametrize(
    ("newcomers", "in_order", "alike"),
    [
        pytest.param([C, D], [D, C], [A, B], id="contentious to D, then C"),
        pytest.param([A, B], [A, B], [C, D], id="quiet to A, then B"),
    ],
)
def test_like_goes_to_like(
    newcomers: list[InterferenceClass], in_order: list[InterferenceClass], alike: list[InterferenceClass]
) -> None:
    for newcomer in newcomers:
        first, second = (score(newcomer, [resident]) for resident in in_order)
        assert 1 == score(newcomer, []) > first > second > 0
        assert {score(newcomer, [resident]) for resident in alike} == {0}


def test_the_mean_of_the_residents_counts() -> None:
    assert score(C, [C, C]) == score(C, [C]) > score(C, [C, A]) > score(C, [A, B])
