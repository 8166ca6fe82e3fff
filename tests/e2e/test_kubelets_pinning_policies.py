"""A real kubelet that turns to the static CPU manager and back, on a node whose agent has pinned pods before.

Left out: nodes that are drained for it, as Kubernetes asks; no container is there then that both have given CPUs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from berth.api.cpulist import parse_cpulist
from berth.api.labels import LABEL_INTERFERENCE_CLASS
from hack.harness.assigned_pods import start
from hack.harness.cluster import eventually
from hack.harness.pinned_node import NAMESPACE, apply, daemon_set, first_node, prepare, rolled_out, running
from hack.localcluster import LocalCluster, Options
from hack.localcluster.kubelets import configuration
from tests.support.pinning_stand import SOCKETS, two_sockets
from tests.support.real_nodes import require_real_nodes
from tests.support.sysfs import write_sysfs

pytestmark = pytest.mark.timeout(600)

ALL = SOCKETS[0] | SOCKETS[1]
STATIC = {"cpuManagerPolicy": "static", "cpuManagerReconcilePeriod": "1s", "kubeReserved": {"cpu": "500m"}}
EXCLUSIVE = {"requests": {"cpu": "1", "memory": "16Mi"}, "limits": {"cpu": "1", "memory": "16Mi"}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A real node with Berth's kinds, rights and image."""
    root = tmp_path_factory.mktemp("y")
    require_real_nodes(root)
    with LocalCluster.start("policies", root=root, options=Options(kubelets=1)) as started:
        prepare(started, root)
        yield started


def turn(cluster: LocalCluster, **settings: Any) -> Path:
    """Start the node's kubelet again with other managers, as is documented: without their state; the CPU manager's."""
    node = first_node(cluster)
    state = node.directory / "kubelet" / "cpu_manager_state"
    cluster.stop_component("kubelet-1")
    state.unlink()
    (node.directory / "kubelet.yaml").write_text(json.dumps(configuration.kubelet(node) | settings))
    cluster.start_component("kubelet-1")
    return state


def cpus(cluster: LocalCluster, uids: dict[str, str]) -> dict[str, frozenset[int]]:
    """What containers may use, by the pod's name."""
    found = {each.pod_uid: each.cpus for each in asyncio.run(running(cluster, frozenset(uids.values())))}
    return {name: found[uid] for name, uid in uids.items() if uid in found}


def given(state: Path, uids: dict[str, str]) -> dict[str, frozenset[int]]:
    """What the kubelet gives them, by its state; nobody, until it has written one."""
    if not state.exists():
        return {}
    told = json.loads(state.read_text())
    own = told.get("entries") or {}
    return {name: parse_cpulist(own.get(uid, {}).get("main", told["defaultCpuSet"])) for name, uid in uids.items()}


def status(cluster: LocalCluster) -> dict[str, Any]:
    """What the SocketStatus says."""
    found: dict[str, Any] = json.loads(cluster.kubectl("get", "sst", first_node(cluster).name, "-ojson").stdout)
    return dict(found["status"])


def has_reason(cluster: LocalCluster, kind: str, reason: str) -> dict[str, Any]:
    """Wait for a reason of a condition; the status that has it."""
    return eventually(
        lambda: status(cluster),
        accept=lambda found: any((each["type"], each["reason"]) == (kind, reason) for each in found["conditions"]),
        what=f"{kind} {reason}",
        timeout=90.0,
    )


def test_what_a_kubelet_with_exclusive_cpus_sets_is_never_written_over(cluster: LocalCluster, tmp_path: Path) -> None:
    write_sysfs(tmp_path / "sys", two_sockets())
    document = daemon_set(cluster, tmp_path, tmp_path / "sys")
    sockets = {"shared-one": 0, "shared-two": 1, "exclusive": 1}
    pinned = {name: SOCKETS[socket] for name, socket in sockets.items()}
    apply(cluster, [document])
    rolled_out(cluster, "daemonset/berth-pinning")
    uids = start(cluster, sockets, resources={"exclusive": EXCLUSIVE})
    eventually(lambda: cpus(cluster, uids), accept=lambda found: found == pinned, what="pods on sockets", timeout=90.0)

    state = turn(cluster, **STATIC)
    static = eventually(
        lambda: given(state, uids),
        accept=lambda wanted: len(wanted.get("exclusive", ())) == 1 and cpus(cluster, uids) == wanted,
        what="what the kubelet gives them",
        timeout=90.0,
    )
    assert static["exclusive"].isdisjoint(static["shared-one"] | static["shared-two"])
    found = has_reason(cluster, "ObserveOnly", "KubeletPins")
    assert found["pinned"] == "0/3"
    cluster.kubectl("label", "pod", "shared-one", f"{LABEL_INTERFERENCE_CLASS}-")
    eventually(lambda: status(cluster)["pinned"], accept=lambda text: text == "0/2", what="one without label")
    assert cpus(cluster, uids) == static
    # It ends, and another one begins, and ends.
    for _ in range(2):
        cluster.kubectl("-n", NAMESPACE, "delete", "daemonset", "berth-pinning", "--timeout=60s", timeout=90)
        has_reason(cluster, "Pinned", "Unable")
        assert cpus(cluster, uids) == static
        apply(cluster, [document])
        rolled_out(cluster, "daemonset/berth-pinning")
        has_reason(cluster, "ObserveOnly", "KubeletPins")

    turn(cluster)
    pinned["shared-one"] = ALL
    eventually(lambda: cpus(cluster, uids), accept=lambda now: now == pinned, what="what is wanted", timeout=90.0)
    found = has_reason(cluster, "ObserveOnly", "NobodyElsePins")
    assert found["pinned"] == "2/2"
    cluster.kubectl("-n", NAMESPACE, "delete", "daemonset", "berth-pinning", "--timeout=60s", timeout=90)
    has_reason(cluster, "Pinned", "Unable")
    assert set(cpus(cluster, uids).values()) == {ALL}


def test_a_kubelet_that_aligns_resources_without_managers_of_cpus_refuses_nothing(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    """Its topology manager asks the managers of CPUs, memory and devices, and those of policy none want nothing."""
    write_sysfs(tmp_path / "sys", two_sockets())
    cluster.kubectl("delete", "pods", "-lapp=pinned", "--force", "--grace-period=0", timeout=120)
    turn(cluster, topologyManagerPolicy="single-numa-node", topologyManagerScope="pod")
    apply(cluster, [daemon_set(cluster, tmp_path, tmp_path / "sys")])
    rolled_out(cluster, "daemonset/berth-pinning")
    sockets = {"whole": 0, "part": 1}
    uids = start(cluster, sockets, resources={"whole": EXCLUSIVE})
    pinned = {name: SOCKETS[socket] for name, socket in sockets.items()}
    eventually(lambda: cpus(cluster, uids), accept=lambda now: now == pinned, what="pods on sockets", timeout=90.0)
    eventually(lambda: status(cluster)["pinned"], accept=lambda text: text == "2/2", what="the status")
    has_reason(cluster, "ObserveOnly", "NobodyElsePins")
    cluster.kubectl("-n", NAMESPACE, "delete", "daemonset", "berth-pinning", "--timeout=60s", timeout=90)
