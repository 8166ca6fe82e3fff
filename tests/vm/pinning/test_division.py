"""Sockets that are divided: real processes on caches and cores of their own, with SMT siblings that the kernel shows.

No machine here has sockets of several caches with several cores: one is made up of the virtual machine's two sockets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from agents.node.pinning.division import Division, Part, Tenant, divide
from agents.node.pinning.pinner import LOOK_SECONDS
from agents.node.topology.assembly import assemble
from agents.node.topology.machine import LastLevelCache, Machine, Socket
from agents.node.topology.sysfs import read_sysfs
from berth.api.interference import InterferenceClass
from tests.support.cpusets import everything
from tests.support.pinning_rounds import Rounds, wish

B, D, A = InterferenceClass.B, InterferenceClass.D, InterferenceClass.A


def one_socket() -> Machine:
    """The virtual machine as if its two sockets were caches of one."""
    found = assemble(read_sysfs())
    caches = tuple(LastLevelCache(level=3, size_bytes=None, cpus=each.cpus) for each in found.sockets)
    return dataclasses.replace(found, sockets=(Socket(number=0, cpus=found.online),), last_level_caches=caches)


def parts_of(machine: Machine, *letters: InterferenceClass, division: Division = Division.CORES) -> list[Part]:
    pods = [Tenant(str(number), letter, 1000, 1000) for number, letter in enumerate(letters)]
    return list(divide(machine, machine.sockets[0], pods, division, {}).values())


async def cpus(node: Rounds, parts: list[Part]) -> list[set[int]]:
    """CPUs that a process of each pod has, one on each part."""
    containers = [node.container(number) for number in range(len(parts))]
    pinner = node.agent()
    node.now += LOOK_SECONDS
    wishes = [dataclasses.replace(wish(number), cpus=part.cpus) for number, part in enumerate(parts)]
    found = await pinner.round(wishes, observe=False)
    assert [state.pinned for state in found.pods] == [True] * len(parts)
    has = [set(each.cpus) for each in containers]
    await pinner.restore_all()
    assert [each.cpus for each in containers] == [everything()] * len(parts)
    return has


async def test_those_that_disturb_each_other_do_not_meet_on_siblings(node: Rounds) -> None:
    machine = assemble(read_sysfs())
    assert {0, 1} in machine.cores, "siblings as the kernel shows them"
    assert await cpus(node, parts_of(machine, D, D, A)) == [{0, 1}, {2, 3}, {0, 1, 2, 3}]


@pytest.mark.parametrize(
    ("division", "expected"),
    [
        pytest.param(Division.SOCKET, [{*range(8)}] * 4, id="socket"),
        pytest.param(Division.CACHES, [{*range(4)}, {*range(4, 8)}, {*range(4)}, {*range(4, 8)}], id="caches"),
        pytest.param(Division.CORES, [{0, 1}, {4, 5}, {2, 3}, {6, 7}], id="cores"),
    ],
)
async def test_pods_in_caches_and_on_cores_of_their_own(
    node: Rounds, division: Division, expected: list[set[int]]
) -> None:
    assert await cpus(node, parts_of(one_socket(), D, D, D, D, division=division)) == expected


@pytest.mark.parametrize(
    ("least", "expected"),
    [
        pytest.param(3000, {1, 2, 3}, id="enough of its part"),
        pytest.param(4000, {1, 2, 3, 4, 5, 6}, id="what it may of the socket"),
    ],
)
async def test_a_pod_that_may_not_have_its_part_in_full(node: Rounds, least: int, expected: set[int]) -> None:
    web = node.container(0)
    (web.known.cgroup.parent / "cpuset.cpus").write_text("1-6")
    first, _ = parts_of(one_socket(), B, D)
    pinner = node.agent()
    wanted = dataclasses.replace(wish(0), cpus=first.cpus, socket_cpus=everything(), least=least)
    (state,) = (await pinner.round([wanted], observe=False)).pods
    assert (first.cpus, state.pinned, web.cpus) == ({0, 1, 2, 3}, True, expected)


async def test_parts_follow_pods_and_cpus_that_come_and_go(node: Rounds, offline: Callable[[int], None]) -> None:
    containers, pinner = [node.container(number) for number in range(2)], node.agent()
    had: dict[str, frozenset[int]] = {}

    async def look(*letters: InterferenceClass) -> list[set[int]]:
        """CPUs that the containers have after a round with pods of these classes, the first of them on socket 0."""
        machine = assemble(read_sysfs())
        pods = [Tenant(str(number), letter, 500, 500) for number, letter in enumerate(letters)]
        parts = divide(machine, machine.sockets[0], pods, Division.CORES, had)
        whole = machine.sockets[0].cpus
        node.now += LOOK_SECONDS
        wishes = [
            dataclasses.replace(wish(number), cpus=parts[str(number)].cpus, socket_cpus=whole)
            for number in range(len(letters))
        ]
        found = await pinner.round(wishes, observe=False)
        assert [state.pinned for state in found.pods] == [True] * len(letters)
        return [set(each.cpus) for each in containers]

    assert await look(D) == [{0, 1, 2, 3}, set(everything())]
    assert await look(D, D) == [{0, 1}, {2, 3}]
    containers[1].set_cpus(frozenset({0}))
    assert await look(D, D) == [{0, 1}, {2, 3}], "somebody else's change of a part is put right"
    pinner = node.agent()
    assert await look(D, A) == [{0, 1, 2, 3}, {0, 1, 2, 3}], "by an agent that starts again"
    offline(3)
    assert await look(D, D) == [{0, 1}, {2}], "a core whose sibling is offline"
    await pinner.restore_all()
    assert [set(each.cpus) for each in containers] == [everything() - {3}] * 2
