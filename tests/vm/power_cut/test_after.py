"""The second half of a power cut: the journal of the boot before is whole, and nothing is done by it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.node.pinning.cgroup_paths import Driver
from agents.node.pinning.cpuset import allowed, read_cpuset
from agents.node.pinning.hierarchy import Version, find_hierarchy
from agents.node.pinning.journal import BOOT_ID
from hack.harness.cluster import eventually
from tests.support.containerd import launch
from tests.support.cpusets import everything, make
from tests.support.pinning_rounds import Rounds, rounds, wish
from tests.support.running_runtime import RunningRuntime
from tests.vm.power_cut.places import DIRECTORY
from tests.vm.power_cut.runtime import DISK, agent, remembered, runtime, start, wishes


def journal(directory: Path = DIRECTORY) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "journal" / "journal.json").read_text())
    return found


def restored_by_hand() -> str:
    command = [sys.executable, "-c", "from berth.cli.agent import main; main()", "restore"]
    command += [f"--journal={DIRECTORY / 'journal'}", f"--runtime={DIRECTORY / 'none.sock'}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
async def node(virtual_machine: None) -> AsyncIterator[Rounds]:
    async with rounds("after", DIRECTORY, Driver.SYSTEMD) as found:
        await found.runtime.stop()
        yield found


async def test_the_journal_is_whole_and_counts_for_nothing(node: Rounds) -> None:
    stale = journal()
    assert (len(stale["entries"]), stale["boot"] != BOOT_ID.read_text().strip()) == (2, True)
    # The worst that could be: a container has the cgroup of one before, and CPUs that a kubelet chose for it.
    entry = stale["entries"][0]
    cgroup = node.room.hierarchy.root / entry["cgroup"].removeprefix("/")
    make(cgroup, node.room.hierarchy.root)
    pid = node.room.run_in(cgroup)
    (cgroup / "cpuset.cpus").write_text("5-6")
    try:
        assert restored_by_hand() == "nothing is pinned\n"
        pinner = node.agent()
        assert not node.journal.entries
        await pinner.round([wish(0, None)], observe=False)
        await pinner.restore_all()
        assert (read_cpuset(cgroup, Version.V2).cpus, allowed(pid)) == ("5-6", {5, 6})
    finally:
        node.room.end(cgroup)


async def test_what_is_pinned_now_is_all_that_the_journal_has(node: Rounds) -> None:
    web = node.container(3)
    pinner = node.agent()
    found = await pinner.round([wish(3, 1)], observe=False)
    assert (found.pods[0].pinned, web.cpus) == (True, {4, 5, 6, 7})
    now = journal()
    assert now["boot"] == BOOT_ID.read_text().strip()
    assert [(entry["container"], entry["pod"]) for entry in now["entries"]] == [(web.id, "web-3")]
    await node.agent().restore_all()
    assert web.cpus == everything()


@pytest.fixture
def running(virtual_machine: None) -> Iterator[RunningRuntime]:
    found = runtime()
    daemon = launch(found, DISK / "root")
    try:
        eventually(lambda: remembered(found), what="a runtime with containers of the boot before")
        yield found
    finally:
        daemon.terminate()
        daemon.wait()


async def test_containers_that_a_runtime_starts_again_are_pinned_anew(running: RunningRuntime) -> None:
    stale = journal(DISK)
    before = {entry["container"] for entry in stale["entries"]}
    assert (len(before), stale["boot"] != BOOT_ID.read_text().strip()) == (2, True)
    assert await running.all_containers() == before, "those that were pinned"
    async with agent(running) as node:
        found = await node.pinner.round(wishes(), observe=False)
        assert ([state.pinned for state in found.pods], found.problem) == ([False, False], "")
        containers = await start(running, attempt=1)
        assert not before.intersection(containers)
        cgroups = find_hierarchy().search_all(containers)
        (cgroups[containers[1]].parent / "cpuset.cpus").write_text("1-6")

        def cpus() -> list[frozenset[int]]:
            return [read_cpuset(cgroups[each], Version.V2).effective_cpus for each in containers]

        found = await node.pinner.round(wishes(), observe=False)
        assert [state.pinned for state in found.pods] == [True, True], found
        assert cpus() == [{0, 1, 2, 3}, {4, 5, 6}]
        assert {entry["container"] for entry in journal(DISK)["entries"]} == {*containers}
        await node.pinner.restore_all()
        assert cpus() == [everything(), {1, 2, 3, 4, 5, 6}]
