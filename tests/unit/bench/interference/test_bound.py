"""The optimum of pairs, against all pairings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.interference.bound import least_of_pairs
from berth.api.interference import InterferenceClass
from berth.scheduling.interference.slowdown import Workload

KINDS = [Workload(name, InterferenceClass.A) for name in "abcd"]
COSTS = st.lists(st.integers(0, 20), min_size=16, max_size=16)
PODS = st.integers(0, 3).flatmap(lambda pairs: st.lists(st.sampled_from(KINDS), min_size=2 * pairs, max_size=2 * pairs))


def pairings(pods: Sequence[Workload]) -> Iterator[list[tuple[Workload, Workload]]]:
    if not pods:
        yield []
    for at in range(1, len(pods)):
        for others in pairings([*pods[1:at], *pods[at + 1 :]]):
            yield [(pods[0], pods[at]), *others]


@given(PODS, COSTS)
def test_no_pairing_costs_less(pods: list[Workload], costs: list[int]) -> None:
    def cost(one: Workload, other: Workload) -> float:
        return float(costs[KINDS.index(min(one, other)) * 4 + KINDS.index(max(one, other))])

    everything = [sum(cost(*pair) for pair in pairs) for pairs in pairings(pods)]
    assert least_of_pairs(pods, cost) == pytest.approx(min(everything))
