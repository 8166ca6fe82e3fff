"""What was pinned is given back: whoever does it, wherever the hierarchy is mounted, and whatever the runtime says."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from agents.node.pinning.hierarchy import Hierarchy
from agents.node.pinning.journal import Journal
from agents.node.pinning.pinner import GIVE_BACK_SECONDS
from agents.node.pinning.restore import Leave
from berth.api.cpulist import format_cpulist
from tests.support.cpusets import everything, make
from tests.support.pinning_rounds import Rounds, rounds, wish
from tests.support.pinning_stand import SOCKETS

ALL = everything()
ONE, OTHER = SOCKETS


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Rounds]:
    async with rounds("giving-back", tmp_path) as found:
        yield found


def by_hand(node: Rounds, *options: str, policy: str = "none") -> subprocess.CompletedProcess[str]:
    """Run ``berth-agent restore`` beside a kubelet of this policy, where nobody listens at the runtime's socket."""
    node.leave()
    (node.directory / "cpu_manager_state").write_text(json.dumps({"policyName": policy}))
    places = {"journal": node.directory / "journal", "runtime": node.directory / "none.sock", "kubelet": node.directory}
    given = [*(f"--{name}={path}" for name, path in places.items()), *options]
    command = [sys.executable, "-c", "from berth.cli.agent import main; main()", "restore", *given]
    return subprocess.run(command, capture_output=True, text=True, check=False)


async def test_by_hand_on_the_node_where_the_hierarchy_is_mounted_elsewhere(node: Rounds) -> None:
    web, gone = node.container(0), node.container(1)
    mount = node.directory / "host"
    mount.symlink_to(node.room.hierarchy.root)
    await node.agent(Hierarchy(mount, node.room.hierarchy.version)).round([wish(0), wish(1)], observe=False)
    assert (web.cpus, gone.cpus) == (ONE, ONE)
    mount.unlink()
    node.room.end(gone.known.cgroup)
    answer = by_hand(node)
    assert "container main of pod shop/web-1: has ended\n" in answer.stdout
    # Its runtime, which has the pinned CPUs and may set them again, was not there.
    assert "container main of pod shop/web-0: has its CPUs back, and stays in the journal until the" in answer.stdout
    assert answer.returncode == 1
    assert web.cpus == ALL


async def test_by_hand_where_the_kubelet_pins_nothing_is_given_back_unless_it_is_forced(node: Rounds) -> None:
    web, gone = node.container(0), node.container(1)
    await node.agent().round([wish(0), wish(1)], observe=False)
    node.room.end(gone.known.cgroup)
    answer = by_hand(node, policy="static")
    assert (answer.returncode, answer.stdout) == (1, "container main of pod shop/web-1: has ended\n")
    text = "1 container left alone: the kubelet's CPU manager has the policy static and pins"
    assert answer.stderr.startswith(f"berth-agent restore: {text}")
    assert "--force" in answer.stderr
    assert web.cpus == ONE
    answer = by_hand(node, policy="static")
    assert (answer.returncode, answer.stdout, web.cpus) == (1, "", ONE)
    answer = by_hand(node, "--force", policy="static")
    assert "container main of pod shop/web-0: has its CPUs back" in answer.stdout
    assert web.cpus == ALL


async def test_one_that_has_another_cgroup_than_written_down_is_searched_for(node: Rounds) -> None:
    web = node.container(0)
    await node.agent().round([wish(0)], observe=False)
    node.leave()
    file = node.directory / "journal" / "journal.json"
    file.write_text(file.read_text().replace(web.known.path, "/elsewhere"))
    await node.agent().restore_all()
    assert web.cpus == ALL
    assert not node.journal.entries


async def test_a_round_that_is_told_to_stop_writes_no_other_container(node: Rounds) -> None:
    first, second = node.container(0), node.container(1)
    node.runtime.gate.clear()
    pinner = node.agent()
    work = asyncio.ensure_future(pinner.round([wish(0), wish(1)], observe=False))
    await node.runtime.updating.wait()
    pinner.stop()
    node.runtime.gate.set()
    await work
    await pinner.restore_all()
    assert (first.cpus, second.cpus) == (ALL, ALL)
    assert node.runtime.asked.count("UpdateContainerResources") == 3, "one that is pinned, two that are given back"
    assert not node.journal.entries


async def test_everything_is_given_back_whatever_is_in_effect(node: Rounds) -> None:
    """A write that hung may come through after it was read that nothing is pinned."""
    web = node.container(0)
    pinner = node.agent()
    await pinner.round([wish(0)], observe=False)
    web.set_cpus(ALL)
    await pinner.restore_all()
    assert web.known.keeps[0] == format_cpulist(ALL)
    node.runtime.update(web.known)
    assert web.cpus == ALL


