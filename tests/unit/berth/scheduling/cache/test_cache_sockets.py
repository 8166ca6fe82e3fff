"""Sockets of pods that were planned beside what came to nothing, and of those that were there before they had any."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects import Pod
from berth.scheduling.cache.cache import Cache
from berth.scheduling.interference.policy import InterferencePolicy
from tests.support import builders
from tests.support.placement import Clock
from tests.support.sockets import asking, classed, owned, status, workload_profile


def cache_of(*cpus: int, policy: InterferencePolicy = InterferencePolicy.LEAST_SLOWDOWN) -> Cache:
    """One node with sockets of so many CPUs."""
    cache = Cache(clock=Clock(), state=asking(policy))
    cache.update_node(builders.node("n1", cpu="64"))
    cache.update_sockets(status("n1", cpus=cpus))
    return cache


def taken(cache: Cache) -> dict[int | None, int]:
    """Thousandths of a CPU on each socket of the node, as pods are once all that are assumed are bound."""
    found: Counter[int | None] = Counter()
    for seat in cache.state.sockets.seats("n1").values():
        found[seat.socket] += seat.resident.size
    return dict(found)


def beside_a_plan(*, bound: bool) -> tuple[Cache, Pod]:
    """Two sockets of 6 CPUs, a newcomer for whom a pod moves, and another that was planned with the room it leaves."""
    cache = cache_of(6, 6)
    for number, cpu in enumerate(("4", "2")):
        cache.assume(classed(f"p{number}", "C", cpu=cpu), "n1")
        cache.confirm(classed(f"p{number}", "C", cpu=cpu, on="n1"))
    newcomer, beside = classed("newcomer", "D", cpu="1"), classed("beside", "A", cpu="5")
    for pod in (newcomer, beside):
        cache.assume(pod, "n1")
    if bound:
        cache.confirm(classed("beside", "A", cpu="5", on="n1"))
    return cache, newcomer


@pytest.mark.parametrize("bound", [False, True], ids=["assumed", "bound"])
@pytest.mark.parametrize("how", ["forgotten", "deleted", "bound elsewhere"])
def test_a_pod_that_was_planned_beside_another_that_came_to_nothing_gets_another_socket(bound: bool, how: str) -> None:
    cache, newcomer = beside_a_plan(bound=bound)
    assert max(taken(cache).values()) <= 6000
    if how == "forgotten":
        cache.forget(newcomer)
    elif how == "deleted":
        cache.delete_pod(newcomer)
    else:
        cache.confirm(classed("newcomer", "D", cpu="1", on="n2"))
    assert taken(cache) == {0: 6000, 1: 5000}
    settled = Counter({0: 0, 1: 0})
    for uid, seat in cache.state.sockets.seats("n1").items():
        if bound or "beside" not in uid:
            settled[seat.settled or 0] += seat.resident.size
    assert max(settled.values()) <= 6000


def test_a_pod_whose_class_goes_with_its_profile_leaves_no_socket_too_full() -> None:
    cache = cache_of(6, 6)
    cache.update_profile(workload_profile("newcomer", "D"))
    for number, cpu in enumerate(("4", "2")):
        cache.assume(classed(f"p{number}", "C", cpu=cpu), "n1")
        cache.confirm(classed(f"p{number}", "C", cpu=cpu, on="n1"))
    for pod in (owned("newcomer", "newcomer", cpu="1"), classed("beside", "A", cpu="5")):
        cache.assume(pod, "n1")
    assert max(taken(cache).values()) <= 6000
    cache.delete_profile(workload_profile("newcomer", "D"))
    assert sorted(taken(cache).values()) == [5000, 6000]


def test_a_pod_that_is_set_aside_has_nobody_get_another_socket() -> None:
    cache, newcomer = beside_a_plan(bound=False)
    before = cache.state.sockets.copies("n1")
    with cache.set_aside(newcomer):
        pass
    assert cache.state.sockets.copies("n1") == before
    assert not cache.state.sockets.left_open


STEPS = st.lists(st.tuples(st.sampled_from(["assume", "confirm", "forget"]), st.integers(0, 7)), max_size=25)


@given(STEPS, st.lists(st.tuples(st.sampled_from("ABCD"), st.integers(1, 3)), min_size=8, max_size=8))
def test_whatever_comes_to_nothing_no_socket_has_more_than_it_holds(
    steps: list[tuple[str, int]], pods: list[tuple[str, int]]
) -> None:
    cache, state = cache_of(12, 12), Counter[int]()
    for what, number in steps:
        letter, cpus = pods[number]
        name, waits, assumed = f"p{number}", not state[number], state[number] == 1
        if what == "assume" and waits:
            cache.assume(classed(name, letter, cpu=str(cpus)), "n1")
            state[number] = 1
        elif what == "confirm" and assumed:
            cache.confirm(classed(name, letter, cpu=str(cpus), on="n1"))
            state[number] = 2
        elif what == "forget" and assumed:
            cache.forget(classed(name, letter, cpu=str(cpus)))
            state[number] = 0
        sizes = taken(cache)
        assert sizes.get(0, 0) <= 12_000
        assert sizes.get(1, 0) <= 12_000


def seated(cache: Cache) -> dict[str, int | None]:
    """Sockets by name of the pod, after those that were left out got one."""
    cache.seat_left_out("n1")
    assert not any(seat.moves for seat in cache.state.sockets.seats("n1").values()), "all are bound"
    return {uid.rpartition("-")[2]: seat.settled for uid, seat in cache.state.sockets.seats("n1").items()}


@pytest.mark.parametrize("policy", [each for each in InterferencePolicy if each is not InterferencePolicy.OFF])
def test_pods_that_came_before_the_sockets_of_their_node_get_them_when_these_are_known(
    policy: InterferencePolicy,
) -> None:
    cache = cache_of(policy=policy)
    for name, letter in (("d1", "D"), ("a1", "A"), ("d2", "D")):
        cache.update_pod(classed(name, letter, on="n1"))
    assert set(seated(cache).values()) == {None}
    cache.update_sockets(status("n1", true=("ObserveOnly",)))
    assert set(seated(cache).values()) == {None}, "nobody pins there"
    cache.update_sockets(status("n1"))
    found = seated(cache)
    assert None not in found.values()
    assert found["d1"] != found["d2"]
    assert seated(cache) == found


def test_pods_whose_socket_goes_get_another_one() -> None:
    cache = cache_of(8, 8)
    for name, socket in (("d1", "0"), ("d2", "1")):
        cache.update_pod(classed(name, "D", on="n1", socket=socket))
    assert seated(cache) == {"d1": 0, "d2": 1}
    cache.update_sockets(status("n1", cpus=(8,)))
    assert seated(cache) == {"d1": 0, "d2": 0}


def test_those_that_no_socket_has_room_for_are_left_alone_until_one_has() -> None:
    cache = cache_of(8, 8)
    for name, socket in (("a1", "0"), ("a2", "1"), ("a3", None), ("a4", None)):
        cache.update_pod(classed(name, "A", cpu="5", on="n1", socket=socket))
    told: list[str] = []
    cache.state.sockets.follow(told.append)
    assert seated(cache) == {"a1": 0, "a2": 1, "a3": None, "a4": None}
    assert not told, "or who writes would look again and again"
    cache.delete_pod(classed("a2", "A", cpu="5", on="n1"))
    assert sorted(map(str, seated(cache).values())) == ["0", "1", "None"]


def test_who_is_assumed_or_about_to_end_gets_no_socket_so() -> None:
    cache = cache_of()
    cache.assume(classed("assumed", "D"), "n1")
    ending = classed("ending", "D", on="n1")
    ending.metadata.deletion_timestamp = "2026-11-01T12:00:00Z"
    cache.update_pod(ending)
    cache.update_sockets(status("n1"))
    assert seated(cache) == {"assumed": None, "ending": None}
