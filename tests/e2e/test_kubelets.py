"""Real nodes on one machine: kubelets and containers in network namespaces, side by side and removed without a trace.

Left out: what runs in them (test_kubelets_deploy.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.harness.cluster import REPOSITORY, eventually
from hack.localcluster import ClusterError, LocalCluster, Options
from hack.localcluster.kubelets.configuration import PAUSE_IMAGE
from tests.support.real_nodes import left_on_the_machine, require_real_nodes

pytestmark = pytest.mark.timeout(600)

COMMAND = [sys.executable, str(REPOSITORY / "hack" / "cluster")]
ZONE = "topology.kubernetes.io/zone"


def daemon_set(name: str) -> dict[str, Any]:
    """One pod on every node that does nothing."""
    labels = {"app": name}
    container = {"name": "main", "image": PAUSE_IMAGE, "imagePullPolicy": "Never"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def roll_out(cluster: LocalCluster, name: str) -> list[dict[str, Any]]:
    """Pods of a DaemonSet that does nothing, once they run on every node of *cluster*."""
    cluster.kubectl("apply", "-f", "-", input=json.dumps(daemon_set(name)))
    cluster.kubectl("rollout", "status", f"daemonset/{name}", "--timeout=120s", timeout=150)
    found: list[dict[str, Any]] = json.loads(cluster.kubectl("get", "pods", f"-lapp={name}", "-ojson").stdout)["items"]
    return found


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Directory of instances; whatever is left in it is removed."""
    directory = tmp_path_factory.mktemp("k")
    require_real_nodes(directory)
    yield directory
    for name in LocalCluster.names(directory):
        LocalCluster.remove(name, root=directory)


@pytest.fixture(scope="module")
def cluster(root: Path) -> LocalCluster:
    """Three real nodes."""
    return LocalCluster.start("three", root=root, options=Options(kubelets=3))


def test_nodes_are_ready_each_in_a_zone_of_its_own(cluster: LocalCluster) -> None:
    nodes = json.loads(cluster.kubectl("get", "nodes", "-ojson").stdout)["items"]
    zones = {node["metadata"]["name"]: node["metadata"]["labels"][ZONE] for node in nodes}
    assert zones == {"node-1": "local-a", "node-2": "local-b", "node-3": "local-c"}
    for node in nodes:
        conditions = {item["type"]: item["status"] for item in node["status"]["conditions"]}
        assert conditions["Ready"] == "True"
        assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")
    assert {item.state for item in cluster.status()} == {"running"}


def test_containers_run_on_every_node_with_addresses_of_its_network(cluster: LocalCluster) -> None:
    pods = roll_out(cluster, "everywhere")
    networks = {pod["spec"]["nodeName"]: pod["status"]["podIP"].rpartition(".")[0] for pod in pods}
    assert networks == {"node-1": "10.244.1", "node-2": "10.244.2", "node-3": "10.244.3"}
    assert all(pod["status"]["containerStatuses"][0]["containerID"].startswith("containerd://") for pod in pods)


def test_a_kubelet_may_read_and_change_its_own_node_alone(cluster: LocalCluster) -> None:
    own = cluster.layout.home / "nodes" / "1" / "kubeconfig"
    change = ("patch", "node", "--type=merge", "-p", '{"metadata": {"annotations": {"note": "mine"}}}')
    cluster.kubectl(*change, "node-1", kubeconfig=own)
    with pytest.raises(ClusterError, match="cannot read 'node-2', only its own Node object"):
        cluster.kubectl(*change, "node-2", kubeconfig=own)


def test_the_kubelet_and_containerd_of_a_node_can_end_and_start_again(cluster: LocalCluster) -> None:
    before = {pod["metadata"]["uid"] for pod in roll_out(cluster, "surviving")}
    for component in ("kubelet-2", "containerd-2"):
        cluster.stop_component(component, grace=0)
        assert not cluster.process(component).alive
    for component in ("containerd-2", "kubelet-2"):
        cluster.start_component(component)
    pods = roll_out(cluster, "surviving")
    assert {pod["metadata"]["uid"] for pod in pods} == before
    assert [status["restartCount"] for pod in pods for status in pod["status"]["containerStatuses"]] == [0, 0, 0]


def test_two_clusters_side_by_side_share_nothing(cluster: LocalCluster, root: Path) -> None:
    roll_out(cluster, "staying")
    other = LocalCluster.start("other", root=root, options=Options(kubelets=2))
    assert other.options.bind_address != cluster.options.bind_address
    roll_out(other, "leaving")
    home = other.layout.home
    assert left_on_the_machine(home)
    other.stop()
    assert left_on_the_machine(home) == []
    assert not home.exists()
    assert {pod["status"]["phase"] for pod in roll_out(cluster, "staying")} == {"Running"}
    assert {item.state for item in cluster.status()} == {"running"}


@pytest.mark.parametrize("after", ["containerd-2 is ready", "kubelet-1 is ready"])
def test_up_killed_while_it_starts_leaves_nothing_that_down_does_not_remove(root: Path, after: str) -> None:
    environment = {**os.environ, "BERTH_CLUSTERS_DIR": str(root)}
    up = [*COMMAND, "up", "--name", "killed", "--kubelets", "2"]
    with subprocess.Popen(up, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as starter:
        assert starter.stderr is not None
        seen = []
        for line in starter.stderr:
            seen.append(line)
            if after in line:
                break
        starter.send_signal(signal.SIGKILL)
    assert any(after in line for line in seen), "".join(seen)
    home = root / "killed"
    assert left_on_the_machine(home)
    down = [*COMMAND, "down", "--name", "killed"]
    subprocess.run(down, env=environment, check=True, capture_output=True)
    assert left_on_the_machine(home) == []
    assert not home.exists()


def test_all_processes_killed_with_pods_running_then_up_then_down(root: Path) -> None:
    crashed = LocalCluster.start("crashed", root=root, options=Options(kubelets=1))
    roll_out(crashed, "before")
    records = [crashed.process(name) for name in crashed.components]
    random.Random(1).shuffle(records)
    for record in records:
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, signal.SIGKILL)
    eventually(lambda: not any(record.alive for record in records), what="all dead")
    again = LocalCluster.start("crashed", root=root)
    assert {item.state for item in again.status()} == {"running"}
    roll_out(again, "before")
    again.stop()
    assert left_on_the_machine(root / "crashed") == []
