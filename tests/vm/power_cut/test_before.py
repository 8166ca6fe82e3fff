"""The first half of a power cut: containers are pinned, and the machine ends without anybody being told."""

from __future__ import annotations

from agents.node.pinning.cgroup_paths import Driver
from hack.localcluster.kubelets import cgroups
from tests.support.cpusets import Machine
from tests.support.pinning_rounds import Rounds, wish
from tests.support.scripted_runtime import ScriptedRuntime
from tests.vm.power_cut.places import CGROUP, DIRECTORY


async def test_containers_are_pinned_when_the_power_goes(virtual_machine: None) -> None:
    DIRECTORY.mkdir()
    room = Machine(CGROUP, Driver.SYSTEMD)
    cgroups.create(room.root)
    node = Rounds(room, ScriptedRuntime(DIRECTORY / "none.sock"), DIRECTORY)
    containers = [node.container(number) for number in range(2)]
    found = await node.agent().round([wish(0, 0), wish(1, 1)], observe=False)
    assert [state.pinned for state in found.pods] == [True, True]
    assert node.journal.entries.keys() == {each.id for each in containers}
