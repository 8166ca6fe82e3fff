"""Pinning on a real node whose kubelet has CRI-O for its runtime: deploy/pinning, with pods that the kubelet starts.

What does not depend on the runtime is in test_kubelets_pinning.py.
"""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.node.pinning.cgroup_paths import Runtime, container_path
from agents.node.pinning.cpuset import read_cpuset, write_cpuset
from agents.node.pinning.cri import RuntimeClient
from agents.node.pinning.hierarchy import find_hierarchy
from hack.harness.assigned_pods import start
from hack.harness.cluster import CRDS, REPOSITORY, eventually
from hack.harness.pinned_node import NAMESPACE, apply, daemon_set, first_node, rolled_out
from hack.localcluster import LocalCluster, Options
from hack.localcluster.kubelets import berth_image, configuration, images
from hack.localcluster.kubelets.configuration import PAUSE_IMAGE
from hack.localcluster.kubelets.network import enter
from tests.support.crio import pull, require_crio, started
from tests.support.pinning_stand import SOCKETS, two_sockets
from tests.support.real_nodes import left_on_the_machine, require_real_nodes
from tests.support.running_runtime import RunningRuntime
from tests.support.sysfs import write_sysfs

pytestmark = pytest.mark.timeout(600)

ALL = SOCKETS[0] | SOCKETS[1]
CPUSETS = find_hierarchy()
LIMITED = {"requests": {"cpu": "50m", "memory": "16Mi"}, "limits": {"cpu": "100m", "memory": "16Mi"}}


def together(archives: list[Path], into: Path) -> None:
    """Write one archive with the images of several."""
    manifests: list[dict[str, Any]] = []
    with tarfile.open(into, "w") as whole:
        for number, path in enumerate(archives):
            with tarfile.open(path) as archive:
                for member in archive:
                    content = archive.extractfile(member)
                    assert content is not None
                    if member.name == "manifest.json":
                        (item,) = json.load(content)
                        item |= {"Config": f"{number}/{item['Config']}"}
                        item |= {"Layers": [f"{number}/{layer}" for layer in item["Layers"]]}
                        manifests.append(item)
                    else:
                        member.name = f"{number}/{member.name}"
                        whole.addfile(member, content)
        text = json.dumps(manifests).encode()
        entry = tarfile.TarInfo("manifest.json")
        entry.size = len(text)
        whole.addfile(entry, io.BytesIO(text))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("o")


@pytest.fixture(scope="module")
def cluster(root: Path) -> Iterator[LocalCluster]:
    """A real node with Berth's kinds and rights."""
    require_real_nodes(root)
    require_crio(root)
    with LocalCluster.start("crio", root=root, options=Options(kubelets=1)) as made:
        for path in (CRDS, REPOSITORY / "deploy" / "rbac"):
            made.kubectl("apply", "--server-side", "-f", str(path))
        yield made
    assert left_on_the_machine(made.layout.home) == []


@pytest.fixture(scope="module")
def runtime(cluster: LocalCluster, root: Path) -> Iterator[RunningRuntime]:
    """The node's CRI-O, which its kubelet has from now on, with images."""
    node = first_node(cluster)
    # Below the instance's directory, so that whatever becomes of the test, hack/cluster down takes it away.
    running = RunningRuntime(node.directory / "o", node.namespace, Runtime.CRIO)
    running.directory.mkdir()
    archives = [root / "pause.tar", root / "berth.tar"]
    images.write_pause(archives[0], require_crio(root))
    berth_image.write(archives[1], berth_image.TAG)
    together(archives, running.directory / "images.tar")
    cluster.stop_component("kubelet-1")
    settings = configuration.kubelet(node) | {"containerRuntimeEndpoint": f"unix://{running.socket}"}
    (node.directory / "kubelet.yaml").write_text(json.dumps(settings))
    try:
        with serving(running, cluster):
            for image in (PAUSE_IMAGE, berth_image.TAG):
                asyncio.run(pull(running, image))
        yield running
    finally:
        cluster.stop_component("kubelet-1")


