"""Machines of many shapes, by the sysfs that their kernels show: read back as they are, whole or broken."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.node.topology.assembly import assemble
from agents.node.topology.machine import Die, LastLevelCache, Machine, NumaNode, Socket
from agents.node.topology.readings import CpuReading, NodeReading, Readings
from agents.node.topology.sysfs import SysfsError, read_sysfs
from berth.api.cpulist import format_cpulist
from tests.support.sysfs import CPU, NODE, uniform, write_sysfs
from tests.support.work import CALL, Work

TWO_SOCKETS = uniform(sockets=2, cores=4, threads=2)


def read(root: Path, machine: Machine, **changes: str | None) -> Machine:
    return assemble(read_sysfs(write_sysfs(root, machine, changes=changes)))


def lists(parts: Iterable[Any]) -> list[str]:
    return [format_cpulist(part.cpus) for part in parts]


@pytest.mark.parametrize(
    ("machine", "sockets", "nodes", "caches", "cores", "first_core"),
    [
        pytest.param(TWO_SOCKETS, ["0-3,8-11", "4-7,12-15"], 2, 2, 8, {0, 8}, id="two sockets with SMT"),
        pytest.param(
            uniform(sockets=2, caches=8, cores=4, nodes=4), ["0-31", "32-63"], 8, 16, 64, {0}, id="EPYC, NPS4"
        ),
        pytest.param(uniform(cores=6), ["0-5"], 1, 1, 6, {0}, id="one socket"),
        pytest.param(uniform(dies=2, cores=4, nodes=2), ["0-7"], 2, 2, 8, {0}, id="two dies, a node each"),
        pytest.param(uniform(cores=8, nodes=2), ["0-7"], 2, 1, 8, {0}, id="sub-NUMA clustering: nodes share the L3"),
        pytest.param(
            uniform(sockets=4, cores=2, nodes=0),
            ["0-1", "2-3", "4-5", "6-7"],
            1,
            4,
            8,
            {0},
            id="one node, four sockets",
        ),
        pytest.param(uniform(cores=2, threads=4), ["0-7"], 1, 1, 2, {0, 2, 4, 6}, id="four threads a core"),
    ],
)
def test_shapes(
    tmp_path: Path, machine: Machine, sockets: list[str], nodes: int, caches: int, cores: int, first_core: set[int]
) -> None:
    found = read(tmp_path, machine)
    assert found == machine
    assert lists(found.sockets) == sockets
    assert (len(found.numa_nodes), len(found.last_level_caches), len(found.cores)) == (nodes, caches, cores)
    assert found.cores[0] == first_core
    assert found.assumptions == ()


def test_hybrid_cores_by_their_performance_counters(tmp_path: Path) -> None:
    """Two P-cores with two threads, four E-cores without, an L3 for all; a low-power E-core pair has an L2 alone."""
    machine = Machine(
        sockets=(Socket(number=0, cpus=frozenset(range(10))),),
        dies=(Die(socket=0, number=0, cpus=frozenset(range(10))),),
        numa_nodes=(NumaNode(number=0, cpus=frozenset(range(10)), memory_bytes=2**34),),
        last_level_caches=(
            LastLevelCache(level=3, size_bytes=24 * 2**20, cpus=frozenset(range(8))),
            LastLevelCache(level=2, size_bytes=2 * 2**20, cpus=frozenset({8, 9})),
        ),
        cores=tuple(map(frozenset, ({0, 1}, {2, 3}, {4}, {5}, {6}, {7}, {8}, {9}))),
    )
    kinds = {"devices/cpu_core/cpus": "0-3", "devices/cpu_atom/cpus": "4-9"}
    found = read(tmp_path, machine, **kinds, **{f"{CPU}/cpu{cpu}/cpu_capacity": str(1000 + cpu) for cpu in range(10)})
    assert [(kind.name, format_cpulist(kind.cpus)) for kind in found.core_types] == [("core", "0-3"), ("atom", "4-9")]
    assert found.last_level_caches == machine.last_level_caches
    assert found.cores == machine.cores
    assert found.assumptions == ()


def test_arm_without_die_id_and_with_capacities(tmp_path: Path) -> None:
    machine = uniform(sockets=1, caches=2, cores=4)
    gone = {f"{CPU}/cpu{cpu}/topology/{name}": None for cpu in range(8) for name in ("die_id", "core_cpus_list")}
    capacities = {f"{CPU}/cpu{cpu}/cpu_capacity": "446" if cpu < 4 else "1024" for cpu in range(8)}
    found = read(tmp_path, machine, **gone, **capacities)
    assert [(kind.name, format_cpulist(kind.cpus)) for kind in found.core_types] == [
        ("capacity 1024", "4-7"),
        ("capacity 446", "0-3"),
    ]
    assert (found.dies, found.cores, found.assumptions) == (machine.dies, machine.cores, ())


@pytest.mark.parametrize("texts", [["446"] * 4, ["1024", "446", "446", None]], ids=["alike", "not all known"])
def test_cores_of_one_kind(tmp_path: Path, texts: list[str | None]) -> None:
    capacities = {f"{CPU}/cpu{cpu}/cpu_capacity": text for cpu, text in enumerate(texts)}
    assert read(tmp_path, uniform(cores=4), **capacities).core_types == ()


def test_socket_numbers_are_the_kernels(tmp_path: Path) -> None:
    """Firmware numbers sockets as it likes."""
    numbers = {f"{CPU}/cpu{cpu}/topology/physical_package_id": "36" if cpu < 2 else "3180" for cpu in range(4)}
    found = read(tmp_path, uniform(sockets=2, cores=2), **numbers)
    assert [(socket.number, sorted(socket.cpus)) for socket in found.sockets] == [(36, [0, 1]), (3180, [2, 3])]


@pytest.mark.parametrize(
    ("text", "isolated"),
    [
        pytest.param("2-3,99\n", {2, 3}, id="some"),
        pytest.param("\n", set(), id="none"),
        pytest.param(None, set(), id="an old kernel"),
    ],
)
def test_isolated_cpus_are_told(tmp_path: Path, text: str | None, isolated: set[int]) -> None:
    changes = {} if text is None else {f"{CPU}/isolated": text}
    found = read(tmp_path, TWO_SOCKETS, **changes)
    assert (found.isolated, found.assumptions) == (isolated, ())


def test_offline_cpus_are_left_out(tmp_path: Path) -> None:
    """Files of the others may still name them, as those of a copy taken meanwhile do."""
    gone = {f"{CPU}/cpu{cpu}/{name}": None for cpu in (8, 15) for name in ("topology", "cache")}
    found = read(tmp_path, TWO_SOCKETS, **gone, **{f"{CPU}/online": "0-7,9-14"})
    assert found.offline == {8, 15}
    assert (
        lists(found.sockets) == lists(found.numa_nodes) == lists(found.last_level_caches) == ["0-3,9-11", "4-7,12-14"]
    )
    assert [core for core in found.cores if len(core) == 1] == [{0}, {7}]
    assert found.assumptions == ()


def test_memory_without_cpus(tmp_path: Path) -> None:
    node = {f"{NODE}/node7/cpulist": "", f"{NODE}/node7/meminfo": "Node 7 MemTotal: 1024 kB"}
    assert read(tmp_path, uniform(cores=2), **node).numa_nodes[-1] == NumaNode(
        number=7, cpus=frozenset(), memory_bytes=2**20
    )


@pytest.mark.parametrize(
    ("changes", "file", "others", "problem", "assumed"),
    [
        pytest.param(
            {f"{CPU}/cpu{cpu}/cache": None for cpu in range(16)},
            f"{CPU}/cpu0/cache",
            15,
            "no L3",
            "CPUs of a die share one cache",
            id="VM without caches",
        ),
        pytest.param({NODE: None}, NODE, 0, "no NUMA nodes", "all CPUs are in node 0", id="kernel without NUMA"),
        pytest.param(
            {f"{NODE}/node1": None}, f"{CPU}/cpu4", 7, "in no NUMA node", "first node of its socket", id="half of NUMA"
        ),
        pytest.param(
            {f"{NODE}/node1/cpulist": "3-7,12-15"},
            f"{NODE}/node1/cpulist",
            0,
            "another node",
            "lesser number",
            id="CPU of two nodes",
        ),
        pytest.param({f"{CPU}/online": None}, f"{CPU}/online", 0, "not there", "have a topology", id="no online"),
        pytest.param(
            {f"{CPU}/online": "\0\0"}, f"{CPU}/online", 0, "it names no CPU", "have a topology", id="empty online"
        ),
        pytest.param({f"{CPU}/present": "x"}, f"{CPU}/present", 0, "'x' is no CPU", "all there are", id="present"),
        pytest.param(
            {f"{CPU}/cpu3/topology/die_id": "west"},
            f"{CPU}/cpu3/topology/die_id",
            0,
            "'west' is no whole number",
            "first die of its socket",
            id="die",
        ),
        pytest.param(
            {f"{CPU}/cpu1/topology/core_cpus_list": "1,9,12"},
            f"{CPU}/cpu1/topology",
            0,
            "siblings on another die",
            "those are other cores",
            id="core of two sockets",
        ),
        pytest.param(
            {f"{CPU}/cpu1/topology/core_cpus_list": "1-2"},
            f"{CPU}/cpu1/topology",
            3,
            "do not agree",
            "they are one core",
            id="siblings that do not agree",
        ),
        pytest.param(
            {f"{CPU}/cpu8/cache/index2/shared_cpu_list": "8-9"},
            f"{CPU}/cpu8/cache",
            0,
            "do not agree",
            "they are one cache",
            id="caches that do not agree",
        ),
        pytest.param(
            {f"{CPU}/cpu0/cache/index2/level": ""},
            f"{CPU}/cpu0/cache/index2/level",
            0,
            "'' is no whole number",
            "left out",
            id="cache without level",
        ),
        pytest.param(
            {f"{CPU}/cpu0/cache/index2/size": "big"},
            f"{CPU}/cpu0/cache/index2/size",
            0,
            "'big' is no size",
            "size is not known",
            id="size",
        ),
        pytest.param(
            {f"{NODE}/node0/meminfo": "gone"}, f"{NODE}/node0/meminfo", 0, "MemTotal", "is not known", id="memory"
        ),
    ],
)
def test_what_is_broken_is_named_with_what_is_assumed(
    tmp_path: Path, changes: dict[str, str | None], file: str, others: int, problem: str, assumed: str
) -> None:
    (found,) = read(tmp_path, TWO_SOCKETS, **changes).assumptions
    assert (found.file, found.others) == (file, others)
    assert problem in found.problem
    assert assumed in found.assumed


@pytest.mark.parametrize("text", [None, "-1", "socket"], ids=["missing", "the kernel's unknown", "no number"])
def test_cpus_of_no_socket_are_in_the_first(tmp_path: Path, text: str | None) -> None:
    found = read(tmp_path, TWO_SOCKETS, **{f"{CPU}/cpu{cpu}/topology/physical_package_id": text for cpu in (4, 12)})
    assert lists(found.sockets) == ["0-4,8-12", "5-7,13-15"]
    assert [item.others for item in found.assumptions if "socket" in item.assumed] == [1]


@pytest.mark.parametrize(
    ("core_ids", "cores"),
    [
        pytest.param({}, TWO_SOCKETS.cores, id="by id"),
        pytest.param({"core_id": None}, tuple({cpu} for cpu in range(16)), id="none"),
        pytest.param({"core_id": "-1"}, tuple({cpu} for cpu in range(16)), id="the kernel's unknown"),
    ],
)
def test_without_sibling_lists(
    tmp_path: Path, core_ids: dict[str, str | None], cores: tuple[frozenset[int], ...]
) -> None:
    files = {"core_cpus_list": None, "thread_siblings_list": None, **core_ids}
    found = read(
        tmp_path,
        TWO_SOCKETS,
        **{f"{CPU}/cpu{cpu}/topology/{name}": text for cpu in range(16) for name, text in files.items()},
    )
    assert found.cores == cores
    (told,) = found.assumptions
    assert (told.file, told.others) == (f"{CPU}/cpu0/topology/thread_siblings_list", 15)


def test_many_cpus_in_no_numa_node_take_no_longer_one_by_one() -> None:
    """A list of online CPUs that is broken may name all that there can be."""
    count, work = 2000, Work()
    readings = Readings(
        cpus={cpu: CpuReading(package=cpu % 2) for cpu in range(count)}, nodes={3: NodeReading(cpus=frozenset([1]))}
    )
    with work.counting():
        found = assemble(readings)
    assert [len(node.cpus) for node in found.numa_nodes] == [count]
    assert work.seconds / CALL < 200 * count


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Sockets of different sizes, cores with and without SMT, CPUs in any order, nodes across sockets or within."""
    shape = draw(
        st.lists(  # sockets of dies of caches of cores: threads
            st.lists(
                st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), min_size=1, max_size=2),
                min_size=1,
                max_size=2,
            ),
            min_size=1,
            max_size=3,
        )
    )
    total = sum(threads for socket in shape for die in socket for cache in die for threads in cache)
    numbers = iter(draw(st.permutations(range(total + 2))))
    packages = iter(draw(st.lists(st.integers(0, 99), min_size=len(shape), max_size=len(shape), unique=True)))
    tree = [[[[{next(numbers) for _ in range(t)} for t in cache] for cache in die] for die in s] for s in shape]
    caches = [cache for socket in tree for die in socket for cache in die]
    parts = list(tree) if draw(st.booleans()) else [[[cache]] for cache in caches]
    nodes: dict[int, set[int]] = {0: set()}
    for part in parts:
        nodes.setdefault(draw(st.integers(0, 3)), set()).update(_cpus(part))
    with_number = list(zip(packages, tree, strict=False))
    return Machine(
        sockets=tuple(
            sorted((Socket(number=n, cpus=_cpus(socket)) for n, socket in with_number), key=lambda s: s.number)
        ),
        dies=tuple(
            sorted(
                (Die(socket=n, number=i, cpus=_cpus(die)) for n, socket in with_number for i, die in enumerate(socket)),
                key=lambda die: (die.socket, die.number),
            )
        ),
        numa_nodes=tuple(
            NumaNode(number=n, cpus=frozenset(cpus), memory_bytes=draw(st.integers(0, 99)) * 1024)
            for n, cpus in sorted(nodes.items())
        ),
        last_level_caches=tuple(
            sorted(
                (
                    LastLevelCache(
                        level=draw(st.integers(2 if len(cache) > 1 else 3, 4)),
                        size_bytes=draw(st.none() | st.integers(1, 2**15).map(lambda size: size * 1024)),
                        cpus=_cpus(cache),
                    )
                    for cache in caches
                ),
                key=lambda cache: min(cache.cpus),
            )
        ),
        cores=tuple(sorted((frozenset(core) for cache in caches for core in cache), key=min)),
        offline=frozenset(numbers),
    )


