"""What pinning needs of the machine: told while it is not there, found when it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.node.pinning.journal import Journal
from agents.node.pinning.settings import PinningSettings
from agents.node.pinning.workplace import RETRY_SECONDS, TOPOLOGY_SECONDS, Workplace
from tests.support.sysfs import CPU, uniform, write_sysfs


class Place:
    """A machine in a directory, and a clock."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now = 100.0
        settings = PinningSettings(
            runtime=root / "none.sock",
            cgroups=root / "cgroup",
            sysfs=root / "sys",
            kubelet=root / "kubelet",
            journal=root / "journal",
        )
        self.workplace = Workplace(settings, clock=lambda: self.now)

    def furnish(self) -> None:
        write_sysfs(self.root / "sys", uniform(sockets=2))
        (self.root / "cgroup" / "cpuset").mkdir(parents=True)
        (self.root / "cgroup" / "cpuset" / "cpuset.cpus").write_text("0-1")
        (self.root / "kubelet").mkdir()
        (self.root / "kubelet" / "cpu_manager_state").write_text('{"policyName": "none"}')


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_everything_is_there(place: Place) -> None:
    place.furnish()
    await place.workplace.look()
    assert place.workplace.machine is not None
    assert place.workplace.pinner is not None
    assert place.workplace.pinner.idle
    told = (place.workplace.topology_problem, place.workplace.unable, place.workplace.kubelet_pins)
    assert told == ("", "", "")
    place.workplace.close()
    assert place.workplace.pinner is None
    Journal.open(place.root / "journal").close()


async def test_nothing_is_there_and_then_everything(place: Place) -> None:
    await place.workplace.look()
    assert (place.workplace.machine, place.workplace.pinner) == (None, None)
    assert "no CPUs" in place.workplace.topology_problem
    assert "no hierarchy with the controller cpuset" in place.workplace.unable
    assert "cpu_manager_state is not there" in place.workplace.kubelet_pins
    place.furnish()
    place.now += RETRY_SECONDS - 0.1
    await place.workplace.look()
    assert place.workplace.pinner is None
    assert place.workplace.kubelet_pins == ""
    place.now += 0.1
    await place.workplace.look()
    assert place.workplace.machine is not None
    assert place.workplace.pinner is not None
    assert (place.workplace.topology_problem, place.workplace.unable) == ("", "")
    place.workplace.close()


async def test_another_process_has_the_journal(place: Place) -> None:
    place.furnish()
    journal = Journal.open(place.root / "journal")
    await place.workplace.look()
    assert "another process pins by this journal" in place.workplace.unable
    assert place.workplace.occupied
    journal.close()
    await place.workplace.look()
    assert (place.workplace.unable, place.workplace.occupied) == ("", False), "pods that were given back wait for it"
    place.workplace.close()


async def test_the_last_look_does_not_wait_for_its_turn(place: Place) -> None:
    await place.workplace.look()
    place.furnish()
    await place.workplace.look()
    assert place.workplace.pinner is None
    await place.workplace.look(last=True)
    assert place.workplace.pinner is not None
    place.workplace.close()


async def test_cpus_go_offline_and_sockets_are_lost(place: Place) -> None:
    place.furnish()
    await place.workplace.look()
    online = place.root / "sys" / CPU / "online"
    both = online.read_text()
    for text, sockets in (("0", 1), (both, 2), ("0", 1)):
        # Otherwise what the kernel makes of it meanwhile would count as a change by others.
        online.write_text(text)
        await place.workplace.look()
        assert place.workplace.machine is not None
        assert len(place.workplace.machine.sockets) == sockets
    (place.root / "sys" / CPU / "cpu0" / "topology" / "physical_package_id").unlink()
    await place.workplace.look()
    assert place.workplace.machine is not None
    place.now += TOPOLOGY_SECONDS
    await place.workplace.look()
    assert place.workplace.machine is None
    assert "physical_package_id: not there; nothing is pinned" in place.workplace.topology_problem
    place.workplace.close()
