"""A real containerd and a real CRI-O with cgroups of version 2: the agent pins through them, and they keep it.

The cgroups are made by systemd where the machine was booted with it, as plain directories otherwise. With cgroups of
version 1 it is in tests/integration/test_pinning_runtime.py and test_pinning_writer.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents.node.pinning.cgroup_paths import Driver, container_directory, container_path
from agents.node.pinning.containers import Containers
from agents.node.pinning.cpuset import read_cpuset
from agents.node.pinning.cri import RuntimeClient
from agents.node.pinning.hierarchy import Version, find_hierarchy
from agents.node.pinning.journal import Journal
from agents.node.pinning.pinner import LOOK_SECONDS, Pinner
from agents.node.pinning.reconciler import Reconciler
from agents.node.pinning.writer import CpusetWriter
from hack.harness.cluster import PATIENCE
from tests.support.containerd import containerd
from tests.support.cpusets import everything, pod_uid
from tests.support.crio import crio
from tests.support.pinning_rounds import wish
from tests.support.running_runtime import RunningRuntime

ALL = everything()
ONE, OTHER = frozenset({0, 1, 2, 3}), frozenset({4, 5, 6, 7})


@pytest.fixture(scope="module", params=[containerd, crio], ids=["containerd", "crio"])
def daemon(
    virtual_machine: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningRuntime]:
    driver = Driver.SYSTEMD if Path("/run/systemd/system").is_dir() else Driver.CGROUPFS  # as sd_booted(3) tells
    with request.param(tmp_path_factory.mktemp("c"), driver) as running:
        yield running


@pytest.fixture
async def client(daemon: RunningRuntime) -> AsyncIterator[RuntimeClient]:
    asked = RuntimeClient(daemon.socket, timeout=PATIENCE)
    yield asked
    asked.close()


async def test_pods_have_their_sockets_by_the_runtime_and_it_sets_nothing_else_later(
    daemon: RunningRuntime, client: RuntimeClient, tmp_path: Path
) -> None:
    containers = [await daemon.start(pod_uid(number)) for number in range(2)]
    hierarchy, journal, now = find_hierarchy(), Journal.open(tmp_path / "journal"), 1000.0
    assert hierarchy.version is Version.V2
    paths = [container_path((await client.place(each)).cgroups_path) for each in containers]
    names = [container_directory(daemon.driver, daemon.kind, each) for each in containers]
    assert paths == [daemon.pod(pod_uid(number)) / name for number, name in enumerate(names)]
    cgroups = [hierarchy.cgroup(path) for path in paths]
    quotas = [(cgroup / "cpu.max").read_text() for cgroup in cgroups]
    found = Containers(client, hierarchy, clock=lambda: now)
    pinner = Pinner(hierarchy, found, CpusetWriter(client, hierarchy.version), journal, Reconciler(), clock=lambda: now)
    wishes = [replace(wish(number, number), mems=frozenset({number})) for number in range(2)]

    async def has(*cpus: frozenset[int]) -> None:
        """Whether containers have these CPUs, and still have them after an update of something else."""
        for _ in range(2):
            seen = [read_cpuset(cgroup, hierarchy.version) for cgroup in cgroups]
            assert tuple(each.effective_cpus for each in seen) == cpus
            for container in containers:
                await client.set_cpuset(container, "", "")

    states = (await pinner.round(wishes, observe=False)).pods
    assert [state.pinned for state in states] == [True, True]
    await has(ONE, OTHER)
    assert [(cgroup / "cpuset.mems").read_text().strip() for cgroup in cgroups] == ["0", "1"]
    (cgroups[0] / "cpuset.cpus").write_text("6")
    now += LOOK_SECONDS
    await pinner.round(wishes, observe=False)
    await has(ONE, OTHER)
    await pinner.restore_all()
    await has(ALL, ALL)
    assert [(cgroup / "cpu.max").read_text() for cgroup in cgroups] == quotas
    assert not journal.entries
    journal.close()
