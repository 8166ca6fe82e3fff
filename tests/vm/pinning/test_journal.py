"""The journal on a real disk: one that is full, and an agent that is killed between its journal and its write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.node.pinning.journal import Journal
from tests.support.cpusets import everything
from tests.support.pinning_rounds import Rounds, wish

ALL = everything()
ONE, OTHER = frozenset({0, 1, 2, 3}), frozenset({4, 5, 6, 7})


@pytest.fixture
def on_disk(node: Rounds) -> Iterator[Rounds]:
    node.directory = Path("/disk/journal")
    node.directory.mkdir()
    yield node
    node.leave()
    subprocess.run(["rm", "-r", str(node.directory)], check=True)


class Disk:
    """The disk of the journal, and a file that has all its room."""

    file = Path("/disk/full")

    def fill(self) -> None:
        with self.file.open("wb", buffering=0) as stream:
            for size in (2**20, 2**12, 1):
                try:
                    while True:
                        stream.write(bytes(size))
                except OSError:
                    os.fsync(stream.fileno())

    def make_room(self) -> None:
        self.file.unlink(missing_ok=True)


@pytest.fixture
def disk(on_disk: Rounds) -> Iterator[Disk]:
    found = Disk()
    yield found
    found.make_room()


async def test_a_full_disk_pins_nothing_new_and_loses_nothing(on_disk: Rounds, disk: Disk) -> None:
    node = on_disk
    old, new = node.container(0), node.container(1)
    pinner = node.agent()
    await pinner.round([wish(0)], observe=False)
    disk.fill()
    found = await pinner.round([wish(0), wish(1)], observe=False)
    assert "journal.json: no space left on device; nothing is pinned without a journal: make room" in found.problem
    assert [state.pinned for state in found.pods] == [True, False]
    assert (old.cpus, new.cpus) == (ONE, ALL)
    # What is in the journal is repaired, and the next agent has it.
    old.set_cpus(OTHER)
    pinner = node.agent()
    assert node.journal.entries.keys() == {old.id}
    await pinner.round([wish(0), wish(1)], observe=False)
    assert (old.cpus, new.cpus) == (ONE, ALL)
    disk.make_room()
    found = await pinner.round([wish(0), wish(1)], observe=False)
    assert (found.problem, old.cpus, new.cpus) == ("", ONE, ONE)
    assert node.journal.entries.keys() == {old.id, new.id}


async def test_what_is_given_back_on_a_full_disk_is_struck_out_later(on_disk: Rounds, disk: Disk) -> None:
    node = on_disk
    web = node.container(0)
    await node.agent().round([wish(0)], observe=False)
    disk.fill()
    await node.agent().restore_all()
    assert web.cpus == ALL
    disk.make_room()
    node.leave()
    journal = Journal.open(node.directory / "journal")
    assert journal.entries.keys() == {web.id}
    journal.close()


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from agents.node.pinning.containers import Containers
from agents.node.pinning.cri import RuntimeClient
from agents.node.pinning.hierarchy import find_hierarchy
from agents.node.pinning.journal import Journal
from agents.node.pinning.pinner import Pinner
from agents.node.pinning.reconciler import Reconciler
from agents.node.pinning.writer import CpusetWriter
from tests.support.pinning_rounds import wish

class Killed(CpusetWriter):
    async def write(self, target, *, ask=True, hurry=False):
        os.kill(os.getpid(), signal.SIGKILL)

directory, found = Path(sys.argv[1]), find_hierarchy()
client, journal = RuntimeClient(directory / "none.sock"), Journal.open(directory / "journal")
pinner = Pinner(found, Containers(client, found), Killed(client, found.version), journal, Reconciler())
asyncio.run(pinner.round([wish(number) for number in range(3)], observe=False))
"""


def killed(directory: Path) -> int:
    """How an agent ends that is killed there."""
    return subprocess.run([sys.executable, "-c", KILLED, str(directory)], check=False).returncode


async def test_killed_between_journal_and_write(on_disk: Rounds) -> None:
    """What is in the journal was not written: whatever comes next, each has in the end what it had before."""
    node = on_disk
    containers = same, elsewhere, no_more = [node.container(number) for number in range(3)]
    elsewhere.set_cpus(ALL)
    assert killed(node.directory) == -signal.SIGKILL
    assert [each.cpus for each in containers] == [ALL] * 3
    pinner = node.agent()
    entries = [node.journal.entries[each.id] for each in containers]
    assert [(entry.cpus, entry.written) for entry in entries] == [("", "0-3"), ("0-7", "0-3"), ("", "0-3")]
    found = await pinner.round([wish(0), wish(1, 1), wish(2, None)], observe=False)
    assert [state.pinned for state in found.pods] == [True, True, False]
    assert [each.cpus for each in (same, elsewhere, no_more)] == [ONE, OTHER, ALL]
    await node.agent().restore_all()
    assert [each.cpus for each in containers] == [ALL] * 3
