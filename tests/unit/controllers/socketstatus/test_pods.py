"""Pods of nodes: what is kept of them, and to which nodes a change matters."""

from __future__ import annotations

import pytest

from berth.api.interference import InterferenceClass
from berth.api.labels import ANNOTATION_SOCKET, LABEL_INTERFERENCE_CLASS
from berth.kube.meta import MOST_ENTRIES
from berth.scheduling.cache.sockets import SocketTable
from berth.scheduling.interference.slowdown import Workload
from controllers.socketstatus.pods import NodePods, SocketPod
from tests.support.seats import pod
from tests.support.sockets import workload_profile


def pods() -> NodePods:
    return NodePods(SocketTable(), LABEL_INTERFERENCE_CLASS)


def test_what_is_kept() -> None:
    found = pod(cpu="1500m", annotations={ANNOTATION_SOCKET: "1", "note": "long"})
    assert (found.cpu, found.bound_with_socket, found.key) == (1500, True, "default/web")
    assert (found.spec.node_name, found.spec.containers, found.spec.priority) == ("n1", [], None or 0)
    assert (found.metadata.annotations, found.status.message) == ({}, "")
    assert pod(cpu="1e30").cpu == 2**40


@pytest.mark.parametrize(
    ("labels", "kept"),
    [pytest.param(MOST_ENTRIES, True, id="as many as are kept"), pytest.param(1 << 14, False, id="more")],
)
def test_labels_that_are_too_many_are_let_go(labels: int, kept: bool) -> None:
    found = pod(labels={f"label-{number}": "x" for number in range(labels)}, annotations={ANNOTATION_SOCKET: "1"})
    assert (bool(found.metadata.labels), found.bound_with_socket, found.cpu) == (kept, True, 1000)


@pytest.mark.parametrize(
    ("old", "new", "nodes"),
    [
        pytest.param(None, pod(), ["n1"], id="comes"),
        pytest.param(pod(), None, ["n1"], id="goes"),
        pytest.param(pod(), pod(phase="Failed"), ["n1"], id="fails"),
        pytest.param(pod(), pod(deletionTimestamp="2026-01-31T12:00:00Z"), ["n1"], id="is to end"),
        pytest.param(pod(), pod(letter=""), ["n1"], id="loses its class"),
        pytest.param(pod(), pod(cpu="2"), ["n1"], id="takes more"),
        pytest.param(pod(phase="Pending"), pod(), [], id="runs"),
        pytest.param(None, pod(letter=""), [], id="comes without class"),
        pytest.param(None, pod(letter="E"), [], id="comes with a class that is none"),
        pytest.param(None, pod(node=""), [], id="waits"),
    ],
)
def test_to_whom_a_change_matters(old: SocketPod | None, new: SocketPod | None, nodes: list[str]) -> None:
    found = pods()
    if old is not None:
        found.update(None, old)
    assert found.update(old, new) == nodes


def test_pods_without_class_are_known_and_those_that_have_finished_are_not() -> None:
    found = pods()
    plain = pod(letter="")
    found.update(None, plain)
    assert found.of("n1") == {"uid-web": plain}
    found.update(plain, pod(letter="", phase="Succeeded"))
    assert found.of("n1") == {}


def test_a_profile_states_the_class_of_its_workload() -> None:
    table = SocketTable()
    table.profiles.update(workload_profile("db", "C", kind="StatefulSet"))
    owner = {"kind": "StatefulSet", "name": "db", "uid": "u", "controller": True}
    found = NodePods(table, LABEL_INTERFERENCE_CLASS)
    assert found.workload(pod(letter="", ownerReferences=[owner])) == Workload("default/db", InterferenceClass.C, 1)
