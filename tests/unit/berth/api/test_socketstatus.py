"""The SocketStatus: what it can state."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from berth.api.cpulist import MAX_CPU
from berth.api.interference import InterferenceClass
from berth.api.socketstatus import MAX_PODS, Assignment, CacheReport, PodReport, SocketReport, SocketStatus

POD = {"uid": "5f0c", "namespace": "shop", "name": "report-1"}
SOCKET: dict[str, Any] = {"socket": 0, "cpus": "0-3,8-11", "cpuCount": 8}


def test_one_that_says_all() -> None:
    raw = {
        "apiVersion": "berth.dev/v1alpha1",
        "kind": "SocketStatus",
        "metadata": {"name": "n1"},
        "spec": {"assignments": [POD | {"interferenceClass": "D", "socket": 0, "time": "2026-01-31T12:00:00Z"}]},
        "status": {
            "observedGeneration": 2,
            "time": "2026-01-31T12:00:05Z",
            "socketCount": 1,
            "pinned": "1/1",
            "violations": 0,
            "sockets": [
                SOCKET
                | {
                    "numaNodes": [0, 1],
                    "memoryBytes": 2**36,
                    "caches": [{"level": 3, "sizeBytes": 2**25, "cpus": "0-3,8-11"}],
                    "smtSiblings": ["0,8", "1,9", "2,10", "3,11"],
                }
            ],
            "pods": [
                POD
                | {
                    "interferenceClass": "D",
                    "socket": 0,
                    "cpus": "0-3,8-11",
                    "effectiveCpus": "0-3,8-11",
                    "since": "2026-01-31T12:00:02Z",
                }
            ],
            "conditions": [],
        },
    }
    found = SocketStatus.parse(raw)
    (socket,), (pod,) = found.status.sockets, found.status.pods
    assert socket.cpus == socket.caches[0].cpus == pod.effective_cpus == {0, 1, 2, 3, 8, 9, 10, 11}
    assert socket.smt_siblings[1] == {1, 9}
    assert pod.interference_class is found.spec.assignments[0].interference_class is InterferenceClass.D
    written = found.to_api()
    assert {name: written[name] for name in ("apiVersion", "kind", "spec", "status")} == {
        name: raw[name] for name in ("apiVersion", "kind", "spec", "status")
    }


def test_one_that_says_nothing_yet() -> None:
    found = SocketStatus.parse({"metadata": {"name": "n1"}})
    assert (found.spec.assignments, found.status.sockets, found.status.pods) == ((), (), ())


def test_a_pod_of_several_sockets_that_is_left_alone() -> None:
    found = PodReport.model_validate(POD | {"effectiveCpus": "0-15"})
    assert (found.socket, found.cpus, found.since) == (None, None, None)
    assert found.to_api() == POD | {"effectiveCpus": "0-15"}


def test_no_cpus_are_not_the_same_as_cpus_not_known() -> None:
    assert PodReport.model_validate(POD | {"effectiveCpus": ""}).to_api()["effectiveCpus"] == ""


@pytest.mark.parametrize(
    ("model", "good", "change"),
    [
        pytest.param(Assignment, POD | {"socket": 1}, {"socket": -1}, id="negative socket"),
        pytest.param(Assignment, POD | {"socket": 1}, {"socket": None}, id="no socket"),
        pytest.param(Assignment, POD | {"socket": 1}, {"uid": ""}, id="no pod"),
        pytest.param(Assignment, POD | {"socket": 1}, {"name": "n" * 254}, id="no name of a pod"),
        pytest.param(Assignment, POD | {"socket": 1}, {"interferenceClass": "catA"}, id="no class"),
        pytest.param(Assignment, POD | {"socket": 1}, {"time": "now"}, id="no time"),
        pytest.param(SocketReport, SOCKET, {"cpus": "0-3,"}, id="no list of CPUs"),
        pytest.param(SocketReport, SOCKET, {"cpus": f"{MAX_CPU + 1}"}, id="no CPU"),
        pytest.param(SocketReport, SOCKET, {"cpus": [MAX_CPU + 1]}, id="no CPU, as a number"),
        pytest.param(SocketReport, SOCKET, {"cpuCount": 0}, id="a socket without CPUs"),
        pytest.param(SocketReport, SOCKET, {"smtSiblings": "0,8"}, id="siblings that are no list"),
        pytest.param(SocketReport, SOCKET, {"memoryBytes": -1}, id="negative memory"),
        pytest.param(CacheReport, {"cpus": "0"}, {"level": 0}, id="no level"),
        pytest.param(PodReport, POD, {"cpus": "4-0"}, id="CPUs backwards"),
    ],
)
def test_what_nobody_says_is_refused(model: type[Assignment], good: dict[str, Any], change: dict[str, Any]) -> None:
    model.model_validate(good)
    with pytest.raises(ValidationError):
        model.model_validate(good | change)


def test_the_number_of_assignments_is_bounded() -> None:
    pods = [POD | {"uid": str(number), "socket": 0} for number in range(MAX_PODS + 1)]
    SocketStatus.model_validate({"metadata": {"name": "n1"}, "spec": {"assignments": pods[1:]}})
    with pytest.raises(ValidationError):
        SocketStatus.model_validate({"metadata": {"name": "n1"}, "spec": {"assignments": pods}})


@given(st.frozensets(st.integers(0, MAX_CPU), max_size=60))
def test_cpus_are_written_as_they_are_read(cpus: frozenset[int]) -> None:
    found = CacheReport(cpus=cpus)
    assert CacheReport.model_validate(found.to_api()) == found