def serving(running: RunningRuntime, cluster: LocalCluster) -> Any:
    """The daemon on the node."""
    node = first_node(cluster)
    return started(running, mark=cluster.layout.home, network=node.directory / "cni", prefix=enter(node))


def cgroups_of(running: RunningRuntime, uids: dict[str, str]) -> dict[str, Path]:
    """Cgroups of containers that run, by the pod's name."""

    async def ask() -> dict[str, Path]:
        client = RuntimeClient(running.socket, timeout=10.0)
        try:
            there = {each.pod_uid: each.id for each in await client.containers()}
            places = {name: await client.place(there[uid]) for name, uid in uids.items() if uid in there}
        finally:
            client.close()
        return {name: CPUSETS.cgroup(container_path(place.cgroups_path)) for name, place in places.items()}

    return asyncio.run(ask())


def cpus(cgroups: dict[str, Path]) -> dict[str, frozenset[int]]:
    """CPUs in effect."""
    return {name: read_cpuset(cgroup, CPUSETS.version).effective_cpus for name, cgroup in cgroups.items()}


def test_pods_are_pinned_through_crio_and_keep_their_cpus(
    cluster: LocalCluster, runtime: RunningRuntime, tmp_path: Path
) -> None:
    write_sysfs(tmp_path / "sys", two_sockets())
    document = daemon_set(cluster, tmp_path, tmp_path / "sys")
    spec = document["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    (volume,) = (each for each in spec["volumes"] if each["name"] == "runtime")
    (mount,) = (each for each in container["volumeMounts"] if each["name"] == "runtime")
    volume["hostPath"]["path"], mount["mountPath"] = str(runtime.socket.parent), "/run/crio"
    # Short names mean nothing to CRI-O where no registries are configured for them.
    container["image"] = berth_image.TAG
    container["args"].append(f"--pinning-runtime=/run/crio/{runtime.socket.name}")
    with serving(runtime, cluster):
        cluster.start_component("kubelet-1")
        apply(cluster, [document])
        rolled_out(cluster, "daemonset/berth-pinning")
        sockets = {"one": 0, "two": 1}
        pinned = {name: SOCKETS[socket] for name, socket in sockets.items()}
        uids = start(cluster, sockets, resources={"two": LIMITED})

        def have_them() -> dict[str, Path]:
            return eventually(
                lambda: cgroups_of(runtime, uids), accept=lambda now: cpus(now) == pinned, what="sockets", timeout=90.0
            )

        cgroups = have_them()
        (status,) = json.loads(cluster.kubectl("get", "sst", "-ojson").stdout)["items"]
        assert {item["type"]: item["status"] for item in status["status"]["conditions"]}["Pinned"] == "True"
        # The kubelet has the runtime change something else of it.
        more = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "200m"}}}]}}
        cluster.kubectl("patch", "pod", "two", "--subresource=resize", "-p", json.dumps(more))
        quota = Path("/sys/fs/cgroup/cpu", cgroups["two"].relative_to(CPUSETS.root), "cpu.cfs_quota_us")
        eventually(lambda: quota.read_text().strip(), accept=lambda text: text == "20000", what="quota", timeout=90.0)
        assert cpus(cgroups) == pinned
        write_cpuset(cgroups["one"], CPUSETS.version, ALL, read_cpuset(cgroups["one"], CPUSETS.version).effective_mems)
        have_them()
    # It starts again, and knows its containers.
    with serving(runtime, cluster):
        assert have_them() == cgroups
        uids |= start(cluster, {"three": 1})
        pinned["three"] = SOCKETS[1]
        cgroups = have_them()
        cluster.kubectl("-n", NAMESPACE, "delete", "daemonset", "berth-pinning", "--timeout=60s", timeout=90)
        eventually(lambda: set(cpus(cgroups).values()), accept=lambda seen: seen == {ALL}, what="all", timeout=60.0)
        cluster.kubectl("delete", "pods", "-lapp=pinned", "--force", "--grace-period=0", timeout=120)
