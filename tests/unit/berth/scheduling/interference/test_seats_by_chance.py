"""What pods cost on sockets by chance: the mean over all ways to be seated that there is room for."""

from __future__ import annotations

from itertools import product
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference.assignment import EXACT_PODS
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.seats_by_chance import MUCH, alone, expected_harm, loads, room_for, together
from berth.scheduling.interference.slowdown import SlowdownModel, Workload

A, B, C, D = (Workload("", letter) for letter in InterferenceClass)
MODEL = SlowdownModel()
LIKELY = [A, B, D]
PODS = st.lists(st.sampled_from([A, B, C, D]), min_size=1, max_size=5)


def seatings(pods: int, room: int, sockets: int) -> list[list[list[int]]]:
    """All ways to be seated: the pods on each socket."""
    return [
        groups
        for places in product(range(sockets), repeat=pods)
        for groups in [[[pod for pod, at in enumerate(places) if at == place] for place in range(sockets)]]
        if max(map(len, groups)) <= room
    ]


@pytest.mark.parametrize(
    ("sizes", "capacities", "expected"),
    [
        pytest.param([1] * 4, [2, 2], 2, id="two on each"),
        pytest.param([1] * 4, [20, 20], 20, id="more than there are"),
        pytest.param([2, 1], [2, 2], 1, id="by the mean"),
        pytest.param([0, 0], [2, 2], MUCH, id="they take nothing"),
        pytest.param([3, 3, 3], [4, 4], 3, id="they do not fit"),
        pytest.param([1, 1], [], MUCH, id="nobody knows the sockets"),
        pytest.param([10**12], [1], 1, id="larger than any socket"),
    ],
)
def test_a_socket_has_room_by_the_mean_size(sizes: list[int], capacities: list[int], expected: int) -> None:
    assert room_for(sizes, capacities) == expected


@given(PODS, st.integers(1, 5), st.integers(1, 3))
def test_it_is_the_mean_over_all_ways_to_be_seated(pods: list[Workload], room: int, sockets: int) -> None:
    room = max(room, -(-len(pods) // sockets))
    judge, ways = LeastSlowdown(MODEL, LIKELY), seatings(len(pods), room, sockets)
    more = room > 1
    expected = fmean(
        sum(judge.on_socket([pods[pod] for pod in group], room=more) for group in groups) for groups in ways
    )
    assert judge.unpinned(pods, [1] * len(pods), [room] * sockets) == pytest.approx(expected)
    by_count = [fmean(len(groups[0]) == count for groups in ways) for count in range(len(pods) + 1)]
    assert loads(len(pods), room, sockets).tolist() == pytest.approx(by_count)
    assert alone(len(pods), room, sockets) == pytest.approx(fmean([0] in groups for groups in ways))
    if len(pods) > 1:
        meeting = fmean(any({0, 1} <= set(group) for group in groups) for groups in ways)
        assert together(len(pods), room, sockets) == pytest.approx(meeting)


@given(st.integers(1, 300), st.integers(1, 64))
def test_with_room_for_all_two_meet_on_each_socket_as_often(pods: int, sockets: int) -> None:
    assert together(pods, pods, sockets) == pytest.approx(1 / sockets)
    assert alone(pods, pods, sockets) == pytest.approx((1 - 1 / sockets) ** (pods - 1))


@pytest.mark.parametrize(
    ("pods", "sockets", "room"),
    [
        pytest.param(1000, 1, 1000, id="one socket"),
        pytest.param(2000, 2, 2000, id="two"),
        pytest.param(2000, 2, 1000, id="two that are full"),
        pytest.param(3000, 4, 800, id="four with little room"),
    ],
)
def test_there_may_be_any_number_of_pods(pods: int, sockets: int, room: int) -> None:
    assert loads(pods, room, sockets) @ np.arange(pods + 1) == pytest.approx(pods / sockets)
    assert 0.9 / sockets < together(pods, room, sockets) <= 1


@pytest.mark.parametrize("sockets", [1, 2, 4, 8])
@pytest.mark.parametrize("pod", [A, B, C, D], ids=["A", "B", "C", "D"])
def test_of_many_it_goes_on_as_of_few(pod: Workload, sockets: int) -> None:
    judge = LeastSlowdown(MODEL, LIKELY)
    costs = [judge.unpinned([D, B, A, C] * 2 + [pod] * more, [1] * (8 + more), [32] * sockets) for more in range(4)]
    added = np.diff(costs)
    assert EXACT_PODS == 8
    assert added[0] == pytest.approx(added[1], abs=0.15 * costs[0]), "the ninth beside the tenth"
    assert (added > -0.02 * costs[0]).all()


def test_many_that_suffer_from_few_are_above_a_limit_as_often_as_these_are_beside_them() -> None:
    # Of 20, two disturb: beside neither 0 are above 0.2, beside one or both all.
    excess = np.zeros((20, 20))
    excess[2:, :2] = 0.3
    below = expected_harm(excess, 0.0)
    assert below == 0.0
    assert expected_harm(excess, 1.0) == pytest.approx(18 * (0.6 + 2.5))
    assert 18 * 0.3 < expected_harm(excess, 0.5) < 18 * (0.6 + 2.5)
