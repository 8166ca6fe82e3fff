"""Reading sysfs: this machine's own, copies of others, and directories that are none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agents.node.topology.assembly import assemble
from agents.node.topology.sysfs import SYSFS, SysfsError, read_sysfs
from berth.api.cpulist import parse_cpulist
from tests.support.sysfs import CPU, uniform, write_sysfs


def test_the_machine_it_runs_on() -> None:
    """Against what the kernel tells processes by another way; a container may be allowed fewer CPUs."""
    machine = assemble(read_sysfs())
    assert os.sched_getaffinity(0) <= machine.online == parse_cpulist((SYSFS / CPU / "online").read_text())
    assert len(machine.online) == os.sysconf("SC_NPROCESSORS_ONLN")


def test_a_copy_of_this_machine_is_the_same(tmp_path: Path) -> None:
    """As the documentation says to make one; tar fills files up with zeros, since sysfs states a page for each."""
    archive = tmp_path / "sysfs.tar"
    names = ["sys/devices/system/cpu", "sys/devices/system/node"]
    subprocess.run(
        ["tar", "cf", archive, "--ignore-failed-read", "-C", "/", *names], check=False, stderr=subprocess.DEVNULL
    )
    subprocess.run(["tar", "xf", archive, "-C", tmp_path], check=True)
    assert (tmp_path / "sys" / CPU / "online").read_bytes().endswith(b"\0")
    assert assemble(read_sysfs(tmp_path / "sys")) == assemble(read_sysfs())


@pytest.mark.parametrize(
    ("place", "text"),
    [
        pytest.param("missing", "missing/devices/system/cpu: no CPUs; name a copy of /sys", id="nothing there"),
        pytest.param("", "did you mean .*sys?", id="the directory above"),
        pytest.param(f"sys/{CPU}", "cpu/devices/system/cpu: no CPUs", id="a directory below"),
    ],
)
def test_a_directory_without_cpus_is_an_error(tmp_path: Path, place: str, text: str) -> None:
    write_sysfs(tmp_path / "sys", uniform(cores=2))
    with pytest.raises(SysfsError, match=text):
        read_sysfs(tmp_path / place)


def test_a_file_that_may_not_be_read_or_is_none(tmp_path: Path) -> None:
    """A directory stands for every error of the system: root may read anything."""
    root = write_sysfs(tmp_path, uniform(cores=2), changes={f"{CPU}/cpu1/topology/physical_package_id": None})
    (root / CPU / "cpu1/topology/physical_package_id").mkdir()
    (told,) = read_sysfs(root).assumptions
    assert told == (f"{CPU}/cpu1/topology/physical_package_id", "is a directory", "it is in the first socket", 0)
