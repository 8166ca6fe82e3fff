"""What SocketStatuses and WorkloadProfiles say to placement."""

from __future__ import annotations

import pytest

from berth.kube.objects import CustomObject
from berth.scheduling.cache.socket_reading import read_profile, read_sockets
from berth.scheduling.interference.residents import UNKNOWN_LAYOUT, Layout
from tests.support.sockets import status, workload_profile


@pytest.mark.parametrize(
    ("obj", "numbers", "layout"),
    [
        pytest.param(status("n1", cpus=(8, 16)), (0, 1), Layout((8000, 16000), True), id="two sockets"),
        pytest.param(status("n1", true=["Pinned"]), (0, 1), Layout((8000, 8000), True), id="pinned"),
        pytest.param(status("n1", true=["Drifted"]), (0, 1), Layout((8000, 8000), True), id="drifted"),
        pytest.param(status("n1", true=["ObserveOnly"]), (0, 1), Layout((8000, 8000), False), id="static CPU manager"),
        pytest.param(
            status("n1", unpinned="NotInEffect"), (0, 1), Layout((8000, 8000), True), id="a pod is not pinned"
        ),
        pytest.param(status("n1", unpinned="Unable"), (0, 1), Layout((8000, 8000), False), id="the agent has ended"),
        pytest.param(status("n1", true=["TopologyUnknown"]), (), UNKNOWN_LAYOUT, id="topology unknown"),
        pytest.param(status("n1", cpus=()), (), UNKNOWN_LAYOUT, id="agent has not written yet"),
        pytest.param(
            status("n1", caches=(4, 1)), (0, 1), Layout((8000, 8000), True, (4, 1)), id="pods are kept apart in caches"
        ),
        pytest.param(
            status("n1", cores=(4, 8)), (0, 1), Layout((8000, 8000), True, (), (4, 0)), id="one has SMT siblings"
        ),
        pytest.param(status("n1", cores=(0, None)), (0, 1), Layout((8000, 8000), True), id="no cores, or null"),
        pytest.param(status("n1", cores=(10**9, -1)), (0, 1), Layout((8000, 8000), True), id="more cores than CPUs"),
        pytest.param(
            status("n1", cpus=(10**9,), cores=(1,)), (0,), Layout((10**12,), True, (), (1,)), id="10^9 CPUs a core"
        ),
        pytest.param(status("n1", caches=(1, -9)), (0, 1), Layout((8000, 8000), True), id="in one each"),
        pytest.param(status("n1", cpus=(8, 0)), (0,), Layout((8000,), True), id="a socket without online CPUs"),
        pytest.param(CustomObject.of({"metadata": {"name": "n1"}}), (), UNKNOWN_LAYOUT, id="neither spec nor status"),
    ],
)
def test_sockets(obj: CustomObject, numbers: tuple[int, ...], layout: Layout) -> None:
    found = read_sockets(obj)
    assert (found.numbers, found.layout) == (numbers, layout)


def test_assignments_are_read_without_sockets_too() -> None:
    assert read_sockets(status("n1", cpus=(), assigned={"u1": 1})).assignments == {"u1": 1}


def test_a_profile_names_its_workload_and_neighbours_with_their_namespace() -> None:
    found = read_profile(workload_profile("db", "D", kind="StatefulSet", slowdowns={"web": "1.25"}))
    assert found.name == "default/db"
    assert found.target == "default/StatefulSet/db"
    assert found.interference_class == "D"
    assert found.slowdowns == {"default/web": 1.25}


@pytest.mark.parametrize(
    ("text", "slowdown"),
    [
        ("0.1", 1.0),
        ("0.98", 1.0),
        ("1.0", 1.0),
        ("1.25", 1.25),
        ("2.0", 2.0),
        ("999.999", 2.0),
        ("inf", 2.0),
        ("nan", 1.0),
    ],
)
def test_a_stated_slowdown_counts_from_1_to_2(text: str, slowdown: float) -> None:
    assert read_profile(workload_profile("db", "A", slowdowns={"web": text})).slowdowns == {"default/web": slowdown}


@pytest.mark.parametrize(
    ("part", "words"),
    [
        pytest.param({"interferenceClass": "E"}, "write one of A, B, C, D", id="no such class"),
        pytest.param({"interferenceClass": "A", "slowdowns": [{"slowdown": "much"}]}, "much", id="no number"),
        pytest.param({"interferenceClass": "A", "targetRef": "db"}, "targetRef", id="wrong shape"),
    ],
)
def test_what_the_kind_does_not_allow_is_refused(part: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_profile(CustomObject.of({"metadata": {"name": "p", "namespace": "default"}, "spec": part}))