def _cpus(tree: Any) -> frozenset[int]:
    return frozenset([tree]) if isinstance(tree, int) else frozenset[int]().union(*map(_cpus, tree))


@settings(max_examples=30, deadline=None)
@given(machine=machines())
def test_any_machine_is_read_back(machine: Machine) -> None:
    with tempfile.TemporaryDirectory() as directory:
        assert read(Path(directory), machine) == machine


@settings(max_examples=30, deadline=None)
@given(machine=machines(), data=st.data())
def test_of_any_broken_sysfs_each_cpu_is_in_one_part_of_everything(machine: Machine, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = write_sysfs(Path(directory), machine)
        files = sorted(path for path in root.rglob("*") if path.is_file())
        for path in data.draw(st.lists(st.sampled_from(files), max_size=8, unique=True)):
            text = data.draw(st.none() | st.sampled_from(["", "-1", "0", "1", "0-3", "7,2", "no\0\0", "9-1", "é" * 50]))
            path.unlink() if text is None else path.write_text(text)
        try:
            found = assemble(read_sysfs(root))
        except SysfsError:
            return
    online = sorted(found.online)
    assert online
    assert not found.offline & found.online
    for parts in (lists(found.sockets), lists(found.dies), lists(found.numa_nodes), lists(found.last_level_caches)):
        assert sorted(cpu for part in parts for cpu in _parsed(part)) == online
    assert sorted(cpu for core in found.cores for cpu in core) == online
    assert all(any(core <= die.cpus for die in found.dies) for core in found.cores)


def _parsed(text: str) -> list[int]:
    edges = [part.partition("-") for part in text.split(",") if part]
    return [cpu for first, _, last in edges for cpu in range(int(first), int(last or first) + 1)]
