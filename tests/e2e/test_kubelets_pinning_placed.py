"""The whole way on a real node: the placement controller chooses sockets, and the node's agent gives pods their CPUs.

Left out: faults of either, and pods that somebody else assigns (test_kubelets_pinning.py).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from berth.api.labels import ANNOTATION_SOCKET, LABEL_INTERFERENCE_CLASS
from hack.harness.assigned_pods import assignments
from hack.harness.cluster import eventually
from hack.harness.pinned_node import apply, daemon_set, first_node, pods_on_cpus, prepare, rolled_out
from hack.harness.pinning_waits import seconds_until_pinned
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster, Options
from hack.localcluster.kubelets.configuration import PAUSE_IMAGE
from tests.support.pinning_stand import SOCKETS, two_sockets
from tests.support.placing import configuration, profile
from tests.support.real_nodes import require_real_nodes
from tests.support.sysfs import write_sysfs

pytestmark = pytest.mark.timeout(900)

CROWD = 100
"""Pods that come at once."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A real node of two sockets on which the agent runs."""
    root = tmp_path_factory.mktemp("q")
    require_real_nodes(root)
    write_sysfs(root / "sys", two_sockets())
    with LocalCluster.start("placed", root=root, options=Options(kubelets=1)) as started:
        prepare(started, root)
        apply(started, [daemon_set(started, root, root / "sys")])
        rolled_out(started, "daemonset/berth-pinning")
        yield started


def placement(cluster: LocalCluster, directory: Path) -> ControllerProcess:
    """The placement controller, which chooses sockets."""
    arguments = configuration(directory, profile() | {"interference": "LeastSlowdown"})
    process = ControllerProcess.start(
        ["placement"], kubeconfig=cluster.kubeconfig, directory=directory, arguments=["--no-leader-elect", *arguments]
    )
    return process.wait_ready()


def create(cluster: LocalCluster, letters: dict[str, str]) -> dict[str, str]:
    """Make pods for our scheduler, by name and class; their UIDs."""
    container = {"name": "main", "image": PAUSE_IMAGE, "imagePullPolicy": "Never"}
    spec = {"schedulerName": "berth-scheduler", "containers": [container], "terminationGracePeriodSeconds": 0}
    items = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {LABEL_INTERFERENCE_CLASS: letter}},
            "spec": spec,
        }
        for name, letter in letters.items()
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    cluster.kubectl("create", "-f", "-", input=text, timeout=120)
    made = {each["metadata"]["name"]: each["metadata"]["uid"] for each in pods(cluster)}
    return {name: made[name] for name in letters}


def pods(cluster: LocalCluster) -> list[dict[str, Any]]:
    """Pods of the namespace default."""
    found: list[dict[str, Any]] = json.loads(cluster.kubectl("get", "pods", "-ojson").stdout)["items"]
    return found


def where(cluster: LocalCluster, uids: dict[str, str]) -> dict[str, frozenset[int]]:
    """Wait until each pod has the CPUs of the socket that it is assigned to; these CPUs by name."""

    def seen() -> list[dict[str, frozenset[int]]]:
        has = pods_on_cpus(cluster, frozenset(uids.values()))
        wanted = {each["uid"]: SOCKETS[each["socket"]] for each in assignments(cluster)}
        return [{name: found[uid] for name, uid in uids.items() if uid in found} for found in (has, wanted)]

    has, _ = eventually(
        seen, accept=lambda both: both[0] == both[1] and len(both[0]) == len(uids), what="their sockets", timeout=180.0
    )
    return has


def test_two_that_disturb_each_other_land_on_a_socket_each(cluster: LocalCluster, tmp_path: Path) -> None:
    uids = create(cluster, {"one": "D", "two": "D"})
    with placement(cluster, tmp_path):
        found = where(cluster, uids)
        assert set(found.values()) == set(SOCKETS)
        told = {each["metadata"]["name"]: each["metadata"]["annotations"][ANNOTATION_SOCKET] for each in pods(cluster)}
        assert {name: SOCKETS[int(socket)] for name, socket in told.items()} == found
        eventually(
            lambda: cluster.kubectl("get", "sst", first_node(cluster).name, "--no-headers").stdout.split()[1:4],
            accept=lambda line: line == ["2", "2/2", "0"],
            what="what kubectl get shows",
        )
    cluster.kubectl("delete", "pods", *uids, "--force", "--grace-period=0", timeout=120)


def test_a_crowd_that_waits_is_placed_and_pinned_soon(cluster: LocalCluster, tmp_path: Path) -> None:
    """Figures are printed, not judged: they are those of the machine."""
    names = [f"pod-{number}" for number in range(CROWD)]
    uids = create(cluster, dict(zip(names, cycle("ABCD"), strict=False)))
    with placement(cluster, tmp_path):
        ordered = sorted(asyncio.run(seconds_until_pinned(cluster, dict.fromkeys(uids.values(), SOCKETS))).values())
        print(f"{CROWD} containers had a socket after p50 {ordered[CROWD // 2]:.2f} s, p99 {ordered[-2]:.2f} s")
        found = where(cluster, uids)
        print({f"socket {number}": list(found.values()).count(cpus) for number, cpus in enumerate(SOCKETS)})
