"""Placement and the socketstatus controller on one list of assignments: each follows what the other has written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from berth.api.labels import ANNOTATION_SOCKET, LABEL_INTERFERENCE_CLASS
from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.placing import Stage, configuration, profile
from tests.support.socket_stand import SocketStand


@pytest.fixture
def node(own_cluster: LocalCluster) -> Iterator[SocketStand]:
    """A node of two sockets."""
    stand = SocketStand(Stage(own_cluster))
    yield stand
    stand.close()


@pytest.fixture
def both(own_cluster: LocalCluster, tmp_path: Path) -> Iterator[tuple[ControllerProcess, ControllerProcess]]:
    """Placement by sockets, and the socketstatus controller without cool-down."""
    options = {
        "placement": configuration(tmp_path, profile() | {"interference": "LeastSlowdown"}),
        "socketstatus": ["--socketstatus-cool-down", "0"],
    }
    with ExitStack() as stack:
        placement, socketstatus = (
            stack.enter_context(
                ControllerProcess.start(
                    [name],
                    kubeconfig=own_cluster.kubeconfig,
                    directory=tmp_path,
                    arguments=["--no-leader-elect", *arguments],
                )
            )
            for name, arguments in options.items()
        )
        yield placement.wait_ready(), socketstatus.wait_ready()


def add(node: SocketStand, *names: str) -> None:
    """Have pods placed, one after the other; the last letter of a name is its class."""
    for name in names:
        node.stage.pod(name, labels={LABEL_INTERFERENCE_CLASS: name[-1].upper()})
        node.stage.wait_bound(name)
        eventually(node.assigned, accept={name}.issubset, what=f"{name} assigned")


def test_pods_come_and_go_and_both_are_of_one_mind(
    node: SocketStand, both: tuple[ControllerProcess, ControllerProcess]
) -> None:
    placement, repairing = both
    add(node, "one-d", "two-d", "three-d")
    found = node.assigned()
    alone = next(name for name in found if list(found.values()).count(found[name]) == 1)
    crowd = [name for name in found if name != alone]
    node.stage.delete_pod(alone)
    node.wait_assigned(*([name] for name in crowd))
    # What is written is seen before its writer has read the answer and counted it.
    eventually(lambda: repairing.metric("berth_socketstatus_moved_pods_total"), what="a move that is counted")
    assert repairing.metric("berth_socketstatus_moved_pods_total") == 1
    before = node.assigned()
    add(node, "four-a")
    node.stage.witness()  # by then placement has counted what it has written
    writes = placement.metric("berth_placement_socket_writes_total", outcome="written")
    annotation = node.stage.pods()["four-a"]["metadata"]["annotations"][ANNOTATION_SOCKET]
    node.wait_condition("True", "Paired", "of 3 assigned pods")
    assert node.assigned() == before | {"four-a": int(annotation)}, "placement knew where the others are now"
    assert placement.metric("berth_placement_socket_writes_total", outcome="written") == writes
    assert repairing.metric("berth_socketstatus_moved_pods_total") == 1
    for name in ("four-a", *crowd):
        node.stage.delete_pod(name)
    eventually(node.assigned, accept=lambda found: found == {}, what="nobody is assigned")
    node.wait_condition("True", "NothingAssigned")


def test_the_last_pod_goes_whose_socket_was_edited(
    node: SocketStand, both: tuple[ControllerProcess, ControllerProcess]
) -> None:
    add(node, "one-d")
    node.edit("one-d", 1 - node.assigned()["one-d"])
    node.stage.delete_pod("one-d")
    eventually(node.assigned, accept=lambda found: found == {}, what="nobody is assigned")
    add(node, "two-d")
    node.wait_condition("True", "Paired", "of 1 assigned pod")


def test_without_placement_its_assignments_are_tidied_all_the_same(
    node: SocketStand, both: tuple[ControllerProcess, ControllerProcess]
) -> None:
    placement, _ = both
    add(node, "one-d", "two-d", "three-d")
    placement.stop()
    found = node.assigned()
    alone = next(name for name in found if list(found.values()).count(found[name]) == 1)
    node.stage.delete_pod(alone)
    node.wait_assigned(*([name] for name in found if name != alone))
