"""What people write into SocketStatuses and labels: told where it makes no sense, and harmless to others.

Left out: what the API server refuses (test_socketstatus_kind.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from berth.api.labels import LABEL_CATEGORY
from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.placing import Stage
from tests.support.socket_stand import SocketStand


@pytest.fixture(scope="module")
def controller(own_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    """The controller, working."""
    with ControllerProcess.start(
        ["socketstatus"],
        kubeconfig=own_cluster.kubeconfig,
        directory=tmp_path_factory.mktemp("controller"),
        arguments=["--no-leader-elect"],
    ) as process:
        yield process.wait_ready()


@pytest.fixture
def node(own_cluster: LocalCluster, controller: ControllerProcess) -> Iterator[SocketStand]:
    """A node of two sockets."""
    stand = SocketStand(Stage(own_cluster))
    yield stand
    stand.close()


def test_what_makes_no_sense_is_told_and_others_are_paired_all_the_same(node: SocketStand) -> None:
    node.pod("odd", "E")
    node.pod("torn", "A", **{LABEL_CATEGORY: "catB"})
    node.pod("far", "A")
    for name in ("one-d", "two-d"):
        node.pod(name, "D")
    node.assign(*[node.entry(name, 0) for name in ("one-d", "two-d", "odd", "torn")], node.entry("far", 7))
    eventually(node.assigned, accept=lambda found: found["one-d"] != found["two-d"], what="a move")
    assert [node.assigned()[name] for name in ("odd", "torn", "far")] == [0, 0, 7]
    text = node.wait_condition("True", "BadInput")
    prefix = f"Pod {node.stage.name}/"
    assert f'{prefix}odd: metadata.labels.berth.dev/interference-class: "E" is no interference class' in text
    assert f"{prefix}torn: metadata.labels.berth.dev/interference-class: A here and B in the label category" in text
    assert f"].socket: {node.node} has no socket 7, it has 0-1; pod {node.stage.name}/far counts for nothing" in text
    eventually(lambda: node.events("BadInput"), what="Event")


@pytest.mark.parametrize("time", ["0000-01-01T00:00:00Z", "9999-12-31T23:00:00-05:00", "2026-01-31T12:00:00+99:00"])
def test_a_time_that_nobody_understands_keeps_no_pod_from_being_paired(node: SocketStand, time: str) -> None:
    node.pod("odd", "A")
    for name in ("one-d", "two-d"):
        node.pod(name, "D")
    node.assign(node.entry("one-d", 0), node.entry("two-d", 0), node.entry("odd", 1) | {"time": time})
    eventually(node.assigned, accept=lambda found: found["one-d"] != found["two-d"], what="a move")


def test_an_assignment_for_a_pod_that_is_gone_is_taken_out_whoever_wrote_it(node: SocketStand) -> None:
    node.place(["one-d"])
    waiting = node.stage.pod("waiting", labels={"berth.dev/interference-class": "A"})
    elsewhere = node.stage.pod("elsewhere", labels={"berth.dev/interference-class": "A"}, nodeName="elsewhere")
    node.pod("done", "A")
    node.stage.change_status("done", {"phase": "Succeeded"})
    node.assign(
        node.entry("gone", 1, uid="no-such-pod"),
        node.entry("one-d", 1, uid="of-one-before"),
        node.entry("elsewhere", 1, uid=elsewhere),
        node.entry("done", 1),
        node.entry("..", 1, uid="dots"),
        node.entry("a/b", 1, uid="slash"),
        node.entry("x", 1, uid="elsewhere") | {"namespace": ".."},
        node.entry("waiting", 1, uid=waiting),
        manager="somebody",
    )
    node.wait_assigned(["one-d"], ["waiting"])
    notes = eventually(lambda: node.events("AssignmentsRemoved"), what="Event")
    assert all(
        f"{node.stage.name}/{name} (" in notes[0] for name in ("gone", "one-d", "elsewhere", "done", "..", "a/b")
    )


def test_who_was_assigned_by_hand_stays_and_others_move(node: SocketStand) -> None:
    node.place(["one-d", "two-d"], ["three-d"])
    node.edit("three-d", 0)
    eventually(node.assigned, accept=lambda found: sorted(found.values()) == [0, 0, 1], what="a move")
    text = node.wait_condition("False", "Disturbed", f"{node.stage.name}/three-d stay where somebody has assigned")
    assert "disturb each other on socket 0" in text
    node.edit("three-d", 1)
    node.wait_condition("False", "Disturbed", "disturb each other on socket 1")
    found = node.assigned()
    assert (found["three-d"], sorted(found.values())) == (1, [0, 1, 1])


def test_whose_assignments_they_are_is_not_known_without_managed_fields(node: SocketStand) -> None:
    node.place(["one-d", "two-d"])
    node.wait_assigned(["one-d"], ["two-d"])
    metadata: dict[str, Any] = {"metadata": {"managedFields": [{}]}}
    node.stage.api.request("PATCH", node.path, metadata, content_type="application/merge-patch+json")
    node.edit("two-d", node.assigned()["one-d"])
    text = node.wait_condition("False", "Disturbed")
    assert "one-d" in text.partition("worth its price")[2]


def test_an_edited_list_is_put_right_again(node: SocketStand) -> None:
    node.place(["one-d"], ["two-d"])
    node.wait_condition("True", "Paired", "of 2 assigned pods")
    node.stage.api.request(
        "PATCH", node.path, {"spec": {"assignments": []}}, content_type="application/merge-patch+json"
    )
    node.wait_condition("True", "NothingAssigned")
    node.assign(node.entry("one-d", 0), node.entry("two-d", 0))
    node.wait_assigned(["one-d"], ["two-d"])
