"""The choice "socket-based" as it was published."""

from __future__ import annotations

import pytest

from berth.api.interference import InterferenceClass
from berth.scheduling.interference.socket_based import score, socket_score

A, B, C, D = InterferenceClass


@pytest.mark.parametrize(
    ("newcomer", "best", "wasteful", "worst"),
    [(A, "BD", "AC", ""), (B, "AB", "", "CD"), (C, "C", "A", "BD"), (D, "A", "", "BCD")],
    ids="ABCD",
)
def test_sockets_in_the_order_of_the_pairs(newcomer: InterferenceClass, best: str, wasteful: str, worst: str) -> None:
    levels = [
        {socket_score(newcomer, [InterferenceClass(each)]) for each in those} for those in (best, wasteful, worst)
    ]
    scores = [score for level in levels for score in level]
    assert all(len(level) <= 1 for level in levels)
    assert scores == sorted(set(scores), reverse=True)
    assert socket_score(newcomer, []) > scores[0]


def test_a_node_is_as_good_as_its_best_socket() -> None:
    assert score(D, [[D], [A]], empty_node=False) == socket_score(D, [A])
    assert score(D, [[C], []], empty_node=False) == socket_score(D, []) < score(D, [[], []], empty_node=True)
    assert score(D, [], empty_node=False) == 0


def test_of_several_pods_on_a_socket_the_worst_pair_counts() -> None:
    assert socket_score(B, [A, C]) == socket_score(B, [C]) < socket_score(B, [A, B])
