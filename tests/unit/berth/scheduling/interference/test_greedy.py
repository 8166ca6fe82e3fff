"""The choice "greedy" as it was published."""

from __future__ import annotations

import pytest

from berth.api.interference import InterferenceClass
from berth.scheduling.interference.greedy import score

A, B, C, D = InterferenceClass


@pytest.mark.parametrize("newcomer", [A, B, C])
def test_nodes_that_do_no_harm_come_first(newcomer: InterferenceClass) -> None:
    nodes = [[], [A], [A, B], [B], [B, C], [C], [D]]
    scores = [score(newcomer, residents) for residents in nodes]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)


def test_a_d_wants_an_empty_node_and_finds_all_others_alike() -> None:
    assert score(D, []) == 1
    assert {score(D, [resident]) for resident in InterferenceClass} == {0}


def test_how_many_pods_a_node_has_does_not_matter() -> None:
    assert score(A, [B] * 5) == score(A, [B])
