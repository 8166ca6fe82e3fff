"""What makes waiting pods be looked at again, and rules between members of one AppGroup, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.harness.cluster import Kubectl, bound_pod
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support import builders, kinds
from tests.support.placement import chain

HOST = "kubernetes.io/hostname"
SOON = 45.0
"""Seconds; a pod that nobody wakes is looked at after 60 only."""


@pytest.fixture
def controller(cluster: LocalCluster, simulated_nodes: list[str], tmp_path: Path) -> Iterator[ControllerProcess]:
    """The placement controller as a process."""
    with ControllerProcess.start(
        ["placement"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=["--no-leader-elect"]
    ) as process:
        yield process.wait_ready()


def pod(name: str, *, labels: dict[str, str] | None = None, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "schedulerName": "berth-scheduler",
            "containers": [
                {"name": "main", "image": "registry.invalid/main:1", "resources": {"requests": {"cpu": cpu}}}
            ],
            **spec,
        },
    }


def member(name: str, workload: str, **arguments: Any) -> dict[str, Any]:
    labels = {"appgroup.diktyo.x-k8s.io": "shop", "appgroup.diktyo.x-k8s.io.workload": workload}
    return pod(name, labels=labels, **arguments)


def near(**labels: str) -> dict[str, Any]:
    """A pod spec's affinity towards pods with these labels on one node."""
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [builders.pod_term(HOST, labels)]}}


def nodes(kubectl: Kubectl) -> dict[str, str]:
    """Node of every pod that has one."""
    found = kubectl.get("pods")["items"]
    return {item["metadata"]["name"]: item["spec"]["nodeName"] for item in found if item["spec"].get("nodeName")}


def unschedulable(kubectl: Kubectl, name: str) -> str:
    """Message of the pod's condition PodScheduled, empty when there is none or it is true."""
    conditions = kubectl.get("pod", name)["status"].get("conditions", [])
    return next((c["message"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")


def reasons(kubectl: Kubectl, name: str) -> list[str]:
    found = kubectl.get("events.events.k8s.io")["items"]
    return [item["reason"] for item in found if item["regarding"]["name"] == name]


def test_a_pod_bound_by_somebody_else_wakes_one_that_wants_to_be_near(
    kubectl: Kubectl, controller: ControllerProcess, simulated_nodes: list[str]
) -> None:
    kubectl.apply(pod("friend", affinity=near(app="db")))
    controller.wait_until(lambda: unschedulable(kubectl, "friend"), what="condition of the waiting pod")
    target = bound_pod("db", simulated_nodes[5])
    target["metadata"]["labels"] = {"app": "db"}
    kubectl.apply(target)
    found = controller.wait_until(
        lambda: nodes(kubectl).get("friend"), timeout=SOON, what="node of the pod that waited for it"
    )
    assert found == simulated_nodes[5]


def test_room_that_becomes_free_wakes(
    kubectl: Kubectl, controller: ControllerProcess, simulated_nodes: list[str]
) -> None:
    here = {"nodeSelector": {HOST: simulated_nodes[11]}}
    kubectl.apply(pod("first", cpu="3", **here))
    controller.wait_until(lambda: nodes(kubectl).get("first"), what="node of the first pod")
    kubectl.apply(pod("second", cpu="3", **here))
    message = controller.wait_until(lambda: unschedulable(kubectl, "second"), what="condition of the second pod")
    assert "1 Insufficient cpu" in message
    kubectl("delete", "pod", "first", "--grace-period=0", "--force")
    assert controller.wait_until(lambda: nodes(kubectl).get("second"), timeout=SOON, what="node of the second pod")


def test_members_that_need_each_other_are_placed_in_one_go(kubectl: Kubectl, controller: ControllerProcess) -> None:
    kubectl.apply(
        kinds.app_group(*chain("a", "b", "c")),
        member("a", "a", affinity=near(**{"appgroup.diktyo.x-k8s.io.workload": "b"})),
        member("b", "b", affinity=near(**{"appgroup.diktyo.x-k8s.io.workload": "c"})),
        member("c", "c"),
    )
    found = controller.wait_until(
        lambda: nodes(kubectl), accept=lambda placed: len(placed) == 3, timeout=SOON, what="nodes of all members"
    )
    assert len(set(found.values())) == 1


def test_a_gated_pod_is_waited_for(kubectl: Kubectl, controller: ControllerProcess) -> None:
    kubectl.apply(
        kinds.app_group(*chain("a", "b")),
        member("a", "a"),
        member("b", "b", schedulingGates=[{"name": "example.com/later"}]),
    )
    controller.wait_until(
        lambda: reasons(kubectl, "a"), accept=lambda said: "WaitingForMembers" in said, what="event WaitingForMembers"
    )
    assert nodes(kubectl) == {}
    kubectl("patch", "pod", "b", "--type=json", '-p=[{"op": "remove", "path": "/spec/schedulingGates"}]')
    found = controller.wait_until(
        lambda: nodes(kubectl), accept=lambda placed: len(placed) == 2, timeout=SOON, what="nodes of both"
    )
    assert len(set(found.values())) == 1


def test_a_bad_node_annotation_is_told_on_the_node(
    cluster: LocalCluster, kubectl: Kubectl, controller: ControllerProcess, simulated_nodes: list[str]
) -> None:
    name = simulated_nodes[20]
    kubectl("annotate", "node", name, "berth.dev/price-cpu=cheap")
    try:
        everywhere = Kubectl(cluster, "default")
        controller.wait_until(
            lambda: reasons(everywhere, name), accept=lambda said: "BadAnnotation" in said, what="event BadAnnotation"
        )
    finally:
        kubectl("annotate", "node", name, "berth.dev/price-cpu-")
