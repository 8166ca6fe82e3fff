"""Rounds with cgroups of version 2, on directories in which is true what is written, and a scripted runtime.

What needs a kernel is in the integration tests of pinning.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents.node.pinning.containers import Containers
from agents.node.pinning.cri import RuntimeClient
from agents.node.pinning.hierarchy import Hierarchy, Version
from agents.node.pinning.journal import Journal
from agents.node.pinning.pinner import LOOK_SECONDS, Pinner
from agents.node.pinning.reconciler import Finding, Reconciler
from agents.node.pinning.report import Found, status_of
from agents.node.pinning.wanted import PodWish
from agents.node.pinning.writer import CpusetWriter
from berth.api.conditions import ConditionStatus, find_condition
from berth.api.interference import InterferenceClass
from berth.api.socketstatus import SocketStatusStatus
from tests.support.scripted_runtime import Known, ScriptedRuntime
from tests.support.sysfs import uniform

UID, ID = "0c1d3c0f-3e2a-4f5b-9d6e-7a8b9c0d1e2f", "ab" * 32
MACHINE = uniform(sockets=2, cores=2)
ONE = MACHINE.sockets[0].cpus


def cgroup(path: Path, cpus: str) -> Path:
    path.mkdir(parents=True)
    for written, effective in (("cpuset.cpus", "cpuset.cpus.effective"), ("cpuset.mems", "cpuset.mems.effective")):
        (path / written).write_text(cpus if "cpus" in written else "0")
        (path / effective).symlink_to(written)
    for name in ("cgroup.procs", "cgroup.subtree_control"):
        (path / name).write_text("")
    return path


def wish(cpus: frozenset[int] = ONE) -> PodWish:
    return PodWish(
        uid=UID,
        runtime_uid=UID,
        namespace="shop",
        name="web",
        interference_class=InterferenceClass.B,
        socket=0 if cpus else None,
        cpus=cpus,
        running=True,
    )


class Node:
    """A container in a pod with four CPUs, and what pins it."""

    def __init__(self, root: Path) -> None:
        self.pod = cgroup(root / "cgroup" / "kubepods" / f"pod{UID}", "0-3")
        self.container = cgroup(self.pod / ID, "0-3")
        self.now = 1000.0
        self.runtime = ScriptedRuntime(root / "s.sock", {ID: Known(UID, self.container, f"/kubepods/pod{UID}/{ID}")})
        self.client = RuntimeClient(root / "s.sock")
        hierarchy = Hierarchy(root / "cgroup", Version.V2)
        self.journal = Journal.open(root / "journal")
        self.pinner = Pinner(
            hierarchy,
            Containers(self.client, hierarchy),
            CpusetWriter(self.client, hierarchy.version),
            self.journal,
            Reconciler(),
            clock=lambda: self.now,
        )

    @property
    def cpus(self) -> str:
        return (self.container / "cpuset.cpus").read_text()

    def states_nothing(self) -> None:
        """Have the container state no CPUs, as runtimes leave it: it has those of its pod."""
        (self.container / "cpuset.cpus").write_text("")
        effective = self.container / "cpuset.cpus.effective"
        effective.unlink()
        effective.symlink_to(self.pod / "cpuset.cpus")

        def written() -> None:
            effective.unlink(missing_ok=True)
            effective.symlink_to("cpuset.cpus")

        self.runtime.before_update = written


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    found = Node(tmp_path)
    await found.runtime.start()
    yield found
    found.client.close()
    found.journal.close()
    await found.runtime.stop()


async def test_one_that_was_given_back_its_cpus_is_pinned_again_after_more_came_online(node: Node) -> None:
    node.states_nothing()
    await node.pinner.round([wish()], observe=False)
    assert node.cpus == "0-1"
    await node.pinner.round([wish(frozenset())], observe=False)
    assert node.cpus == "0-3"
    assert (list(node.journal.entries), list(node.journal.marks)) == ([], [ID])
    (node.pod / "cpuset.cpus").write_text("0-7")
    found = await node.pinner.round([wish()], observe=False)
    assert (found.foreign, node.cpus) == ("", "0-1")
    await node.pinner.restore_all()
    assert node.cpus == "0-7", "it had stated nothing, and its pod has more now"


async def test_marks_go_with_their_containers(node: Node) -> None:
    node.states_nothing()
    await node.pinner.round([wish()], observe=False)
    await node.pinner.round([], observe=False)
    await node.pinner.round([], observe=False)
    assert list(node.journal.marks) == [ID]
    node.runtime.containers.clear()
    await node.pinner.round([], observe=False)
    assert list(node.journal.marks) == []


async def test_without_the_controller_nothing_is_pinned_and_that_is_said(node: Node) -> None:
    for file in node.container.glob("cpuset.*"):
        file.unlink()
    for _ in range(2):
        found = await node.pinner.round([wish()], observe=False)
        finding, text = found.pods[0].findings["main"]
        assert finding is Finding.UNREADABLE
        assert f"write +cpuset to {node.pod}/cgroup.subtree_control" in text
    status = status_of(Found(generation=1, machine=MACHINE, round=found), SocketStatusStatus(), datetime.now(UTC))
    condition = find_condition(status.conditions, "Pinned")
    assert condition is not None
    assert (condition.status, condition.reason) == (ConditionStatus.FALSE, "NotInEffect")
    assert text in condition.message


async def test_one_that_cannot_be_read_any_more_stays_in_the_journal(node: Node) -> None:
    await node.pinner.round([wish()], observe=False)
    kept = {file: file.read_text() for file in node.container.glob("cpuset.*")}
    for file in kept:
        file.unlink()
    node.now += LOOK_SECONDS
    found = await node.pinner.round([], observe=False)
    assert "is not switched on for this cgroup" in found.problem
    assert list(node.journal.entries) == [ID]
    for file, content in kept.items():
        file.write_text(content)
    node.container.joinpath("cpuset.cpus.effective").unlink()
    node.container.joinpath("cpuset.cpus.effective").symlink_to("cpuset.cpus")
    assert (await node.pinner.round([], observe=False)).problem == ""
    assert (node.cpus, list(node.journal.entries)) == ("0-3", [])


async def test_a_running_pod_of_which_no_container_is_found_is_not_pinned(node: Node) -> None:
    node.runtime.containers.clear()
    found = await node.pinner.round([wish()], observe=False)
    assert not found.pods[0].pinned
    assert found.pods[0].findings == {}