async def test_an_entry_stays_until_the_runtime_has_the_old_value(node: Rounds) -> None:
    web = node.container(0)
    pinner = node.agent()
    await pinner.round([wish(0)], observe=False)
    await node.runtime_ends()
    await pinner.restore_all()
    assert web.cpus == ALL
    assert node.journal.entries.keys() == {web.id}
    await node.runtime.start()
    node.runtime.update(web.known)  # of something else, as by the kubelet
    assert web.cpus == ONE
    found = await node.agent().round([], observe=False)
    assert (found.problem, web.cpus) == ("", ALL)
    assert not node.journal.entries
    node.runtime.update(web.known)
    assert web.cpus == ALL


async def test_while_it_works_the_agent_tells_the_runtime_as_soon_as_it_is_there_again(node: Rounds) -> None:
    web = node.container(0)
    pinner = node.agent()
    await pinner.round([wish(0)], observe=False)
    await node.runtime_ends()
    found = await pinner.round([wish(0, None)], observe=False)
    assert found.problem.startswith("container main of pod shop/web-0: has its CPUs back, and stays in the journal")
    assert not pinner.idle
    await node.runtime.start()
    assert (await pinner.round([wish(0, None)], observe=False)).problem == ""
    assert pinner.idle
    node.runtime.update(web.known)
    assert web.cpus == ALL


@pytest.mark.parametrize(
    ("status", "kept"),
    [
        pytest.param(Status.NOT_FOUND, False, id="it knows no such container"),
        pytest.param(Status.UNKNOWN, True, id="it refuses"),
    ],
)
async def test_what_a_runtime_says_that_does_not_take_it(node: Rounds, status: Status, kept: bool) -> None:
    web = node.container(0)
    pinner = node.agent()
    await pinner.round([wish(0)], observe=False)
    node.runtime.refuses["UpdateContainerResources"] = GRPCError(status, "no")
    await pinner.restore_all()
    assert web.cpus == ALL
    assert (web.id in node.journal.entries) is kept


async def test_cgroups_inside_follow_the_container_there_and_back(node: Rounds) -> None:
    """Runtimes write the container's cpuset alone; with version 1 the kernel refuses that while one inside has more."""
    web = node.container(0)
    inner = web.known.cgroup / "inner"
    make(inner, node.room.hierarchy.root)
    pid = node.room.run_in(inner)
    pinner = node.agent()
    await pinner.round([wish(0)], observe=False)
    assert (web.cpus, os.sched_getaffinity(pid)) == (ONE, ONE)
    assert web.known.keeps[0] == format_cpulist(ONE)
    await pinner.round([wish(0, None)], observe=False)
    assert (web.cpus, os.sched_getaffinity(pid)) == (ALL, ALL)
    assert web.known.keeps[0] == format_cpulist(ALL)
    assert pinner.idle


async def test_each_is_struck_out_as_soon_as_it_has_its_cpus(node: Rounds) -> None:
    first, second = node.container(0), node.container(1)
    pinner = node.agent()
    await pinner.round([wish(0), wish(1)], observe=False)
    begun = len(node.journal.entries)
    left: list[int] = []
    node.runtime.before_update = lambda: left.append(len(node.journal.entries))
    await pinner.restore_all()
    assert (begun, left) == (2, [2, 1])
    assert (first.cpus, second.cpus) == (ALL, ALL)


async def test_when_time_runs_out_the_rest_is_given_back_without_the_runtime(node: Rounds) -> None:
    containers = [node.container(number) for number in range(4)]
    pinner = node.agent()
    await pinner.round([wish(number) for number in range(4)], observe=False)

    def slowly() -> None:
        node.now += GIVE_BACK_SECONDS / 2

    node.runtime.before_update = slowly
    node.runtime.asked.clear()
    await pinner.restore_all()
    assert [each.cpus for each in containers] == [ALL] * 4
    assert node.runtime.asked.count("UpdateContainerResources") == 2
    assert node.journal.entries.keys() == {each.id for each in containers[2:]}


async def test_what_others_have_changed_is_theirs_when_they_pin_too(node: Rounds) -> None:
    ours, theirs = node.container(0), node.container(1)
    pinner = node.agent()
    await pinner.round([wish(0), wish(1)], observe=False)
    theirs.set_cpus(OTHER)
    await pinner.restore_all(leave=Leave.CHANGED)
    assert (ours.cpus, theirs.cpus) == (ALL, OTHER)
    assert node.journal.entries.keys() == {theirs.id}


async def test_the_journal_names_the_container_that_could_not_be_struck_out(node: Rounds) -> None:
    node.container(0)
    pinner = node.agent()
    await pinner.round([wish(0)], observe=False)
    beside = node.directory / "journal" / "journal.new"
    beside.symlink_to("/dev/full")
    found = await pinner.round([wish(0, None)], observe=False)
    assert "container main of pod shop/web-0: " in found.problem
    assert "no space left on device" in found.problem
    assert (await pinner.round([wish(0, None)], observe=False)).problem == ""
    assert not node.journal.entries
    node.leave()
    Journal.open(node.directory / "journal").close()
