"""Sockets as a SocketStatus shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agents.node.pinning.division import Division
from agents.node.pinning.sockets import reports, socket_of, unknown
from agents.node.topology.assembly import assemble
from agents.node.topology.machine import Assumption, LastLevelCache, Machine, NumaNode
from agents.node.topology.sysfs import read_sysfs
from berth.api.socketstatus import MAX_CACHES, MAX_SOCKETS, SocketReport
from tests.support.sysfs import CPU, MIB, NODE, uniform, write_sysfs


def test_a_server_with_two_sockets() -> None:
    machine = uniform(sockets=2, caches=2, cores=2, threads=2, nodes=2)
    first, second = (report.to_api() for report in reports(machine))
    assert first == {
        "socket": 0,
        "numaNodes": [0, 1],
        "cpus": "0-3,8-11",
        "cpuCount": 8,
        "memoryBytes": 2**31,
        "caches": [
            {"level": 3, "sizeBytes": 32 * MIB, "cpus": "0-1,8-9"},
            {"level": 3, "sizeBytes": 32 * MIB, "cpus": "2-3,10-11"},
        ],
        "pinnedCaches": 2,
        "coreCount": 4,
        "smtSiblings": ["0,8", "1,9", "2,10", "3,11"],
    }
    assert (second["socket"], second["numaNodes"], second["cpus"]) == (1, [2, 3], "4-7,12-15")


@pytest.mark.parametrize(
    ("division", "caches"), [(Division.SOCKET, None), (Division.CACHES, 2), (Division.CORES, 2)], ids=list(Division)
)
def test_caches_that_pods_are_kept_apart_in(division: Division, caches: int | None) -> None:
    (report,) = reports(uniform(caches=2, cores=2), division)
    assert report.pinned_caches == caches
    (plain,) = reports(uniform(cores=4), division)
    assert plain.pinned_caches is None


@pytest.mark.parametrize(("threads", "cores"), [(1, None), (2, 4), (8, 4)])
def test_cores_are_told_where_they_have_siblings(threads: int, cores: int | None) -> None:
    (report,) = reports(uniform(cores=4, threads=threads))
    assert report.core_count == cores


def test_lists_are_as_long_as_the_api_server_takes_them() -> None:
    machine = uniform(cores=MAX_CACHES + 8)
    caches = tuple(LastLevelCache(level=3, size_bytes=MIB, cpus=frozenset({cpu})) for cpu in machine.online)
    nodes = tuple(NumaNode(number=cpu, cpus=frozenset({cpu}), memory_bytes=None) for cpu in machine.online)
    (report,) = reports(replace(machine, last_level_caches=caches, numa_nodes=nodes))
    assert (len(report.caches), len(report.numa_nodes), report.cpu_count) == (MAX_CACHES, MAX_SOCKETS, MAX_CACHES + 8)


def test_what_is_not_known_or_of_several_is_left_out() -> None:
    shared = reports(uniform(sockets=2, cores=2, nodes=0))
    assert [report.memory_bytes for report in shared] == [None, None], "memory of both sockets together"
    assert [report.numa_nodes for report in shared] == [(0,), (0,)]
    machine = uniform(cores=2)
    machine = replace(
        machine,
        numa_nodes=(NumaNode(number=0, cpus=machine.online, memory_bytes=None),),
        last_level_caches=(LastLevelCache(level=0, size_bytes=None, cpus=machine.online),),
    )
    (report,) = reports(machine)
    assert report.to_api() == {
        "socket": 0,
        "numaNodes": [0],
        "cpus": "0-1",
        "cpuCount": 2,
        "caches": [{"cpus": "0-1"}],
        "smtSiblings": [],
    }


@pytest.mark.parametrize(
    ("file", "text", "shown", "expected"),
    [
        pytest.param(
            f"{CPU}/cpu0/cache/index2/level",
            "12",
            lambda report: [cache.level for cache in report.caches],
            [3],
            id="a level that no cache has",
        ),
        pytest.param(
            f"{CPU}/cpu0/cache/index2/level",
            "-3",
            lambda report: [cache.level for cache in report.caches],
            [3],
            id="a level below 1",
        ),
        pytest.param(
            f"{CPU}/cpu0/cache/index2/size",
            "999999999999G",
            lambda report: report.caches[0].size_bytes,
            None,
            id="a cache that is larger than any",
        ),
        pytest.param(
            f"{NODE}/node0/meminfo",
            "Node 0 MemTotal: 999999999999999999 kB",
            lambda report: report.memory_bytes,
            None,
            id="more memory than there can be",
        ),
    ],
)
def test_what_cannot_be_is_told_and_not_shown(
    tmp_path: Path, file: str, text: str, shown: Callable[[SocketReport], object], expected: object
) -> None:
    """The API server would refuse the whole status for it."""
    machine = assemble(read_sysfs(write_sysfs(tmp_path, uniform(cores=2), changes={file: text})))
    (report,) = reports(machine)
    assert shown(report) == expected
    assert [item.file for item in machine.assumptions] == [file]


@pytest.mark.parametrize("text", ["-7", "4294967295", "1_000"])
def test_a_number_that_no_socket_has(tmp_path: Path, text: str) -> None:
    file = f"{CPU}/cpu1/topology/physical_package_id"
    machine = assemble(read_sysfs(write_sysfs(tmp_path, uniform(sockets=2, cores=2), changes={file: text})))
    assert f"{file}: '{text}' is " in unknown(machine)
    assert [report.socket for report in reports(machine)] == [0, 1]


@pytest.mark.parametrize(
    ("cpus", "expected"),
    [
        pytest.param({0, 1}, 0, id="all of a socket"),
        pytest.param({3}, 1, id="a part of one"),
        pytest.param({1, 2}, None, id="of both"),
        pytest.param(set(), None, id="none"),
        pytest.param({9}, None, id="of no socket"),
    ],
)
def test_which_socket(cpus: set[int], expected: int | None) -> None:
    assert socket_of(uniform(sockets=2, cores=2), frozenset(cpus)) == expected


@pytest.mark.parametrize(
    ("assumptions", "expected"),
    [
        pytest.param((), "", id="everything is there"),
        pytest.param((Assumption("devices/system/cpu/cpu0/topology/die_id", "?", "?"),), "", id="dies do not matter"),
        pytest.param(
            (Assumption("devices/system/cpu/cpu0/topology/physical_package_id", "not there", "it is in the first"),),
            "devices/system/cpu/cpu0/topology/physical_package_id: not there; nothing is pinned, as nobody knows which "
            "CPUs are on one socket",
            id="no number of a socket",
        ),
    ],
)
def test_whether_sockets_can_be_told(assumptions: tuple[Assumption, ...], expected: str) -> None:
    machine: Machine = replace(uniform(), assumptions=assumptions)
    assert unknown(machine) == expected
