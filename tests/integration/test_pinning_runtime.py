"""A real containerd and a real CRI-O: containers are found with their cgroups, and get other CPUs and nothing else."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.node.pinning.cgroup_paths import container_directory, container_path
from agents.node.pinning.cpuset import read_cpuset
from agents.node.pinning.cri import Container, CriError, RuntimeClient
from agents.node.pinning.hierarchy import find_hierarchy
from berth.api.cpulist import format_cpulist
from hack.harness.cluster import PATIENCE
from hack.localcluster.kubelets import cgroups
from tests.support.containerd import containerd
from tests.support.cpusets import everything
from tests.support.crio import crio
from tests.support.running_runtime import RunningRuntime

UID = "11111111-2222-3333-4444-555555555555"
CPUSETS = find_hierarchy()
LAST = format_cpulist([max(everything())])


@pytest.fixture(scope="module", params=[containerd, crio], ids=["containerd", "crio"])
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRuntime]:
    with request.param(tmp_path_factory.mktemp("c")) as running:
        yield running


def settings_of(path: Path) -> dict[str, str]:
    """What the cgroup's hierarchies but that of cpusets limit."""
    wanted = re.compile("cpu[.](shares|cfs|weight|max|rt)|memory[.](?!.*max_usage).*(limit|max|low|high)|pids[.]max")
    parts = [path, *(each / path.relative_to(CPUSETS.root) for each in cgroups.ROOT.iterdir())]
    files = {file for part in parts if part.is_dir() for file in part.iterdir() if wanted.match(file.name)}
    return {str(file): file.read_text() for file in files}


async def test_a_container_gets_other_cpus_and_nothing_else(daemon: RunningRuntime) -> None:
    container = await daemon.start(UID, "web")
    client = RuntimeClient(daemon.socket, timeout=PATIENCE)
    assert await client.containers() == (Container(container, UID, "web"),)
    place = await client.place(container)
    path = container_path(place.cgroups_path)
    assert path == daemon.pod(UID) / container_directory(daemon.driver, daemon.kind, container)
    cgroup = CPUSETS.cgroup(path)
    assert str(place.pid) in (cgroup / "cgroup.procs").read_text().split()
    before = settings_of(cgroup)
    assert any(name.endswith(("cpu.shares", "cpu.weight")) for name in before)

    await client.set_cpuset(container, LAST, "0")
    assert (cgroup / "cpuset.cpus").read_text().strip() == LAST
    assert os.sched_getaffinity(place.pid) == {max(everything())}
    assert settings_of(cgroup) == before
    await client.set_cpuset(container, format_cpulist(everything()), "0")
    assert read_cpuset(cgroup, CPUSETS.version).effective_cpus == everything()
    await daemon.end(UID)
    assert await client.containers() == ()
    client.close()


async def test_cpus_that_are_not_there_are_refused_and_change_nothing(daemon: RunningRuntime) -> None:
    container = await daemon.start(UID)
    client = RuntimeClient(daemon.socket, timeout=PATIENCE)
    with pytest.raises(CriError, match=r"UpdateContainerResources: UNKNOWN: .*cpuset") as caught:
        await client.set_cpuset(container, "4095", "0")
    assert caught.value.answered
    place = await client.place(container)
    cgroup = CPUSETS.cgroup(container_path(place.cgroups_path))
    assert read_cpuset(cgroup, CPUSETS.version).effective_cpus == everything()
    with pytest.raises(CriError, match=r"ContainerStatus: NOT_FOUND"):
        await client.place("0" * 64)
    await daemon.end(UID)
    client.close()


async def test_many_questions_at_once_are_answered_one_after_the_other(daemon: RunningRuntime) -> None:
    containers = [await daemon.start(UID, f"c{number}") for number in range(3)]
    client = RuntimeClient(daemon.socket, timeout=PATIENCE)
    await asyncio.gather(*(client.set_cpuset(container, LAST, "0") for container in containers for _ in range(3)))
    places = [await client.place(container) for container in containers]
    paths = [CPUSETS.cgroup(container_path(place.cgroups_path)) for place in places]
    assert [(path / "cpuset.cpus").read_text().strip() for path in paths] == [LAST] * 3
    await daemon.end(UID)
    client.close()
