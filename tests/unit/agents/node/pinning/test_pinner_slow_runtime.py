"""Rounds while a runtime takes seconds for an update, on directories that stand for cgroups."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.node.pinning.containers import Containers
from agents.node.pinning.cri import RuntimeClient
from agents.node.pinning.hierarchy import Hierarchy, Version
from agents.node.pinning.journal import Journal
from agents.node.pinning.pinner import LOOK_SECONDS, Pinner
from agents.node.pinning.reconciler import Reconciler
from agents.node.pinning.wanted import PodWish
from agents.node.pinning.writer import CpusetWriter
from berth.api.interference import InterferenceClass
from tests.support.scripted_runtime import PATIENCE, Known, ScriptedRuntime

ONE, OTHER = frozenset({0, 1}), frozenset({2, 3})


def wish(pod: str, cpus: frozenset[int] = ONE) -> PodWish:
    return PodWish(
        uid=pod,
        runtime_uid=pod,
        namespace="shop",
        name=pod,
        interference_class=InterferenceClass.A,
        socket=0,
        cpus=cpus,
    )


class Node:
    """A runtime that does nothing it is told until the test opens its gate, and a pinner that waits a moment for it."""

    def __init__(self, root: Path) -> None:
        self.root, self.now = root, 100.0
        self.runtime = ScriptedRuntime(root / "s.sock")
        self.client = RuntimeClient(root / "s.sock", timeout=PATIENCE, patience=0.3)
        self.journal = Journal.open(root / "journal")
        hierarchy = Hierarchy(root / "cpuset", Version.V1)
        self.pinner = Pinner(
            hierarchy,
            Containers(self.client, hierarchy, patience=0.3, proc=root / "proc"),
            CpusetWriter(self.client, Version.V1),
            self.journal,
            Reconciler(),
            clock=lambda: self.now,
        )

    def container(self, pod: str) -> Path:
        """Have a container of a pod run, beside what holds the pod's namespaces."""
        identity = pod * 64
        cgroup = self.root / "cpuset" / "kubepods" / f"pod{pod}" / identity
        sandbox = cgroup.parent / ("f" * 64)
        for directory, score in ((cgroup.parent, None), (sandbox, -998), (cgroup, 1000)):
            directory.mkdir(parents=True)
            for name, text in {"cpus": "0-3", "mems": "0"}.items():
                (directory / f"cpuset.{name}").write_text(text)
                (directory / f"cpuset.effective_{name}").symlink_to(f"cpuset.{name}")
            pid = f"{ord(pod)}{score}"
            (directory / "cgroup.procs").write_text(pid if score else "")
            (self.root / "proc" / pid).mkdir(parents=True)
            (self.root / "proc" / pid / "oom_score_adj").write_text(f"{score}")
        self.runtime.containers[identity] = Known(pod, cgroup, f"/kubepods/pod{pod}/{identity}")
        return cgroup

    async def round(self, *wishes: PodWish) -> None:
        self.now += LOOK_SECONDS
        await self.pinner.round(wishes, observe=False)


def cpus(cgroup: Path) -> str:
    return (cgroup / "cpuset.cpus").read_text()


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    made = Node(tmp_path)
    await made.runtime.start()
    made.runtime.gate.clear()
    yield made
    made.client.close()
    made.journal.close()
    await made.runtime.settle()
    await made.runtime.stop()


async def test_new_containers_are_pinned_while_the_runtime_is_at_work_and_it_hears_of_all(node: Node) -> None:
    made = {pod: node.container(pod) for pod in "abc"}
    await node.round(*map(wish, "abc"))
    assert {cpus(cgroup) for cgroup in made.values()} == {"0-1"}
    made["d"] = node.container("d")
    await node.round(*map(wish, "abcd"))
    assert cpus(made["d"]) == "0-1"
    assert node.runtime.asked.count("UpdateContainerResources") == 1
    node.runtime.gate.set()
    await node.client.settled()
    for _ in range(4):
        await node.round(*map(wish, "abcd"))
    assert {known.keeps for known in node.runtime.containers.values()} == {("0-1", "0")}
    assert node.runtime.asked.count("UpdateContainerResources") == 4


async def test_what_was_to_be_pinned_is_given_back_when_the_agent_ends_before_the_runtime_has_done_it(
    node: Node,
) -> None:
    cgroup = node.container("a")
    await node.round(wish("a"))
    assert cpus(cgroup) == "0-1"
    ending = asyncio.ensure_future(node.pinner.restore_all())
    await asyncio.wait_for(node.runtime.updating.wait(), PATIENCE)
    assert not ending.done()
    node.runtime.gate.set()
    await ending
    assert cpus(cgroup) == "0-3"
    assert node.runtime.containers["a" * 64].keeps == ("0-3", "0")
    assert node.pinner.idle


async def test_what_the_runtime_does_late_is_given_back_where_it_is_wanted_no_more(node: Node) -> None:
    cgroup = node.container("a")
    await node.round(wish("a"))
    giving_back = asyncio.ensure_future(node.round(wish("a", frozenset())))
    await asyncio.wait_for(node.runtime.updating.wait(), PATIENCE)
    node.runtime.gate.set()
    await giving_back
    # On a busy machine it may have listed its containers too late for that round.
    await node.client.settled()
    await node.round(wish("a", frozenset()))
    assert cpus(cgroup) == "0-3"
    assert node.pinner.idle


async def test_what_the_runtime_does_late_is_put_right_where_something_else_is_wanted_by_then(node: Node) -> None:
    cgroup = node.container("a")
    await node.round(wish("a"))
    await node.round(wish("a", OTHER))
    assert cpus(cgroup) == "2-3"
    node.runtime.gate.set()
    await node.client.settled()
    assert cpus(cgroup) == "0-1"
    for _ in range(2):
        await node.round(wish("a", OTHER))
    assert cpus(cgroup) == "2-3"
    assert node.runtime.containers["a" * 64].keeps == ("2-3", "0")
