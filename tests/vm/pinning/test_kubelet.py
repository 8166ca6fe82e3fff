"""A real kubelet with cgroups of version 2, by itself: it has a static pod, whose containers are pinned.

With an API server, and cgroups of version 1, it is in tests/e2e.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents.node.pinning.containers import Containers
from agents.node.pinning.cpuset import read_cpuset
from agents.node.pinning.cri import Container, RuntimeClient
from agents.node.pinning.hierarchy import Version, find_hierarchy
from agents.node.pinning.journal import Journal
from agents.node.pinning.pinner import Pinner
from agents.node.pinning.reconciler import Reconciler
from agents.node.pinning.writer import CpusetWriter
from hack.harness.cluster import PATIENCE
from hack.localcluster import tools
from hack.localcluster.kubelets import cgroups, packages
from hack.localcluster.kubelets.configuration import PAUSE_IMAGE
from hack.localcluster.kubelets.configuration import kubelet as kubelet_configuration
from hack.localcluster.kubelets.names import Node
from tests.support.containerd import containerd
from tests.support.cpusets import everything
from tests.support.pinning_rounds import wish
from tests.support.pinning_stand import SOCKETS
from tests.support.running_runtime import RunningRuntime

LOG = Path("/run/kubelet.log")
"""What the kubelet says."""
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "hostNetwork": True,
        "containers": [{"name": "main", "image": PAUSE_IMAGE, "resources": {"requests": {"cpu": "100m"}}}],
    },
}


@pytest.fixture
def daemon(virtual_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRuntime]:
    """The runtime of a kubelet."""
    program = tools.locate("kubelet")
    assert program is not None, "run make tools"
    with containerd(tmp_path_factory.mktemp("k")) as running:
        directory, node = running.directory, Node(home=running.directory, number=1)
        settings = kubelet_configuration(node) | {
            "containerRuntimeEndpoint": f"unix://{running.socket}",
            "cgroupRoot": "/",
            "resolvConf": "/dev/null",
            "staticPodPath": f"{directory}/pods",
        }
        (directory / "pods").mkdir()
        (directory / "pods" / "web.json").write_text(json.dumps(POD))
        (directory / "kubelet.yaml").write_text(json.dumps(settings))
        command = [str(program), f"--config={directory}/kubelet.yaml", f"--root-dir={directory}/kubelet"]
        command += [f"--cert-dir={directory}/pki", "--hostname-override=vm"]
        environment = {**os.environ, "PATH": packages.search_path()}
        with LOG.open("wb") as log:
            kubelet = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            yield running
        finally:
            kubelet.terminate()
            kubelet.wait()
            cgroups.delete("kubepods")


@pytest.fixture
async def client(daemon: RunningRuntime) -> AsyncIterator[RuntimeClient]:
    asked = RuntimeClient(daemon.socket, timeout=PATIENCE)
    yield asked
    asked.close()


def said() -> str:
    return LOG.read_text()[-5000:]


async def started(client: RuntimeClient, before: str = "") -> Container:
    """The pod's container, another than the one before."""
    deadline = time.monotonic() + PATIENCE
    while not (found := [each for each in await client.containers() if each.id != before]):
        assert time.monotonic() < deadline, said()
        await asyncio.sleep(0.1)
    return found[0]


async def test_what_a_kubelet_starts_and_starts_again_is_pinned(client: RuntimeClient, tmp_path: Path) -> None:
    hierarchy, journal = find_hierarchy(), Journal.open(tmp_path / "journal")
    containers, writer = Containers(client, hierarchy), CpusetWriter(client, hierarchy.version)
    pinner = Pinner(hierarchy, containers, writer, journal, Reconciler())
    first = await started(client)

    async def pinned(container: Container, socket: int) -> Path:
        """The cgroup of a container that is on a socket after a round."""
        wanted = replace(wish(0, socket), runtime_uid=container.pod_uid)
        (state,) = (await pinner.round([wanted], observe=False)).pods
        assert state.pinned, state
        cgroup = hierarchy.search(container.id)
        assert cgroup is not None
        assert f"/kubepods/burstable/pod{container.pod_uid}/" in str(cgroup)
        assert read_cpuset(cgroup, Version.V2).effective_cpus == SOCKETS[socket]
        return cgroup

    await pinned(first, 0)
    os.kill((await client.place(first.id)).pid, signal.SIGKILL)
    second = await started(client, first.id)
    assert second.pod_uid == first.pod_uid
    cgroup = await pinned(second, 1)
    assert journal.entries.keys() == {second.id}
    await pinner.restore_all()
    assert read_cpuset(cgroup, Version.V2).effective_cpus == everything()
    journal.close()
