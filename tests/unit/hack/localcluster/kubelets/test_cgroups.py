"""Cgroups of nodes, on a directory that stands for the kernel's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hack.localcluster import ClusterError
from hack.localcluster.kubelets import cgroups

MOUNTS = """\
tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
/dev/vda / ext4 rw 0 0
"""


@pytest.fixture
def hierarchy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the only hierarchy."""
    directory = tmp_path / "cpuset"
    directory.mkdir()
    (tmp_path / "mounts").write_text(f"cgroup {directory} cgroup rw,cpuset 0 0\n")
    monkeypatch.setattr(cgroups, "_MOUNTS", tmp_path / "mounts")
    return directory


def test_hierarchies() -> None:
    assert [path.name for path in cgroups.hierarchies(MOUNTS)] == ["cpu", "systemd", "unified"]


def test_a_cgroup_of_a_cpuset_gets_the_processors_and_memory_of_the_one_above(hierarchy: Path) -> None:
    for name, value in {"cpuset.cpus": "0-1\n", "cpuset.mems": "0\n"}.items():
        (hierarchy / name).write_text(value)
        (hierarchy / "node").mkdir(exist_ok=True)
        # The kernel makes these with the directory.
        (hierarchy / "node" / name).write_text("\n")
    cgroups.create("node")
    assert (hierarchy / "node" / "cpuset.cpus").read_text() == "0-1\n"
    assert (hierarchy / "node" / "cpuset.mems").read_text() == "0\n"


def test_making_one_again_changes_nothing(hierarchy: Path) -> None:
    cgroups.create("node")
    cgroups.create("node")
    assert [path.name for path in hierarchy.iterdir()] == ["node"]


def test_deleting_removes_those_of_the_instance_with_all_below(hierarchy: Path) -> None:
    for name in ("berth-a-1/kubepods/pod", "berth-a-2", "berth-b-1"):
        (hierarchy / name).mkdir(parents=True)
    cgroups.delete("berth-a-")
    assert [path.name for path in hierarchy.iterdir()] == ["berth-b-1"]


def test_deleting_kills_what_is_in_them(hierarchy: Path) -> None:
    directory = hierarchy / "berth-a-1" / "pod"
    directory.mkdir(parents=True)
    process = subprocess.Popen(["sleep", "60"])
    (directory / "cgroup.procs").write_text(f"{process.pid}\n")
    # A file of its own keeps this directory, as a process keeps a cgroup.
    with pytest.raises(ClusterError, match=r"berth-a-1 is still in use: look at the processes in its cgroup\.procs"):
        cgroups.delete("berth-a-", timeout=0)
    assert process.wait() == -9
