"""A real node with ``deploy/pinning``, for the demo, the benchmark and tests: its manifests, and what containers have.

A machine with one socket has its CPUs divided by a copy of sysfs, which is mounted instead of the machine's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from agents.node.pinning.cgroup_paths import container_path
from agents.node.pinning.cpuset import CpusetError, read_cpuset
from agents.node.pinning.cri import CriError, RuntimeClient
from agents.node.pinning.hierarchy import find_hierarchy
from agents.node.topology.assembly import assemble
from agents.node.topology.sysfs import read_sysfs
from berth.api.cpulist import format_cpulist
from hack.harness.cluster import CRDS, REPOSITORY
from hack.localcluster import LocalCluster
from hack.localcluster.kubelets import berth_image
from hack.localcluster.kubelets.names import Node, nodes

NAMESPACE = "berth-system"
Sockets = tuple[frozenset[int], ...]


class RunningContainer(NamedTuple):
    """A container that runs on the node."""

    pod_uid: str
    """UID of its pod"""
    name: str
    """name in its pod"""
    cgroup: Path
    """directory of its cgroup"""
    cpus: frozenset[int]
    """CPUs that it has in effect"""


def first_node(cluster: LocalCluster) -> Node:
    """The first real node."""
    return nodes(cluster.layout.home, 1)[0]


def sockets_for(directory: Path) -> tuple[Sockets, Path | None]:
    """CPUs of at least two sockets, and the copy of sysfs in *directory* that has them; None: the machine's own has."""
    found = tuple(socket.cpus for socket in assemble(read_sysfs()).sockets)
    if len(found) > 1:
        return found, None
    cpus = sorted(found[0])
    half = len(cpus) // 2
    halves = (frozenset(cpus[:half]), frozenset(cpus[half:]))
    root = directory / "sys" / "devices" / "system" / "cpu"
    texts = {"online": format_cpulist(cpus), "present": format_cpulist(cpus)}
    for number, part in enumerate(halves):
        for cpu in part:
            texts |= {
                f"cpu{cpu}/topology/physical_package_id": str(number),
                f"cpu{cpu}/topology/core_cpus_list": str(cpu),
            }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return halves, directory / "sys"


def prepare(cluster: LocalCluster, directory: Path) -> None:
    """Install Berth's image, kinds and rights."""
    archive = directory / "berth.tar"
    berth_image.write(archive, berth_image.TAG)
    cluster.load_images([archive])
    archive.unlink()
    for path in (CRDS, REPOSITORY / "deploy" / "rbac"):
        cluster.kubectl("apply", "--server-side", "-f", str(path))


def manifests(cluster: LocalCluster, name: str) -> list[dict[str, Any]]:
    """What the directory *name* of ``deploy/`` has."""
    rendered = cluster.kubectl("kustomize", str(REPOSITORY / "deploy" / name)).stdout
    return list(yaml.safe_load_all(rendered))


def daemon_set(
    cluster: LocalCluster, directory: Path, sysfs: Path | None, *, source: str = "pinning"
) -> dict[str, Any]:
    """The DaemonSet that pins, with the directories of the node instead of a machine's.

    Args:
        cluster: has a real node.
        directory: where the journal goes.
        sysfs: a copy that is mounted instead of the machine's.
        source: directory of ``deploy/`` that has it.
    """
    node = first_node(cluster)
    paths = {"runtime": node.directory, "kubelet": node.directory / "kubelet", "journal": directory / "journal"}
    (document,) = (item for item in manifests(cluster, source) if item["kind"] == "DaemonSet")
    spec = document["spec"]["template"]["spec"]
    for volume in spec["volumes"]:
        if volume["name"] in paths:
            volume["hostPath"]["path"] = str(paths[volume["name"]])
    (container,) = spec["containers"]
    for mount in container["volumeMounts"]:
        # Machines without systemd have a root that is mounted privately, from which nothing is propagated.
        mount.pop("mountPropagation", None)
    container["args"].append("--pinning-runtime=/run/containerd/containerd.sock")
    if sysfs is not None:
        spec["volumes"].append({"name": "sysfs", "hostPath": {"path": str(sysfs)}})
        container["args"].append("--pinning-sysfs=/host/sys")
        container["volumeMounts"].append({"name": "sysfs", "mountPath": "/host/sys", "readOnly": True})
    return dict(document)


def apply(cluster: LocalCluster, items: Sequence[dict[str, Any]], *options: str) -> None:
    """Apply objects on the server's side."""
    document = {"apiVersion": "v1", "kind": "List", "items": list(items)}
    cluster.kubectl("apply", "--server-side", *options, "-f", "-", input=json.dumps(document))


def rolled_out(cluster: LocalCluster, workload: str) -> None:
    """Return when a workload of Berth's is available."""
    cluster.kubectl("-n", NAMESPACE, "rollout", "status", workload, "--timeout=240s", timeout=300)


async def running(cluster: LocalCluster, uids: frozenset[str]) -> list[RunningContainer]:
    """Containers of pods that run, by what runtime and kernel say; those that end meanwhile are left out."""
    hierarchy = find_hierarchy()
    client = RuntimeClient(first_node(cluster).socket, timeout=10.0)
    found = []
    try:
        for container in await client.containers():
            if container.pod_uid not in uids:
                continue
            try:
                place = await client.place(container.id)
                cgroup = hierarchy.cgroup(container_path(place.cgroups_path))
                cpus = read_cpuset(cgroup, hierarchy.version).effective_cpus
            except (CriError, CpusetError):
                continue
            found.append(RunningContainer(container.pod_uid, container.name, cgroup, cpus))
    finally:
        client.close()
    return found


def pods_on_cpus(cluster: LocalCluster, uids: frozenset[str]) -> dict[str, frozenset[int]]:
    """CPUs of the containers of pods together, by the pod's UID; only of pods that have a container that runs."""
    found: dict[str, frozenset[int]] = {}
    for container in asyncio.run(running(cluster, uids)):
        found[container.pod_uid] = found.get(container.pod_uid, frozenset()) | container.cpus
    return found
