"""Who is asked next, for any loads and failures."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.router.balancer import FIRST_PAUSE, LONGEST_PAUSE, Balancer
from agents.router.endpoints import Backend
from berth.runtime.proxy.upstream import Address


def pod(number: int, node: str = "") -> Backend:
    return Backend(Address(f"10.0.0.{number}", 80), node or f"n{number}", f"p{number}")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def balancer(*pods: Backend, clock: Clock | None = None, loads: dict[int, int] | None = None) -> Balancer:
    made = Balancer(clock or Clock())
    made.replace(pods)
    for number, load in (loads or {}).items():
        for _ in range(load):
            made.begin(pod(number).address)
    return made


THREE = (pod(1), pod(2), pod(3))


@pytest.mark.parametrize(
    ("node", "loads", "expected"),
    [
        pytest.param(None, {1: 2, 2: 1, 3: 2}, ("p2", False), id="the least to do"),
        pytest.param("n1", {1: 9}, ("p1", True), id="the user's node, whatever it has to do"),
        pytest.param("n9", {1: 1, 2: 1}, ("p3", False), id="nobody on the user's node"),
        pytest.param("", {1: 1, 2: 1}, ("p3", False), id="no name is no node"),
    ],
)
def test_choice(node: str | None, loads: dict[int, int], expected: tuple[str, bool]) -> None:
    choice = balancer(*THREE, loads=loads).choose(node)
    assert choice is not None
    assert (choice.backend.pod, choice.near) == expected


def test_of_several_on_the_users_node_the_least_to_do() -> None:
    pods = (pod(1, "n"), pod(2, "n"), pod(3))
    choice = balancer(*pods, loads={1: 1}).choose("n")
    assert choice is not None
    assert choice.backend.pod == "p2"


def test_without_pods_there_is_no_choice() -> None:
    assert balancer().choose("n1") is None


def test_the_lot_falls_on_all_of_those_with_the_least() -> None:
    made = balancer(*THREE, loads={1: 1})
    drawn = Counter(choice.backend.pod for _ in range(300) if (choice := made.choose(None)))
    assert set(drawn) == {"p2", "p3"}


@given(requests=st.lists(st.booleans(), max_size=60))
def test_requests_under_way_are_spread_evenly(requests: list[bool]) -> None:
    made, under_way = balancer(*THREE), []
    for begins in requests:
        if begins:
            choice = made.choose(None)
            assert choice is not None
            made.begin(choice.backend.address)
            under_way.append(choice.backend.address)
        elif under_way:
            made.end(under_way.pop(0))
        loads = [made.load(each.address) for each in THREE]
        assert sum(loads) == len(under_way)
    if all(requests):
        assert max(loads := [made.load(each.address) for each in THREE]) - min(loads) <= 1


def test_where_a_request_has_failed_it_is_not_sent_again_while_there_is_another() -> None:
    made = balancer(*THREE)
    assert {made.choose("n1", [pod(1).address]).backend.pod for _ in range(50)} == {"p2", "p3"}  # type: ignore[union-attr]
    assert made.choose(None, [each.address for each in THREE]) is not None


def test_a_pod_in_trouble_is_left_alone_and_then_tried_again() -> None:
    clock = Clock()
    made = balancer(*THREE, clock=clock)
    made.failed(pod(1).address)
    assert made.in_trouble(pod(1).address)
    assert made.choose("n1").backend.pod != "p1"  # type: ignore[union-attr]
    clock.now += FIRST_PAUSE
    assert made.choose("n1").backend.pod == "p1"  # type: ignore[union-attr]
    made.failed(pod(1).address)
    clock.now += FIRST_PAUSE
    assert made.in_trouble(pod(1).address), "the second pause is longer"
    clock.now += FIRST_PAUSE
    made.answered(pod(1).address)
    made.failed(pod(1).address)
    clock.now += FIRST_PAUSE
    assert not made.in_trouble(pod(1).address), "an answer makes it a first one again"


@pytest.mark.parametrize(
    ("happens", "expected"),
    [
        pytest.param("c", False, id="one closed connection is the request's fault"),
        pytest.param("cc", True, id="two in a row are the pod's"),
        pytest.param("cacac", False, id="it answers others meanwhile"),
        pytest.param("f", True, id="nobody is there"),
        pytest.param("caf", True, id="nobody is there any more"),
        pytest.param("cgc", False, id="the one that is there now is another"),
    ],
)
def test_a_pod_that_closes_connections_is_in_trouble_where_it_answers_nobody(happens: str, expected: bool) -> None:
    made = balancer(*THREE)
    for each in happens:
        if each == "a":
            made.answered(pod(1).address)
        elif each == "g":
            made.replace(THREE[1:])
            made.replace(THREE)
        else:
            made.failed(pod(1).address, heard=each == "c")
    assert made.in_trouble(pod(1).address) is expected


def test_requests_that_fail_together_are_one_failure() -> None:
    clock = Clock()
    made = balancer(*THREE, clock=clock)
    for _ in range(32):  # all that were under way when the pod went
        made.failed(pod(1).address)
    clock.now += FIRST_PAUSE
    assert not made.in_trouble(pod(1).address)


@given(failures=st.integers(min_value=1, max_value=2000))
def test_no_pause_is_longer_than_the_longest(failures: int) -> None:
    clock = Clock()
    made = balancer(*THREE, clock=clock)
    for _ in range(failures):
        made.failed(pod(1).address)
        clock.now += LONGEST_PAUSE
    assert not made.in_trouble(pod(1).address)


def test_where_all_are_in_trouble_all_are_asked() -> None:
    made = balancer(*THREE)
    for each in THREE:
        made.failed(each.address)
    choice = made.choose("n2")
    assert choice is not None
    assert choice.near


def test_who_goes_takes_its_troubles_along_and_is_told() -> None:
    made = balancer(*THREE)
    made.failed(pod(1).address)
    assert made.replace(THREE[1:]) == {pod(1).address}
    made.failed(pod(1).address)
    assert made.replace(THREE) == set()
    assert not made.in_trouble(pod(1).address)


@given(steps=st.lists(st.tuples(st.sampled_from(["choose", "fail", "answer", "wait"]), st.integers(1, 3)), max_size=40))
def test_there_is_a_choice_whatever_happened(steps: list[tuple[str, int]]) -> None:
    clock = Clock()
    made = balancer(*THREE, clock=clock)
    for what, number in steps:
        match what:
            case "fail":
                made.failed(pod(number).address)
            case "answer":
                made.answered(pod(number).address)
            case "wait":
                clock.now += number
            case _:
                choice = made.choose(f"n{number}", [pod(number).address])
                assert choice is not None
                assert choice.backend.address != pod(number).address
