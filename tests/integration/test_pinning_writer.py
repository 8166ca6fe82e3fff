"""Writes with a real runtime and without one, in the machine's cgroups; the journal on real disks, full or not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.node.pinning.cgroup_paths import container_path
from agents.node.pinning.cpuset import CpusetError, read_cpuset
from agents.node.pinning.cri import RuntimeClient
from agents.node.pinning.hierarchy import find_hierarchy
from agents.node.pinning.journal import Entry, Journal, JournalError
from agents.node.pinning.restore import restore
from agents.node.pinning.writer import CpusetWriter, Target, Way, Written
from tests.support.containerd import containerd
from tests.support.cpusets import Machine, everything, machine
from tests.support.crio import crio
from tests.support.running_runtime import RunningRuntime
from tests.support.scripted_runtime import PATIENCE

FIRST, REST = frozenset(sorted(everything())[:1]), frozenset(sorted(everything())[1:])
CPUSETS = find_hierarchy()


@pytest.fixture(scope="module", params=[containerd, crio], ids=["containerd", "crio"])
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRuntime]:
    with request.param(tmp_path_factory.mktemp("w")) as running:
        yield running


@pytest.fixture
def room() -> Iterator[Machine]:
    with machine("writer") as found:
        yield found


async def test_through_the_runtime_the_value_outlives_its_later_updates(daemon: RunningRuntime) -> None:
    container = await daemon.start("pod-1")
    client = RuntimeClient(daemon.socket, timeout=PATIENCE)
    place = await client.place(container)
    cgroup = CPUSETS.cgroup(container_path(place.cgroups_path))
    mems = read_cpuset(cgroup, CPUSETS.version).effective_mems
    writer = CpusetWriter(client, CPUSETS.version)
    assert await writer.write(Target(container, cgroup, REST, mems)) == Written(Way.RUNTIME)
    assert os.sched_getaffinity(place.pid) == REST
    await client.set_cpuset(container, "", "")  # an update of something else
    assert os.sched_getaffinity(place.pid) == REST
    with pytest.raises(CpusetError):
        await writer.write(Target(container, cgroup, frozenset({4095}), mems))
    assert os.sched_getaffinity(place.pid) == REST
    await daemon.end("pod-1")
    with pytest.raises(CpusetError) as caught:
        await writer.write(Target(container, cgroup, FIRST, mems))
    assert caught.value.gone
    client.close()


async def test_without_a_runtime_it_is_written_to_the_cgroup(room: Machine, tmp_path: Path) -> None:
    container, cgroup = room.container(1)
    mems = read_cpuset(cgroup, CPUSETS.version).effective_mems
    writer = CpusetWriter(RuntimeClient(tmp_path / "none.sock"), CPUSETS.version)
    for cpus in (REST, FIRST):
        assert (await writer.write(Target(container, cgroup, cpus, mems))).way is Way.DIRECT
        assert os.sched_getaffinity(room.processes[0].pid) == cpus


async def test_everybody_gets_back_what_was_there_before(room: Machine, daemon: RunningRuntime, tmp_path: Path) -> None:
    """The runtime, which knows none of them, sets none of them again."""
    client = RuntimeClient(daemon.socket, timeout=PATIENCE)
    writer = CpusetWriter(client, CPUSETS.version)
    journal = Journal.open(tmp_path / "journal")
    entries = []
    for number in range(3):
        container, cgroup = room.container(number)
        found = read_cpuset(cgroup, CPUSETS.version)
        path = str(CPUSETS.path_of(cgroup))
        entries.append(Entry(container=container, cgroup=path, cpus=found.cpus, mems=found.mems))
        journal.add(entries[-1:])
        await writer.write(Target(container, cgroup, REST, found.effective_mems))
    room.end(cgroup)
    outcomes = await restore(journal, writer, CPUSETS, entries)
    client.close()
    assert [(outcome.problem, outcome.ended) for outcome in outcomes] == [("", False), ("", False), ("", True)]
    assert [os.sched_getaffinity(process.pid) for process in room.processes[:2]] == [set(everything())] * 2
    assert dict(journal.entries) == {}
    journal.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for 16 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounts need root: run it as root")
    directory = tmp_path / "disk"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(directory)], check=True)
    yield directory
    subprocess.run(["umount", str(directory)], check=True)


def add_many(journal: Journal) -> None:
    for number in range(1000):
        journal.add([Entry(container=f"{number:064}", cgroup="/x" * 40, cpus="0-1", mems="0")])


def test_a_full_disk_is_told_and_loses_nothing(small_disk: Path) -> None:
    journal = Journal.open(small_disk)
    with pytest.raises(JournalError, match=r"journal\.json: no space left on device; nothing is pinned without"):
        add_many(journal)
    added = len(journal.entries)
    assert added > 10
    journal.close()
    journal = Journal.open(small_disk)
    assert len(journal.entries) == added
    journal.remove(list(journal.entries)[5:])  # there is room for fewer
    assert len(journal.entries) == 5
    journal.close()


WORK = """
import sys
from pathlib import Path
from agents.node.pinning.journal import Entry, Journal
journal = Journal.open(Path(sys.argv[1]))
print("open", flush=True)
for number in range(10**6):
    journal.add([Entry(container=str(number), cgroup="/c", cpus="0-1", mems="0")])
    print(number, flush=True)
    if number >= 20:
        journal.remove([str(number - 20)])
"""


def test_whatever_was_written_down_survives_sigkill(tmp_path: Path) -> None:
    chance = random.Random(7)
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", WORK, str(tmp_path)], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "open\n"
            for _ in range(chance.randrange(30, 60)):
                said = writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
            said = ([said, *writer.stdout.readlines()])[-1]
        journal = Journal.open(tmp_path)
        found = set(journal.entries)
        assert {str(number) for number in range(int(said) - 18, int(said) + 1)} <= found
        assert len(found) <= 23
        journal.remove(found)
        journal.close()
