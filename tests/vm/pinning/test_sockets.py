"""Containers on sockets with cgroups of version 2: where processes run and have their memory, and who else decides."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.node.pinning.cgroup_paths import Driver
from agents.node.pinning.cpuset import read_cpuset
from agents.node.pinning.hierarchy import Version, find_hierarchy
from agents.node.pinning.pinner import LOOK_SECONDS, Pinner
from agents.node.pinning.reconciler import Finding
from agents.node.pinning.rounds import PodState
from agents.node.pinning.wanted import PodWish
from hack.harness.cluster import eventually
from tests.support.cpusets import everything, make
from tests.support.pinning_rounds import Container, Rounds, wish

ALL = everything()
ONE, OTHER = frozenset({0, 1, 2, 3}), frozenset({4, 5, 6, 7})


def near(number: int, socket: int) -> PodWish:
    """A pod that is to be on a socket, with its memory."""
    return dataclasses.replace(wish(number, socket), mems=frozenset({socket}))


async def look(node: Rounds, pinner: Pinner, *wishes: PodWish) -> list[PodState]:
    """A round that looks at everything."""
    node.now += LOOK_SECONDS
    return list((await pinner.round(wishes, observe=False)).pods)


def status(pid: int, name: str) -> str:
    """A line of what the kernel says of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{name}:"))


def test_version() -> None:
    assert find_hierarchy().version is Version.V2


@pytest.mark.parametrize("node", list(Driver), indirect=True)
async def test_there_and_back(node: Rounds) -> None:
    containers = [node.container(number) for number in range(2)]
    before = [read_cpuset(each.known.cgroup, Version.V2) for each in containers]
    assert [(each.cpus, each.mems, each.effective_cpus) for each in before] == [("", "", ALL)] * 2
    pinner = node.agent()
    states = await look(node, pinner, near(0, 0), near(1, 1))
    assert [state.pinned for state in states] == [True, True]
    for number, (each, cpus) in enumerate(zip(containers, ("0-3", "4-7"), strict=True)):
        files = ("cpuset.cpus", "cpuset.cpus.effective", "cpuset.mems", "cpuset.mems.effective")
        assert [(each.known.cgroup / name).read_text().strip() for name in files] == [cpus, cpus, *[str(number)] * 2]
        assert status(each.known.pid, "Cpus_allowed_list") == cpus
        assert status(each.known.pid, "Mems_allowed_list") == str(number)
    states = await look(node, pinner, near(0, 1), near(1, 1))
    assert [state.pinned for state in states] == [True, True]
    assert [each.cpus for each in containers] == [OTHER, OTHER]
    await pinner.restore_all()
    assert [each.cpus for each in containers] == [ALL, ALL]
    assert [status(each.known.pid, "Mems_allowed_list") for each in containers] == ["0-1"] * 2


async def test_a_process_that_is_busy_moves(node: Rounds) -> None:
    web = node.container(0)
    pid = node.room.run_in(web.known.cgroup, sys.executable, "-IS", "-c", "while True: pass")
    pinner = node.agent()
    for socket, cpus in ((0, ONE), (1, OTHER), (0, ONE)):
        await look(node, pinner, wish(0, socket))
        # Field 39 of proc(5) is the CPU it was on last; 14 is its time there, which has to go on.
        before = int(stat(pid)[11])
        while int(stat(pid)[11]) < before + 2:
            os.sched_yield()
        assert int(stat(pid)[36]) in cpus


def stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


MEMORY = """
import mmap, time
pages = mmap.mmap(-1, 16 * 2**20)
for at in range(0, len(pages), 4096):
    pages[at] = 1
print("there", flush=True)
time.sleep(600)
"""


def nodes_of(pid: int) -> dict[int, int]:
    """Anonymous pages of the test's own memory by NUMA node."""
    found: dict[int, int] = {}
    for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
        words = line.split()
        if "anon=4096" in words or "dirty=4096" in words:
            for word in words:
                if word[0] == "N" and word[1].isdigit():
                    number, _, count = word[1:].partition("=")
                    found[int(number)] = found.get(int(number), 0) + int(count)
    return found


