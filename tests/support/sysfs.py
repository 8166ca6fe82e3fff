"""Machines and the sysfs trees that their kernels would show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agents.node.topology.machine import Die, LastLevelCache, Machine, NumaNode, Socket
from berth.api.cpulist import format_cpulist

CPU = "devices/system/cpu"
NODE = "devices/system/node"
MIB = 2**20


def uniform(
    *,
    sockets: int = 1,
    dies: int = 1,
    caches: int = 1,
    cores: int = 1,
    threads: int = 1,
    nodes: int = 1,
    cache_mib: int = 32,
) -> Machine:
    """Machine of equal parts, its CPUs numbered as Linux does on x86: first thread of all cores, then the second.

    Args:
        sockets: sockets.
        dies: dies of a socket.
        caches: L3 caches of a die.
        cores: cores of an L3.
        threads: CPUs of a core.
        nodes: NUMA nodes of a socket; 0: one node for all sockets.
        cache_mib: MiB of an L3.
    """
    of_cache, of_die, of_socket = cores, cores * caches, cores * caches * dies
    total = of_socket * sockets

    def cpus(first: int, count: int) -> frozenset[int]:
        return frozenset(thread * total + core for core in range(first, first + count) for thread in range(threads))

    of_node = of_socket // nodes if nodes else total
    return Machine(
        sockets=tuple(Socket(number=n, cpus=cpus(n * of_socket, of_socket)) for n in range(sockets)),
        dies=tuple(
            Die(socket=n // dies, number=n % dies, cpus=cpus(n * of_die, of_die)) for n in range(sockets * dies)
        ),
        numa_nodes=tuple(
            NumaNode(number=n, cpus=cpus(n * of_node, of_node), memory_bytes=2**30) for n in range(total // of_node)
        ),
        last_level_caches=tuple(
            LastLevelCache(level=3, size_bytes=cache_mib * MIB, cpus=cpus(n * of_cache, of_cache))
            for n in range(total // of_cache)
        ),
        cores=tuple(cpus(n, 1) for n in range(total)),
    )


def write_sysfs(root: Path, machine: Machine, *, changes: Mapping[str, str | None] | None = None) -> Path:
    """Write what the kernel of a machine shows below ``root``, and return that.

    Args:
        root: an empty directory.
        machine: the machine; its last-level caches are L2 or above, of several cores if L2.
        changes: files with another text than the kernel's; None: a file or directory that is not there.
    """
    files = {
        f"{CPU}/online": format_cpulist(machine.online),
        f"{CPU}/present": format_cpulist(machine.online | machine.offline),
    }
    for cpu in machine.offline:
        files[f"{CPU}/cpu{cpu}/online"] = "0"
    for socket in machine.sockets:
        for cpu in socket.cpus:
            files[f"{CPU}/cpu{cpu}/topology/physical_package_id"] = str(socket.number)
    for die in machine.dies:
        of_die = [core for core in machine.cores if core <= die.cpus]
        for number, core in enumerate(of_die):
            for cpu in core:
                topology = f"{CPU}/cpu{cpu}/topology"
                files[f"{topology}/die_id"] = str(die.number)
                files[f"{topology}/core_id"] = str(number)
                files[f"{topology}/core_cpus_list"] = files[f"{topology}/thread_siblings_list"] = format_cpulist(core)
                files |= _cache(cpu, 0, 1, "Data", "32K", core) | _cache(cpu, 1, 1, "Instruction", "32K", core)
    for cache in machine.last_level_caches:
        size = "" if cache.size_bytes is None else f"{cache.size_bytes // 1024}K"
        for cpu in cache.cpus:
            files |= _cache(cpu, 2, cache.level, "Unified", size, cache.cpus)
    for node in machine.numa_nodes:
        files[f"{NODE}/node{node.number}/cpulist"] = format_cpulist(node.cpus)
        files[f"{NODE}/node{node.number}/meminfo"] = (
            f"Node {node.number} MemTotal:  {(node.memory_bytes or 0) // 1024} kB\nNode {node.number} MemFree: 7 kB"
        )
    changed = dict(changes or {})
    gone = tuple(name for name, text in changed.items() if text is None)
    for name, text in (files | changed).items():
        if text is not None and not any(name == path or name.startswith(f"{path}/") for path in gone):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
    return root


def _cache(cpu: int, index: int, level: int, kind: str, size: str, cpus: frozenset[int]) -> dict[str, str]:
    directory = f"{CPU}/cpu{cpu}/cache/index{index}"
    files = {"level": str(level), "type": kind, "shared_cpu_list": format_cpulist(cpus)}
    return {f"{directory}/{name}": text for name, text in (files | ({"size": size} if size else {})).items()}
