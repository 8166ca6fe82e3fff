"""The first half of a power cut: containers are pinned, and the machine ends without anybody being told."""

from __future__ import annotations

import asyncio
import os

from agents.node.pinning.cgroup_paths import Driver
from hack.localcluster.kubelets import cgroups
from tests.support.containerd import give_image, launch
from tests.support.cpusets import Machine
from tests.support.pinning_rounds import Rounds, wish
from tests.support.scripted_runtime import ScriptedRuntime
from tests.vm.power_cut.places import CGROUP, DIRECTORY
from tests.vm.power_cut.runtime import DISK, agent, runtime, start, wishes


async def test_containers_are_pinned_when_the_power_goes(virtual_machine: None) -> None:
    DIRECTORY.mkdir()
    room = Machine(CGROUP, Driver.SYSTEMD)
    cgroups.create(room.root)
    node = Rounds(room, ScriptedRuntime(DIRECTORY / "none.sock"), DIRECTORY)
    containers = [node.container(number) for number in range(2)]
    found = await node.agent().round([wish(0, 0), wish(1, 1)], observe=False)
    assert [state.pinned for state in found.pods] == [True, True]
    assert node.journal.entries.keys() == {each.id for each in containers}


async def test_containers_of_a_runtime_are_pinned_when_the_power_goes(virtual_machine: None) -> None:
    DISK.mkdir()
    running = runtime()
    launch(running, DISK / "root")
    await asyncio.to_thread(give_image, running)
    containers = await start(running)
    # The image has been on a node for longer than the kernel keeps it in memory alone.
    os.sync()
    async with agent(running) as node:
        await node.client.set_cpuset(containers[1], "0-7", "")
        found = await node.pinner.round(wishes(), observe=False)
        assert [state.pinned for state in found.pods] == [True, True], found
        assert [node.journal.entries[each].cpus for each in containers] == ["", "0-7"]
