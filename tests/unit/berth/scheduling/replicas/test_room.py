"""Room of nodes, against counting it out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.replicas.problem import Nodes, PodSet, Problem, Workload
from berth.scheduling.replicas.room import requested_resources, room_of, rooms_of

CPU, GPU = 0, 1


def pod_set(replicas: int, cpu: int = 0, gpu: int = 0, mask: list[int] | None = None) -> PodSet:
    allowed = None if mask is None else np.array(mask, dtype=np.bool_)
    return PodSet(workload=0, replicas=replicas, request=np.array([cpu, gpu], dtype=np.int64), mask=allowed)


def free(*rows: tuple[int, int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(rows, dtype=np.int64)


def problem(nodes: np.ndarray[Any, np.dtype[np.int64]], pod_sets: list[PodSet]) -> Problem:
    places = np.zeros(len(nodes), dtype=np.int64)
    return Problem(
        nodes=Nodes(free=nodes, location=places, location_cost=np.zeros((1, 1)), zone=places),
        workloads=[Workload(name="web")],
        pod_sets=pod_sets,
    )


@pytest.mark.parametrize(
    ("nodes", "pod_sets", "room"),
    [
        pytest.param([(4, 0), (2, 0)], [pod_set(2, cpu=1)], [2, 1], id="times-it-holds-all"),
        pytest.param([(3, 0)], [pod_set(2, cpu=1), pod_set(1, cpu=4)], [0.5], id="half-of-all"),
        pytest.param([(4, 0), (4, 1)], [pod_set(1, cpu=1, gpu=1)], [0, 1], id="the-scarcest-resource"),
        pytest.param([(4, -3)], [pod_set(1, cpu=1)], [4], id="less-than-none-of-what-nobody-asks-for"),
        pytest.param([(-2, 0)], [pod_set(1, cpu=1)], [0], id="overcommitted"),
        pytest.param([(4, 0), (4, 0)], [pod_set(1, cpu=1, mask=[0, 1])], [0, 4], id="may-not-go-there"),
        pytest.param(
            [(4, 0), (4, 0)], [pod_set(1, cpu=1, mask=[0, 1]), pod_set(1, cpu=1)], [2, 2], id="some-of-them-may"
        ),
        pytest.param([(4, 0)], [pod_set(3)], [np.inf], id="asks-for-nothing"),
        pytest.param([(4, 0)], [], [0], id="nobody"),
    ],
)
def test_how_often_a_node_holds_pods(nodes: list[tuple[int, int]], pod_sets: list[PodSet], room: list[float]) -> None:
    assert room_of(free(*nodes), pod_sets).tolist() == room


def test_what_few_ask_for_is_counted_for_them_alone() -> None:
    """A node without a GPU is full for one pod in ten, and empty for the nine."""
    usual, special = rooms_of(problem(free((10, 0), (5, 1)), [pod_set(9, cpu=1), pod_set(1, cpu=1, gpu=1)]))
    assert usual.tolist() == [1.0, 0.5]
    assert special.tolist() == [0.0, 1.0]


def test_what_half_of_them_ask_for_is_counted_for_all() -> None:
    [usual] = rooms_of(problem(free((10, 0), (10, 5)), [pod_set(5, cpu=1), pod_set(5, cpu=1, gpu=1)]))
    assert usual.tolist() == [0.0, 1.0]


def test_pods_that_ask_for_the_same_share_a_room() -> None:
    rooms = rooms_of(problem(free((9, 9)), [pod_set(8, cpu=1), pod_set(1, cpu=1, gpu=1), pod_set(1, cpu=1, gpu=2)]))
    assert [each.tolist() for each in rooms] == [[0.9], [3.0]]


def test_a_set_of_no_pods_asks_for_nothing() -> None:
    assert [each.tolist() for each in rooms_of(problem(free((4, 0)), [pod_set(2, cpu=1), pod_set(0, gpu=1)]))] == [
        [2.0]
    ]


@pytest.mark.parametrize(
    ("pod_sets", "asked"),
    [
        pytest.param([], [False, False], id="nobody"),
        pytest.param([pod_set(1, cpu=1)], [True, False], id="one"),
        pytest.param([pod_set(1, cpu=1), pod_set(1, gpu=1)], [True, True], id="each-another"),
    ],
)
def test_what_some_pod_requests(pod_sets: list[PodSet], asked: list[bool]) -> None:
    assert requested_resources(problem(free((1, 1)), pod_sets)).tolist() == asked


@given(
    nodes=st.lists(st.tuples(st.integers(-5, 40), st.integers(-5, 40)), min_size=1, max_size=5),
    asked=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=4),
)
def test_whole_times_are_those_that_fit(nodes: list[tuple[int, int]], asked: list[tuple[int, int, int]]) -> None:
    pod_sets = [pod_set(*each) for each in asked]
    need = [sum(replicas * each[resource] for replicas, *each in asked) for resource in (CPU, GPU)]
    for row, room in zip(nodes, room_of(free(*nodes), pod_sets), strict=True):
        times = 0
        while times < 50 and all((times + 1) * need[at] <= row[at] for at in (CPU, GPU) if need[at]):
            times += 1
        assert min(int(min(room, 50)), 50) == times
