"""Rounds of pinning with what real runtimes and agents do seldom: others that pin, processes that leave, silence."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents.node.pinning.cpuset import read_cpuset, write_cpuset
from agents.node.pinning.cri import HUNG_SECONDS
from agents.node.pinning.hierarchy import Version
from agents.node.pinning.pinner import LOOK_SECONDS
from agents.node.pinning.reconciler import Finding
from agents.node.pinning.restore import Leave
from tests.support.cpusets import everything, make
from tests.support.pinning_rounds import Rounds, rounds, wish
from tests.support.pinning_stand import SOCKETS

ALL = everything()
ONE, OTHER = SOCKETS


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Rounds]:
    async with rounds("rounds", tmp_path) as found:
        yield found


async def test_another_agent_stops_new_pins_and_nothing_else(node: Rounds) -> None:
    ours, drifted, theirs, new = (node.container(number) for number in range(4))
    pinner = node.agent()
    await pinner.round([wish(0), wish(1)], observe=False)
    theirs.set_cpus(OTHER)
    drifted.set_cpus(ALL)
    node.now += LOOK_SECONDS
    found = await pinner.round([wish(0), wish(1), wish(2), wish(3)], observe=False)
    assert found.foreign.startswith("container main of pod shop/web-2: somebody else has given it CPUs")
    assert [each.cpus for each in (ours, drifted, theirs, new)] == [ONE, ONE, OTHER, ALL]
    await pinner.round([wish(0, None), wish(1), wish(2), wish(3)], observe=False)
    assert [each.cpus for each in (ours, drifted, theirs, new)] == [ALL, ONE, OTHER, ALL]
    await pinner.restore_all(leave=Leave.CHANGED)
    assert [each.cpus for each in (ours, drifted, theirs, new)] == [ALL, ALL, OTHER, ALL]
    assert not node.journal.entries


async def test_while_nothing_changes_the_runtime_is_asked_as_seldom_as_cpusets_are_read(node: Rounds) -> None:
    first, second = node.container(0), node.container(1)
    pinner, wishes = node.agent(), (wish(0), wish(1))
    for _ in range(2):
        await pinner.round(wishes, observe=False)
    node.runtime.asked.clear()
    for _ in range(3):
        node.now += 1
        found = await pinner.round(wishes, observe=False)
        assert all(state.pinned for state in found.pods)
    assert node.runtime.asked == []
    node.room.end(first.known.cgroup)
    del node.runtime.containers[first.id]
    another, late = node.container(0), node.container(2)
    await pinner.round(wishes, observe=False)
    assert another.cpus == ONE, "one that ended has another in its place at once"
    await pinner.round((*wishes, wish(2)), observe=False)
    assert (second.cpus, late.cpus) == (ONE, ONE), "what the API server tells is looked at at once"


async def test_a_container_that_is_to_come_is_looked_for(node: Rounds) -> None:
    node.container(0)
    pinner, wishes = node.agent(), (replace(wish(0), containers=2),)
    for _ in range(2):
        await pinner.round(wishes, observe=False)
    late = node.container(0)
    late.known.name = "late"
    await pinner.round(wishes, observe=False)
    assert late.cpus == ONE


@pytest.mark.parametrize("again", [False, True], ids=["the same agent", "the next agent"])
@pytest.mark.parametrize("named", [True, False], ids=["which the API server names", "which it does not name"])
async def test_while_the_kubelet_pins_nothing_is_written_and_what_was_is_not_forgotten(
    node: Rounds, again: bool, named: bool
) -> None:
    """A kubelet with exclusive CPUs may have set just what was written here: nothing tells whose that is."""
    stays, goes, ended = (node.container(number) for number in range(3))
    pinner = node.agent()
    await pinner.round([wish(0), wish(1), wish(2)], observe=False)
    if again:
        pinner = node.agent()
    node.room.end(ended.known.cgroup)
    del node.runtime.containers[ended.id]
    stays.set_cpus(OTHER)
    wishes = [wish(0), wish(1, None)] if named else []
    for _ in range(2):
        node.now += LOOK_SECONDS
        found = await pinner.round(wishes, observe=True)
        assert (stays.cpus, goes.cpus, found.problem) == (OTHER, ONE, "")
    await pinner.restore_all(leave=Leave.ALL)
    assert (stays.cpus, goes.cpus) == (OTHER, ONE)
    assert node.journal.entries.keys() == {stays.id, goes.id}, "one that has ended has nothing to get back"
    # The kubelet has turned to none, by which it leaves containers with what it gave them.
    node.now += LOOK_SECONDS
    found = await pinner.round([wish(0), wish(1, None)], observe=False)
    assert (found.foreign, stays.cpus, goes.cpus) == ("", ONE, ALL)
    assert node.journal.entries.keys() == {stays.id}


async def test_a_process_that_has_left_is_told_as_long_as_it_is_away(node: Rounds) -> None:
    web = node.container(0)
    pinner = node.agent()
    (state,) = (await pinner.round([wish(0)], observe=False)).pods
    assert state.pinned
    (web.known.cgroup.parent / "cgroup.procs").write_text(str(web.known.pid))
    assert web.cpus == ALL
    for _ in range(3):
        node.now += LOOK_SECONDS
        (state,) = (await pinner.round([wish(0)], observe=False)).pods
        finding, text = state.findings["main"]
        assert (state.pinned, finding) == (False, Finding.STRAYED)
        assert text.startswith(f"process {web.known.pid} may run on other CPUs; it has left the container's cgroup")
    node.now += 1.0
    (state,) = (await pinner.round([wish(0)], observe=False)).pods
    assert not state.pinned, "between two looks it is known too"
    (web.known.cgroup / "cgroup.procs").write_text(str(web.known.pid))
    node.now += LOOK_SECONDS
    (state,) = (await pinner.round([wish(0)], observe=False)).pods
    assert state.pinned


async def test_one_that_has_left_before_is_told_when_its_container_is_written(node: Rounds) -> None:
    web = node.container(0)
    (web.known.cgroup.parent / "cgroup.procs").write_text(str(web.known.pid))
    pinner = node.agent()
    for _ in range(3):
        (state,) = (await pinner.round([wish(0)], observe=False)).pods
        assert state.findings["main"][0] is Finding.STRAYED
        node.now += 1.0
    assert node.runtime.asked.count("UpdateContainerResources") == 1


async def test_a_runtime_that_hangs_about_containers_costs_a_round_one_timeout(node: Rounds) -> None:
    containers = [node.container(number) for number in range(5)]
    node.runtime.hangs = {"ContainerStatus", "UpdateContainerResources"}
    pinner = node.agent()
    found = await pinner.round([wish(number) for number in range(5)], observe=False)
    assert all(state.pinned for state in found.pods)
    assert [each.cpus for each in containers] == [ONE] * 5
    assert sorted(node.runtime.asked) == ["ContainerStatus", "ListContainers"]
    # It is asked again later, and then processes are known.
    node.runtime.hangs.clear()
    node.now += HUNG_SECONDS
    (containers[0].known.cgroup.parent / "cgroup.procs").write_text(str(containers[0].known.pid))
    found = await pinner.round([wish(number) for number in range(5)], observe=False)
    assert [state.pinned for state in found.pods].count(False) == 1
    assert node.runtime.asked.count("ContainerStatus") == 6


async def test_a_runtime_that_is_there_again_is_asked_at_once(node: Rounds) -> None:
    node.container(0)
    pinner = node.agent()
    await node.runtime_ends()
    assert (await pinner.round([wish(0)], observe=False)).silence
    await node.runtime.start()
    late = node.container(1)
    await pinner.round([wish(0), wish(1)], observe=False)
    assert late.known.keeps[0] != ""


def test_a_cgroup_inside_that_goes_meanwhile_is_passed_over(node: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 2 does not look at cgroups inside."""
    web = node.container(0)
    inner = web.known.cgroup / "inner"
    make(inner, node.room.hierarchy.root)
    found = read_cpuset(web.known.cgroup, node.room.hierarchy.version)
    opened = os.open

    def going(path: Path, flags: int) -> int:
        if path.parent == inner and inner.is_dir():
            inner.rmdir()
        return opened(path, flags)

    monkeypatch.setattr(os, "open", going)
    write_cpuset(web.known.cgroup, node.room.hierarchy.version, ONE, found.effective_mems)
    assert web.cpus == ONE
    assert inner.is_dir() is (node.room.hierarchy.version is Version.V2)
