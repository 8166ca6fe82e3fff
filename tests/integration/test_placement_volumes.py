"""Pods whose claims wait for their first consumer, on a real API server with its real volume controller.

The provisioner of the dynamic class is played by the test: it makes the volume once the claim says for which node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.harness.cluster import Kubectl, eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster

SELECTED = "volume.kubernetes.io/selected-node"
HOSTNAME = "kubernetes.io/hostname"
PROVISIONER = "berth-test.example/disk"


@pytest.fixture
def controller(cluster: LocalCluster, simulated_nodes: list[str], tmp_path: Path) -> Iterator[ControllerProcess]:
    """The placement controller as a process."""
    with ControllerProcess.start(
        ["placement"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=["--no-leader-elect"]
    ) as process:
        yield process.wait_ready()


@pytest.fixture
def storage(kubectl: Kubectl) -> Iterator[Callable[..., str]]:
    """Factory of storage classes and volumes outside namespaces, named after the test's own; deleted afterwards."""
    made: list[tuple[str, str]] = []

    def make(kind: str, name: str, **fields: Any) -> str:
        full = f"{kubectl.namespace}-{name}"
        version = "storage.k8s.io/v1" if kind == "StorageClass" else "v1"
        kubectl.apply({"apiVersion": version, "kind": kind, "metadata": {"name": full}, **fields})
        made.append((kind, full))
        return full

    yield make
    kubectl("delete", "pod", "--all", "--wait=false", "--grace-period=0", "--force", check=False)
    for kind, name in made:
        kubectl("delete", kind, name, "--wait=false", check=False)


def waiting_class(provisioner: str) -> dict[str, Any]:
    return {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}


def volume(class_name: str, node: str, *, size: str = "10Gi", claim: dict[str, str] | None = None) -> dict[str, Any]:
    """Fields of a local volume of one node."""
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}]
    spec: dict[str, Any] = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": class_name,
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    if claim is not None:
        spec["claimRef"] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim}
    return {"spec": spec}


def claim(name: str, class_name: str, *, size: str = "5Gi") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "resources": {"requests": {"storage": size}},
        },
    }


