"""The sockets of a machine as a SocketStatus shows them. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from agents.node.pinning.division import Division, divided_caches
from agents.node.topology.machine import Machine, Socket
from berth.api.socketstatus import MAX_CACHES, MAX_CORES, MAX_SOCKETS, CacheReport, SocketReport

_TELLS_SOCKETS = "physical_package_id"


def unknown(machine: Machine) -> str:
    """Return why the sockets of a machine cannot be told; empty if they can."""
    for item in machine.assumptions:
        if item.file.endswith(_TELLS_SOCKETS):
            return f"{item.file}: {item.problem}; nothing is pinned, as nobody knows which CPUs are on one socket"
    return ""


def reports(machine: Machine, division: Division = Division.CORES) -> tuple[SocketReport, ...]:
    """Return the sockets of a machine; `division` is how far they are divided among their pods."""
    return tuple(_report(machine, socket, division) for socket in machine.sockets)


def socket_of(machine: Machine, cpus: frozenset[int]) -> int | None:
    """Return the socket that all these CPUs are on; None if they are on several, or there are none."""
    return next((socket.number for socket in machine.sockets if cpus and cpus <= socket.cpus), None)


def _report(machine: Machine, socket: Socket, division: Division) -> SocketReport:
    divided = divided_caches(machine, socket) if division is not Division.SOCKET else ()
    nodes = [node for node in machine.numa_nodes if node.cpus & socket.cpus]
    sizes = [node.memory_bytes if node.cpus <= socket.cpus else None for node in nodes]
    cores = sum(core <= socket.cpus for core in machine.cores)
    return SocketReport(
        socket=socket.number,
        numa_nodes=tuple(node.number for node in nodes)[:MAX_SOCKETS],
        cpus=socket.cpus,
        cpu_count=len(socket.cpus),
        memory_bytes=_total(sizes),
        caches=tuple(
            CacheReport(level=cache.level or None, size_bytes=cache.size_bytes, cpus=cache.cpus & socket.cpus)
            for cache in machine.last_level_caches
            if cache.cpus & socket.cpus
        )[:MAX_CACHES],
        pinned_caches=len(divided) or None,
        core_count=cores if cores < len(socket.cpus) else None,
        smt_siblings=tuple(core for core in machine.cores if len(core) > 1 and core <= socket.cpus)[:MAX_CORES],
    )


def _total(sizes: Iterable[int | None]) -> int | None:
    total = 0
    for size in sizes:
        if size is None:
            return None
        total += size
    return total or None
