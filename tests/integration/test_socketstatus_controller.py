"""Pods that are assigned to sockets change places on a real API server, and assignments are kept tidy.

Left out: which exchange is the best (tests/unit/berth/scheduling/interference/test_exchange.py), input that makes no
sense (test_socketstatus_input.py), and placement beside it (test_socketstatus_placement.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from berth.api.base import format_timestamp
from berth.api.labels import ANNOTATION_SOCKET
from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.placing import Stage
from tests.support.socket_stand import SocketStand


@pytest.fixture
def node(own_cluster: LocalCluster) -> Iterator[SocketStand]:
    """A node of two sockets."""
    stand = SocketStand(Stage(own_cluster))
    yield stand
    stand.close()


def run(cluster: LocalCluster, directory: Path, *arguments: str) -> ControllerProcess:
    return ControllerProcess.start(
        ["socketstatus"],
        kubeconfig=cluster.kubeconfig,
        directory=directory,
        arguments=["--no-leader-elect", *arguments],
    ).wait_ready()


def test_when_a_pod_goes_another_takes_its_socket(node: SocketStand, own_cluster: LocalCluster, tmp_path: Path) -> None:
    node.place(["one-d", "two-d"], ["three-d"])
    with run(own_cluster, tmp_path) as controller:
        text = node.wait_condition("False", "Disturbed")
        assert f"{node.stage.name}/one-d (D) and {node.stage.name}/two-d (D) disturb each other on socket 0" in text
        assert "no exchange of pods between sockets is worth its price" in text
        assert node.assigned() == {"one-d": 0, "two-d": 0, "three-d": 1}
        assert controller.metric("berth_socketstatus_violations") == 1
        node.stage.delete_pod("three-d")
        node.wait_assigned(["one-d"], ["two-d"])
        assert "three-d" in eventually(lambda: node.events("AssignmentsRemoved"), what="Event")[0]
        node.wait_condition("True", "Paired", "of 2 assigned pods no two on one socket disturb each other")
        moved = next(name for name, socket in node.assigned().items() if socket == 1)
        text = node.stage.wait_event(moved, "SocketChanged")
        assert text == (
            f"Moved from socket 0 to 1 of {node.node}: the pods of both are expected to be slower by 0.46 in all "
            "before, and by 0.00 after"
        )
        times = {each["name"]: each["time"] for each in node.get()["spec"]["assignments"]}
        assert sorted(time > "2026-02" for time in times.values()) == [False, True]
        eventually(lambda: controller.metric("berth_socketstatus_violations"), accept=lambda found: found == 0)
        assert controller.metric("berth_socketstatus_moved_pods_total") == 1


def test_two_that_fit_elsewhere_change_places(node: SocketStand, own_cluster: LocalCluster, tmp_path: Path) -> None:
    node.place(["one-b", "one-c"], ["two-b", "two-c"])
    with run(own_cluster, tmp_path) as controller:
        node.wait_assigned(["one-b", "two-b"], ["one-c", "two-c"])
        # Counted when the answer has come, after others see what was written.
        eventually(lambda: controller.metric("berth_socketstatus_moved_pods_total") == 2, what="both counted")


def test_a_pod_that_has_just_come_stays_for_a_while(
    node: SocketStand, own_cluster: LocalCluster, tmp_path: Path
) -> None:
    node.place(["one-d", "two-d"], time=format_timestamp(datetime.now(UTC)))
    with run(own_cluster, tmp_path):
        node.wait_condition("False", "Waiting", "change places from ")
        assert node.assigned() == {"one-d": 0, "two-d": 0}
    with run(own_cluster, tmp_path, "--socketstatus-cool-down", "0"):
        node.wait_assigned(["one-d"], ["two-d"])


def test_what_is_not_worth_the_price_that_was_set_stays(
    node: SocketStand, own_cluster: LocalCluster, tmp_path: Path
) -> None:
    node.place(["one-d", "two-d"])
    with run(own_cluster, tmp_path, "--socketstatus-price", "10"):
        node.wait_condition("False", "Disturbed")
        assert node.assigned() == {"one-d": 0, "two-d": 0}


@pytest.mark.parametrize(
    ("condition", "reason"),
    [("ObserveOnly", "ObserveOnly"), ("TopologyUnknown", "TopologyUnknown")],
)
def test_where_nobody_pins_nobody_moves_and_those_that_are_gone_are_taken_out(
    node: SocketStand, own_cluster: LocalCluster, tmp_path: Path, condition: str, reason: str
) -> None:
    node.place(["one-d", "two-d", "gone-d"])
    node.stage.delete_pod("gone-d")
    found = {
        "type": condition,
        "status": "True",
        "reason": "Test",
        "message": "",
        "lastTransitionTime": "2026-01-31T12:00:00Z",
    }
    sockets = node.get()["status"]["sockets"]
    node.apply({"status": {"sockets": sockets, "conditions": [found]}}, manager="berth-pinning")
    with run(own_cluster, tmp_path):
        node.wait_condition("Unknown", reason, "Nobody is moved")
        eventually(node.assigned, accept=lambda found: found == {"one-d": 0, "two-d": 0}, what="the list")


def test_nobody_is_assigned_who_was_not_placed_by_sockets(
    node: SocketStand, own_cluster: LocalCluster, tmp_path: Path
) -> None:
    node.pod("loud-d", "D")
    node.pod("noisy-d", "D")
    with run(own_cluster, tmp_path):
        node.wait_condition("True", "NothingAssigned")
        assert node.assigned() == {}
        assert "spec" not in node.get()


def test_with_assign_all_pods_of_others_get_sockets_by_the_rules(
    node: SocketStand, own_cluster: LocalCluster, tmp_path: Path
) -> None:
    node.place(["here-a"], ["there-d"])
    with run(own_cluster, tmp_path, "--socketstatus-assign-all") as controller:
        node.wait_condition("True", "Paired")
        bound = node.pod("bound-d", "D")
        annotated = {"metadata": {"annotations": {ANNOTATION_SOCKET: "0"}}}
        path = f"/api/v1/namespaces/{node.stage.name}/pods/bound-d"
        node.stage.api.request("PATCH", path, annotated, content_type="application/merge-patch+json")
        node.pod("plain")
        node.pod("loud-d", "D")
        node.wait_assigned(["here-a", "loud-d"], ["there-d"])
        assert bound not in {each["uid"] for each in node.get()["spec"]["assignments"]}
        node.stage.delete_pod("loud-d")
        node.wait_assigned(["here-a"], ["there-d"])
        assert controller.metric("berth_socketstatus_assigned_pods_total") == 1


def test_a_leader_that_is_killed_leaves_nothing_undone(
    node: SocketStand, own_cluster: LocalCluster, tmp_path: Path
) -> None:
    node.place(["one-d", "two-d"], ["three-d"])
    with run(own_cluster, tmp_path) as controller:
        node.wait_condition("False", "Disturbed")
        node.stage.delete_pod("three-d")
        controller.kill()
    with run(own_cluster, tmp_path):
        node.wait_assigned(["one-d"], ["two-d"])
        version = node.wait_condition("True", "Paired") and node.get()["metadata"]["resourceVersion"]
    with run(own_cluster, tmp_path) as controller:
        eventually(lambda: controller.metric("berth_socketstatus_reconcile_seconds_count"), what="a look")
        assert node.get()["metadata"]["resourceVersion"] == version, "what is right is not written"