def user(name: str, *claims: str, **spec: Any) -> dict[str, Any]:
    """Pod that mounts claims."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "berth-scheduler",
            "containers": [{"name": "main", "image": "registry.invalid/main:1"}],
            "volumes": [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims],
            **spec,
        },
    }


def node_of(kubectl: Kubectl, pod: str) -> str:
    return str(kubectl.get("pod", pod)["spec"].get("nodeName", ""))


def wait_bound(kubectl: Kubectl, controller: ControllerProcess, pod: str) -> str:
    node: str = controller.wait_until(lambda: node_of(kubectl, pod), what=f"node of pod {pod}")
    return node


def wait_phase(kubectl: Kubectl) -> dict[str, Any]:
    """Wait for the phase of the claim `data`, which is written after all that a pod waits for; returns the claim."""
    found: dict[str, Any] = eventually(
        lambda: kubectl.get("pvc", "data"), accept=lambda item: item["status"]["phase"] == "Bound", what="phase Bound"
    )
    return found


def test_static_volume_is_claimed_before_the_pod_is_bound(
    kubectl: Kubectl, controller: ControllerProcess, storage: Callable[..., str], simulated_nodes: list[str]
) -> None:
    fast = storage("StorageClass", "local", **waiting_class("kubernetes.io/no-provisioner"))
    storage("PersistentVolume", "small", **volume(fast, simulated_nodes[2], size="1Gi"))
    fitting = storage("PersistentVolume", "fitting", **volume(fast, simulated_nodes[7]))
    kubectl.apply(claim("data", fast), user("db", "data"))
    assert wait_bound(kubectl, controller, "db") == simulated_nodes[7]
    bound = wait_phase(kubectl)
    assert bound["spec"]["volumeName"] == fitting
    claimed = kubectl.get("pv", fitting)
    assert claimed["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]
    assert claimed["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"


def test_two_pods_never_get_the_same_volume(
    kubectl: Kubectl, controller: ControllerProcess, storage: Callable[..., str], simulated_nodes: list[str]
) -> None:
    fast = storage("StorageClass", "local", **waiting_class("kubernetes.io/no-provisioner"))
    for number in (1, 4):
        storage("PersistentVolume", f"v{number}", **volume(fast, simulated_nodes[number]))
    kubectl.apply(claim("one", fast), claim("two", fast), user("p1", "one"), user("p2", "two"))
    nodes = {wait_bound(kubectl, controller, name) for name in ("p1", "p2")}
    assert nodes == {simulated_nodes[1], simulated_nodes[4]}


def test_pod_waits_for_a_volume_and_is_placed_when_it_comes(
    kubectl: Kubectl, controller: ControllerProcess, storage: Callable[..., str], simulated_nodes: list[str]
) -> None:
    fast = storage("StorageClass", "local", **waiting_class("kubernetes.io/no-provisioner"))
    kubectl.apply(claim("data", fast), user("db", "data"))

    def reasons() -> list[str]:
        conditions = kubectl.get("pod", "db")["status"].get("conditions", [])
        return [c.get("message", "") for c in conditions if c["type"] == "PodScheduled"]

    # Its claim may be seen after it, and what is said first is that there is none.
    controller.wait_until(
        reasons,
        accept=lambda said: any("didn't find available persistent volumes to bind" in text for text in said),
        what="condition PodScheduled",
    )
    assert node_of(kubectl, "db") == ""
    storage("PersistentVolume", "late", **volume(fast, simulated_nodes[9]))
    assert wait_bound(kubectl, controller, "db") == simulated_nodes[9]


def test_dynamic_volume_is_provisioned_for_the_chosen_node(
    kubectl: Kubectl, controller: ControllerProcess, storage: Callable[..., str], simulated_nodes: list[str]
) -> None:
    disk = storage("StorageClass", "disk", **waiting_class(PROVISIONER))
    wanted = simulated_nodes[3]
    kubectl.apply(claim("data", disk), user("db", "data", nodeSelector={HOSTNAME: wanted}))
    found = controller.wait_until(
        lambda: kubectl.get("pvc", "data")["metadata"].get("annotations", {}).get(SELECTED), what="selected node"
    )
    assert found == wanted
    assert node_of(kubectl, "db") == "", "bound before its volume exists"
    provision(kubectl, storage, disk, wanted)
    assert wait_bound(kubectl, controller, "db") == wanted
    wait_phase(kubectl)


def test_refused_provisioning_moves_the_pod_elsewhere(
    kubectl: Kubectl, controller: ControllerProcess, storage: Callable[..., str], simulated_nodes: list[str]
) -> None:
    disk = storage("StorageClass", "disk", **waiting_class(PROVISIONER))
    kubectl.apply(claim("data", disk), user("db", "data"))

    def selected() -> str:
        return str(kubectl.get("pvc", "data")["metadata"].get("annotations", {}).get(SELECTED, ""))

    first = controller.wait_until(selected, what="selected node")
    kubectl("cordon", first)
    try:
        kubectl("annotate", "pvc", "data", f"{SELECTED}-")  # what a provisioner does that cannot serve the node
        second = controller.wait_until(selected, accept=lambda node: node not in ("", first), what="another node")
        said = eventually(
            lambda: [
                e["note"] for e in kubectl.get("events.events.k8s.io")["items"] if e["reason"] == "VolumesNotBound"
            ],
            what="event VolumesNotBound",
        )
        assert f"could not serve node {first}" in said[0]
        provision(kubectl, storage, disk, second)
        assert wait_bound(kubectl, controller, "db") == second
    finally:
        kubectl("uncordon", first)


def test_killed_controller_goes_on_where_it_was(
    cluster: LocalCluster,
    kubectl: Kubectl,
    storage: Callable[..., str],
    simulated_nodes: list[str],
    tmp_path: Path,
) -> None:
    disk = storage("StorageClass", "disk", **waiting_class(PROVISIONER))
    kubectl.apply(claim("data", disk), user("db", "data"))

    def start() -> ControllerProcess:
        return ControllerProcess.start(
            ["placement"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=["--no-leader-elect"]
        )

    with start() as before:
        selected = before.wait_until(
            lambda: kubectl.get("pvc", "data")["metadata"].get("annotations", {}).get(SELECTED), what="selected node"
        )
        before.kill()
    provision(kubectl, storage, disk, selected)
    with start() as after:
        assert wait_bound(kubectl, after, "db") == selected


def provision(kubectl: Kubectl, storage: Callable[..., str], class_name: str, node: str) -> None:
    """Play the external provisioner: make a volume for the claim `data` on a node."""
    uid = kubectl.get("pvc", "data")["metadata"]["uid"]
    reference = {"namespace": kubectl.namespace, "name": "data", "uid": uid}
    storage("PersistentVolume", "provisioned", **volume(class_name, node, claim=reference))
