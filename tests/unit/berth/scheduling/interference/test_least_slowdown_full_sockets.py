"""Many pods that fill their sockets: whoever fits has a place."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference.assignment import EXACT_PODS
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.slowdown import SlowdownModel, Workload

JUDGE = LeastSlowdown(SlowdownModel(), [Workload("", letter) for letter in InterferenceClass])
CPUS = 32
Pods = list[tuple[Workload, int, int]]
"""workload, CPUs, and place of the socket that it fits"""


@st.composite
def full(draw: st.DrawFn) -> tuple[Pods, int]:
    """Pods in any order that fill sockets of `CPUS` to the last, and how many sockets."""
    sockets, pods = draw(st.integers(3, 4)), list[tuple[Workload, int, int]]()
    for place in range(sockets):
        cuts = draw(st.sets(st.integers(1, CPUS - 1), min_size=2, max_size=3))
        for begin, end in pairwise([0, *sorted(cuts), CPUS]):
            pods.append((Workload("", draw(st.sampled_from(InterferenceClass))), end - begin, place))
    return draw(st.permutations(pods)), sockets


def taken(pods: Pods, places: list[int], sockets: int) -> list[int]:
    return [sum(size for (_, size, _), at in zip(pods, places, strict=True) if at == place) for place in range(sockets)]


@given(full())
def test_all_of_a_full_node_have_a_socket(drawn: tuple[Pods, int]) -> None:
    pods, sockets = drawn
    assert len(pods) > EXACT_PODS
    workloads, sizes = [pod for pod, _, _ in pods], [size for _, size, _ in pods]
    found = JUDGE.seats(workloads, sizes, [CPUS] * sockets, [None] * len(pods))
    assert found is not None
    assert taken(pods, found, sockets) == [CPUS] * sockets


@given(full())
def test_a_full_node_is_judged_by_a_pairing(drawn: tuple[Pods, int]) -> None:
    pods, sockets = drawn
    found = JUDGE.pairing_of_many([pod for pod, _, _ in pods], [size for _, size, _ in pods], [CPUS] * sockets)
    assert found is not None
    places = {pod: place for place, group in enumerate(found.sockets) for pod in group}
    assert taken(pods, [places[pod] for pod in range(len(pods))], sockets) == [CPUS] * sockets


@given(full())
def test_the_last_to_come_has_what_the_others_leave(drawn: tuple[Pods, int]) -> None:
    pods, sockets = drawn
    workloads, sizes = [pod for pod, _, _ in pods], [size for _, size, _ in pods]
    now: list[int | None] = [None] * len(pods)
    for coming in range(1, len(pods) + 1):
        found = JUDGE.seats(workloads[:coming], sizes[:coming], [CPUS] * sockets, now[:coming])
        assert found is not None
        now[:coming] = found
