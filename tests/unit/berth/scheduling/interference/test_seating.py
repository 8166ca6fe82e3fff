"""The best pairing on sockets as they are: as few pods as possible move."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference.residents import Resident
from berth.scheduling.interference.seating import seats
from berth.scheduling.interference.slowdown import Workload

A, B, C, D = (Resident(Workload("", letter), 1) for letter in InterferenceClass)


@pytest.mark.parametrize(
    ("residents", "now", "groups", "places"),
    [
        pytest.param([A, D], [0, 1], [[D], [A]], [0, 1], id="sockets of one size change names"),
        pytest.param([A, A, D], [0, 0, None], [[A, D], [A]], [0, 1, 0], id="one of two that are alike moves"),
        pytest.param([A, D, A, D], [0, 0, 1, None], [[D, A], [A, D]], [0, 0, 1, 1], id="nobody moves"),
        pytest.param([A, B], [None, None], [[A], [B]], [0, 1], id="newcomers alone"),
        pytest.param([], [], [[], []], [], id="nobody"),
    ],
)
def test_who_moves(
    residents: list[Resident], now: list[int | None], groups: list[list[Resident]], places: list[int]
) -> None:
    assert seats(residents, now, groups, [8, 8]) == places


def test_sockets_of_different_sizes_keep_their_groups() -> None:
    assert seats([A, D], [0, 1], [[D], [A]], [8, 4]) == [1, 0]


@given(st.lists(st.tuples(st.sampled_from([A, B, C, D]), st.sampled_from([None, 0, 1, 2]), st.integers(0, 2))))
def test_the_groups_are_kept(pods: list[tuple[Resident, int | None, int]]) -> None:
    groups = [[pod for pod, _, group in pods if group == number] for number in range(3)]
    found = seats([pod for pod, _, _ in pods], [now for _, now, _ in pods], groups, [8, 8, 8])
    there = [[pod for (pod, _, _), place in zip(pods, found, strict=True) if place == number] for number in range(3)]
    assert Counter(tuple(sorted(group)) for group in there) == Counter(tuple(sorted(group)) for group in groups)
