"""Pods that need more cores than a socket has meet on SMT siblings, which counts more than to share a cache."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.interference import InterferenceClass
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.node_costs import NodeCosts
from berth.scheduling.interference.residents import Kind, Layout, Resident
from berth.scheduling.interference.slowdown import SlowdownModel, Workload

A, B, C, D = (Workload("", letter) for letter in InterferenceClass)
MODEL = SlowdownModel()
LIKELY = [A, B, C, D]
PODS = st.lists(st.sampled_from([A, B, C, D, Workload("shop/web", InterferenceClass.B)]), min_size=1, max_size=5)


def judge() -> LeastSlowdown:
    return LeastSlowdown(MODEL, LIKELY)


def cost_of(pods: Sequence[Workload], layout: Layout, size: int = 1000) -> float:
    return NodeCosts(judge()).cost(Kind(layout, tuple(sorted(Resident(pod, size) for pod in pods))))


@pytest.mark.parametrize("victim", [A, B, C, D], ids="ABCD")
@pytest.mark.parametrize("other", [A, B, C, D], ids="ABCD")
def test_closer_counts_more(victim: Workload, other: Workload) -> None:
    pods, one = [victim, other], (2000,)
    on_one_core, in_one_cache = cost_of(pods, Layout(one, True, (), (1,))), cost_of(pods, Layout(one, True))
    in_two_caches = cost_of(pods, Layout(one, True, (2,)))
    assert on_one_core > in_one_cache > in_two_caches
    assert on_one_core == pytest.approx(judge().on_socket(pods, room=False, together=2.0))


@pytest.mark.parametrize(
    ("cores", "size", "pods", "same"),
    [
        pytest.param(2, 1000, 2, True, id="a core each"),
        pytest.param(2, 2000, 2, True, id="all CPUs of a core each"),
        pytest.param(2, 0, 2, True, id="they request nothing"),
        pytest.param(2, 1000, 3, False, id="more than cores"),
        pytest.param(2, 1300, 3, False, id="they do not come out even"),
        pytest.param(3, 1000, 3, True, id="one core with siblings, and two without"),
    ],
)
def test_only_pods_without_cores_of_their_own_meet_on_siblings(cores: int, size: int, pods: int, same: bool) -> None:
    with_siblings, without = Layout((4000,), True, (), (cores,)), Layout((4000,), True)
    assert (cost_of([D] * pods, with_siblings, size) == pytest.approx(cost_of([D] * pods, without, size))) is same


@given(PODS, st.lists(st.integers(0, 3000), min_size=5, max_size=5), st.integers(1, 3), st.integers(1, 4))
def test_the_pairing_is_the_best_of_all(pods: list[Workload], sizes: list[int], sockets: int, cores: int) -> None:
    own, sizes = judge(), sizes[: len(pods)]
    layout = Layout((4000,) * sockets, True, (), (cores,) * sockets)
    found = own.pairing(pods, sizes, layout.capacities, cores=layout.cores, more=False)
    ways = []
    for places in product(range(sockets), repeat=len(pods)):
        groups = [[pod for pod, at in enumerate(places) if at == place] for place in range(sockets)]
        if all(sum(sizes[pod] for pod in group) <= 4000 for group in groups):
            ways.append(sum(suffered(own, pods, sizes, group, cores) for group in groups))
    assert (None if found is None else found.cost) == (pytest.approx(min(ways)) if ways else None)


def suffered(own: LeastSlowdown, pods: list[Workload], sizes: list[int], group: list[int], cores: int) -> float:
    """What pods suffer, by what each keeps busy: dealt to the cores one by one, where they do not have their own."""
    siblings = max(1, 4 // cores)
    busy = sum(max(1, -(-sizes[pod] // 1000)) for pod in group)
    more = 0.0
    if len(group) > 1 and sum(max(1, -(-sizes[pod] // (1000 * siblings))) for pod in group) > cores:
        meeting = sum(one % cores == other % cores for one in range(busy) for other in range(busy) if one != other)
        more = min(1.0, meeting / (len(group) * (busy - 1)))
    return own.on_socket([pods[pod] for pod in group], room=False, together=1.0 + more)


@given(PODS, st.integers(0, 3000), st.integers(1, 3), st.integers(1, 8))
def test_siblings_never_make_a_node_cheaper(pods: list[Workload], size: int, sockets: int, cores: int) -> None:
    capacities = (12_000,) * sockets
    apart, near = Layout(capacities, True), Layout(capacities, True, (), (cores,) * sockets)
    assert cost_of(pods, near, size) >= cost_of(pods, apart, size) - 1e-9


@given(PODS, st.integers(1, 3), st.integers(1, 6))
def test_pods_that_are_known_by_their_class_cost_what_others_do(pods: list[Workload], sockets: int, cores: int) -> None:
    layout = Layout((8000,) * sockets, True, (), (cores,) * sockets)
    found = judge().pairing(pods, [1000] * len(pods), layout.capacities, cores=layout.cores)
    assert found is not None
    assert cost_of(pods, layout) == pytest.approx(found.cost)


@pytest.mark.parametrize("number", [9, 12])
def test_of_many_pods_no_exchange_is_forgotten(number: int) -> None:
    # Sixteen CPUs and eight cores each: 9 to 12 pods have a core each only if neither socket has more than eight.
    pods, sizes = [D] * number, [1000] * number
    found = judge().pairing_of_many(pods, sizes, [16_000] * 2, cores=[8] * 2)
    assert found is not None
    assert max(map(len, found.sockets)) <= 8
    seats = judge().seats(pods, sizes, [16_000] * 2, [0] * (number - 1) + [None], cores=[8] * 2)
    assert seats is not None
    assert max(seats.count(0), seats.count(1)) <= 8


@pytest.mark.parametrize("number", range(14, 20))
def test_a_pod_more_is_no_cheaper_where_it_has_no_core_left(number: int) -> None:
    residents = [Resident([A, B, C, D, D][at % 5], 1000) for at in range(number)]

    def added(cores: tuple[int, ...]) -> float:
        own = NodeCosts(judge())
        kinds = [
            Kind(Layout((64_000,) * 2, True, (), cores), tuple(sorted(each)))
            for each in (residents, [*residents, Resident(B, 1000)])
        ]
        return own.cost(kinds[1]) - own.cost(kinds[0])

    assert added((8, 8)) >= added(()) - 1e-9


def test_a_node_with_cores_for_all_is_the_same_kind_as_without_siblings() -> None:
    layout, sizes = Layout((4000, 4000), True, (), (2, 2)), [1000, 2000]
    assert layout.for_pods(sizes) == Layout((4000, 4000), True)
    assert layout.for_pods([*sizes, 1]) == layout
