"""Tests that run inside the virtual machine of :mod:`hack.vm` (``make test-vm``), as root, with cgroups of version 2.

Sockets 0 and 1 have CPUs 0-3 and 4-7 and a NUMA node each; each socket has two dies with an L3 of their own, and a die
is one core of two threads. ``/disk`` is a disk that survives power cuts.

node
    Function. `Rounds` in the kubelet's layout, of the cgroup driver systemd unless a test asks for another, where no
    container runtime listens: the agent finds containers by their cgroups and writes these.
offline
    Function. ``offline(3)`` switches CPUs off; they are on again after the test.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from agents.node.pinning.cgroup_paths import Driver
from tests.support.cpusets import PODS
from tests.support.pinning_rounds import Rounds, rounds


@pytest.fixture(scope="session", autouse=True)
def virtual_machine() -> None:
    if "berth.vm" not in Path("/proc/cmdline").read_text().split():
        pytest.skip("for the virtual machine: run make test-vm")
    os.environ[PODS] = "1"  # the pods of the boot before are those of this one


@pytest.fixture
async def node(request: pytest.FixtureRequest, virtual_machine: None, tmp_path: Path) -> AsyncIterator[Rounds]:
    async with rounds("vm", tmp_path, getattr(request, "param", Driver.SYSTEMD)) as found:
        await found.runtime.stop()
        yield found


def switch(cpu: int, on: bool) -> None:
    Path(f"/sys/devices/system/cpu/cpu{cpu}/online").write_text(str(int(on)))


@pytest.fixture
def offline(virtual_machine: None) -> Iterator[Callable[..., None]]:
    off: set[int] = set()

    def choose(*cpus: int) -> None:
        """Have these CPUs off, and no others."""
        for cpu in off ^ {*cpus}:
            switch(cpu, cpu in off)
        off.symmetric_difference_update(off ^ {*cpus})

    yield choose
    choose()
