"""Sockets on nodes with so many pods that not every way is looked at."""

from __future__ import annotations

import random

import pytest

from berth.scheduling.cache.cache import Cache
from tests.support import builders
from tests.support.placement import Clock
from tests.support.seating import cache_of
from tests.support.sockets import asking, classed, owned, status, workload_profile
from tests.support.work import CALL, Work


def crowded(pods: int, *, cpus: tuple[int, int] = (64, 64)) -> Cache:
    """A node with pods of as many workloads, half of them on each socket, as a restart finds it."""
    state, drawn = asking(), random.Random(1)
    state.update_node(builders.node("n1", cpu="256"))
    uids = [owned(f"p{number}-1", f"p{number}").metadata.uid for number in range(pods)]
    state.sockets.update_node(status("n1", cpus=cpus, assigned={uid: at % 2 for at, uid in enumerate(uids)}))
    for number in range(pods):
        beside = {f"p{drawn.randrange(pods)}": f"1.{drawn.randrange(300):03}" for _ in range(20)}
        state.update_profile(workload_profile(f"p{number}", "D", slowdowns=beside))
        pod = owned(f"p{number}-1", f"p{number}", cpu="1")
        pod.spec.node_name = "n1"
        state.update_pod(pod)
    return Cache(clock=Clock(), state=state)


@pytest.mark.parametrize("pods", [40, 110], ids="{} pods".format)
def test_a_socket_on_a_crowded_node_is_chosen_in_bounded_work(pods: int) -> None:
    cache, work = crowded(pods), Work()
    with work.counting():
        cache.assume(classed("late", "D"), "n1")
    seat = cache.state.sockets.seat("pod-default-late")
    assert seat is not None
    assert seat.socket in (0, 1)
    # Pairs of workloads on the node, and of those with who is likely to come; the search has a bound of its own.
    assert work.seconds / CALL < 50 * pods**2 + 60_000


def harm_there(cache: Cache) -> float:
    """Harm on the two sockets of the node, as pods are once all that are assumed are bound."""
    there = cache.state.sockets.seats("n1").values()
    groups = [[seat.resident.workload for seat in there if seat.socket == number] for number in (0, 1)]
    return sum(cache.state.socket_choice._judge.on_socket(group, room=True) for group in groups if group)


@pytest.mark.parametrize("pods", [12, 30])
def test_on_a_crowded_node_it_is_no_worse_than_if_all_stayed(pods: int) -> None:
    cache = crowded(pods)
    cache.assume(classed("late", "D"), "n1")
    found = harm_there(cache)
    stayed = []
    for number in (0, 1):
        beside = crowded(pods)
        beside.state.assume(classed("late", "D"), "n1")
        beside.state.socket_choice._current()
        beside.state.sockets.assign("pod-default-late", number)
        stayed.append(harm_there(beside))
    assert found <= min(stayed) + 1e-9


def test_where_pods_seem_not_to_fit_anew_a_newcomer_goes_where_there_is_room_as_they_are() -> None:
    # The largest first, each where it adds least, 6 and 6 are apart, and of 4, 4 and 4 one has no room.
    sizes = {0: ("6", "6"), 1: ("4", "4", "4", *["250m"] * 4)}
    cpus = [(socket, cpu) for socket, there in sizes.items() for cpu in there]
    assigned = {f"pod-default-p{at}": socket for at, (socket, _) in enumerate(cpus)}
    cache = cache_of(status("n1", cpus=(13, 13), assigned=assigned))
    for at, (_, cpu) in enumerate(cpus):
        cache.confirm(classed(f"p{at}", "D", on="n1", cpu=cpu))
    late = classed("late", "B")
    cache.assume(late, "n1")
    seat = cache.state.sockets.seat(late.metadata.uid)
    assert seat is not None
    assert seat.socket == 0
