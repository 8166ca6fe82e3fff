"""The second half of a power cut: the journal of the boot before is whole, and nothing is done by it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agents.node.pinning.cgroup_paths import Driver
from agents.node.pinning.cpuset import allowed, read_cpuset
from agents.node.pinning.hierarchy import Version
from agents.node.pinning.journal import BOOT_ID
from tests.support.cpusets import everything, make
from tests.support.pinning_rounds import Rounds, rounds, wish
from tests.vm.power_cut.places import DIRECTORY

FILE = DIRECTORY / "journal" / "journal.json"


def journal() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def restored_by_hand() -> str:
    command = [sys.executable, "-c", "from berth.cli.agent import main; main()", "restore"]
    command += [f"--journal={FILE.parent}", f"--runtime={DIRECTORY / 'none.sock'}"]
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