@pytest.fixture
def hungry(node: Rounds) -> Iterator[tuple[Container, int]]:
    """A container with 16 MiB of memory of NUMA node 1, and its process."""
    web = node.container(0)
    (web.known.cgroup / "cpuset.mems").write_text("1")
    preexec = str(web.known.cgroup / "cgroup.procs")
    script = 'echo $$ > "$0"; exec "$@"'
    command = ["sh", "-c", script, preexec, sys.executable, "-IS", "-c", MEMORY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        assert nodes_of(process.pid) == {1: 4096}
        (web.known.cgroup / "cpuset.mems").write_text("0-1")
        yield web, process.pid
        process.kill()


@pytest.mark.parametrize(
    ("chosen", "after", "allowed"),
    [
        pytest.param(wish, 1, "0-1", id="CPUs alone leave memory where it is"),
        pytest.param(near, 0, "0", id="memory follows when asked"),
    ],
)
async def test_memory(
    node: Rounds, hungry: tuple[Container, int], chosen: Callable[..., PodWish], after: int, allowed: str
) -> None:
    web, pid = hungry
    (state,) = await look(node, node.agent(), chosen(0, 0))
    assert (state.pinned, web.cpus, nodes_of(pid)) == (True, ONE, {after: 4096})
    assert status(pid, "Mems_allowed_list") == allowed


async def test_what_somebody_else_writes_is_put_right(node: Rounds) -> None:
    web = node.container(0)
    pinner = node.agent()
    await look(node, pinner, near(0, 0))
    for name, value in (("cpuset.cpus", "4-7"), ("cpuset.cpus", "0-7"), ("cpuset.mems", "1")):
        (web.known.cgroup / name).write_text(value)
        (state,) = await look(node, pinner, near(0, 0))
        assert (state.pinned, web.cpus, status(web.known.pid, "Mems_allowed_list")) == (True, ONE, "0")


async def test_a_pod_that_gets_fewer_cpus_and_more(node: Rounds) -> None:
    """Nothing of it is a change by others: what is in effect follows the cgroup above."""
    web = node.container(0)
    pod = web.known.cgroup.parent
    pinner = node.agent()
    await look(node, pinner, wish(0))
    for lets, has in (("2-5", {2, 3}), ("0-7", ONE), ("3", {3}), ("0-7", ONE)):
        (pod / "cpuset.cpus").write_text(lets)
        (state,) = await look(node, pinner, wish(0))
        assert (state.pinned, web.cpus) == (True, has)
    (pod / "cpuset.cpus").write_text("6-7")
    (state,) = await look(node, pinner, wish(0))
    finding, text = state.findings[web.id[:12]]
    assert (finding, web.cpus) == (Finding.IMPOSSIBLE, {6, 7})
    assert text == "its socket has CPUs 0-3, and the cgroup of its pod has 6-7 alone"
    (pod / "cpuset.cpus").write_text("0-7")
    (state,) = await look(node, pinner, wish(0))
    assert (state.pinned, web.cpus) == (True, ONE)


def follows(container: Container, cpus: frozenset[int]) -> None:
    """Wait until the kernel has a container follow CPUs that go and come, which it does in a thread of its own."""
    eventually(
        lambda: read_cpuset(container.known.cgroup, Version.V2).effective_cpus,
        accept=lambda found: found == cpus,
        what=f"CPUs {sorted(cpus)} in effect",
        timeout=240.0,
    )


async def test_cpus_that_somebody_isolates_are_left_to_them(node: Rounds) -> None:
    web = node.container(0)
    pinner = node.agent()
    await look(node, pinner, wish(0))
    isolated = node.room.hierarchy.root / "isolated"
    isolated.mkdir()
    try:
        (isolated / "cpuset.cpus").write_text("2-3")
        (isolated / "cpuset.cpus.partition").write_text("isolated")
        assert (isolated / "cpuset.cpus.partition").read_text() == "isolated\n"
        (state,) = await look(node, pinner, wish(0))
        assert (state.pinned, web.cpus) == (True, {0, 1})
        late = node.container(1)
        states = await look(node, pinner, wish(0), wish(1))
        assert ([state.pinned for state in states], late.cpus) == ([True, True], {0, 1})
    finally:
        isolated.rmdir()
    follows(web, ONE)
    states = await look(node, pinner, wish(0), wish(1))
    assert [(state.pinned, each.cpus) for state, each in zip(states, (web, late), strict=True)] == [(True, ONE)] * 2


async def test_threads_of_a_container_in_cgroups_of_their_own(node: Rounds) -> None:
    """As virtual machines in containers have them; the kernel tells no processes of such a cgroup, but threads."""
    web = node.container(0)
    inner = web.known.cgroup / "housekeeping"
    make(inner, node.room.hierarchy.root)
    (inner / "cgroup.type").write_text("threaded")
    (inner / "cgroup.threads").write_text(str(web.known.pid))
    assert web.known.pid not in map(int, (web.known.cgroup / "cgroup.threads").read_text().split())
    pinner = node.agent()
    (state,) = await look(node, pinner, wish(0))
    assert (state.findings, state.pinned, web.cpus) == ({web.id[:12]: (Finding.IN_EFFECT, "")}, True, ONE)
    (state,) = await look(node, pinner, wish(0, 1))
    assert (state.pinned, web.cpus) == (True, OTHER)
    assert not (await pinner.round([wish(0, None)], observe=False)).problem.startswith("cgroup.procs")
    assert web.cpus == ALL


async def test_a_cpu_that_is_switched_off_and_on(node: Rounds, offline: Callable[..., None]) -> None:
    web = node.container(0)
    pinner = node.agent()
    await look(node, pinner, wish(0))
    for off in ((3,), (), (1, 2, 3), ()):
        has = ONE - {*off}
        offline(*off)
        follows(web, has)
        (state,) = await look(node, pinner, wish(0))
        assert (state.pinned, state.findings[web.id[:12]][0], web.cpus) == (True, Finding.IN_EFFECT, has)


async def test_a_socket_that_is_switched_off_and_on(node: Rounds, offline: Callable[..., None]) -> None:
    """The kernel lets its processes run elsewhere meanwhile."""
    web = node.container(0)
    pinner = node.agent()
    await look(node, pinner, wish(0, 1))
    offline(*OTHER)
    follows(web, ONE)
    (state,) = await look(node, pinner, wish(0, 1))
    assert (state.pinned, state.findings[web.id[:12]][0]) == (False, Finding.IMPOSSIBLE)
    assert web.cpus == ONE
    offline()
    follows(web, OTHER)
    (state,) = await look(node, pinner, wish(0, 1))
    assert (state.pinned, web.cpus) == (True, OTHER)
