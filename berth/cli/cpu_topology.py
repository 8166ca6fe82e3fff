"""``berth-agent topology``: the CPUs of a machine and what they share, as the node agent sees them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agents.node.topology.assembly import assemble
from agents.node.topology.machine import Machine
from agents.node.topology.sysfs import SYSFS, SysfsError, read_sysfs
from berth.api.cpulist import format_cpulist
from berth.api.text import counted
from berth.cli.commands import fail
from berth.cli.output import Output, colored, print_document, terminal_width
from berth.cli.plan.tables import Page, amount

UNKNOWN = "?"
"""In a table: sysfs does not say."""


def topology(
    sysfs: Annotated[
        Path, typer.Option(metavar="DIR", help="Directory to read: a copy of another machine's /sys.")
    ] = SYSFS,
    output: Annotated[Output, typer.Option("--output", "-o", help="Form of the answer.")] = Output.table,
) -> None:
    """Show sockets, NUMA nodes, caches and cores of a machine, and which CPUs share them.

    What sysfs does not say is assumed, and the answer says which file is missing or broken and what was assumed.

    Examples:

      berth-agent topology

      berth-agent topology --sysfs ./node-2/sys -o json

    Exit status: 0 shown, 2 the directory has no CPUs.
    """
    try:
        machine = assemble(read_sysfs(sysfs))
    except SysfsError as error:
        fail(f"berth-agent topology: {error}")
    document = fields(machine)
    width = terminal_width()
    print_document(document, output, lambda: table(document, width=width, color=colored(sys.stdout)))


def fields(machine: Machine) -> dict[str, Any]:
    """The document; lists of CPUs are as the kernel writes them."""
    return {
        "cpus": len(machine.online),
        "offline": format_cpulist(machine.offline),
        "isolated": format_cpulist(machine.isolated),
        "sockets": [_socket(machine, socket.number, socket.cpus) for socket in machine.sockets],
        "dies": [{"socket": die.socket, "die": die.number, "cpus": format_cpulist(die.cpus)} for die in machine.dies],
        "numaNodes": [
            {
                "node": node.number,
                "sockets": _of_sockets(machine, node.cpus),
                "cpus": format_cpulist(node.cpus),
                **({} if node.memory_bytes is None else {"memoryBytes": node.memory_bytes}),
            }
            for node in machine.numa_nodes
        ],
        "lastLevelCaches": [
            {
                "sockets": _of_sockets(machine, cache.cpus),
                **({"level": cache.level} if cache.level else {}),
                **({} if cache.size_bytes is None else {"sizeBytes": cache.size_bytes}),
                "cpus": format_cpulist(cache.cpus),
            }
            for cache in machine.last_level_caches
        ],
        "cores": [{"cpus": format_cpulist(core)} for core in machine.cores],
        "coreTypes": [{"name": kind.name, "cpus": format_cpulist(kind.cpus)} for kind in machine.core_types],
        "assumptions": [
            {"file": item.file, "others": item.others, "problem": item.problem, "assumed": item.assumed}
            for item in machine.assumptions
        ],
    }


def _socket(machine: Machine, number: int, cpus: frozenset[int]) -> dict[str, Any]:
    cores = [core for core in machine.cores if core & cpus]
    threads = {len(core) for core in cores}
    return {
        "socket": number,
        "numaNodes": [node.number for node in machine.numa_nodes if node.cpus & cpus],
        "dies": sum(die.socket == number for die in machine.dies),
        "lastLevelCaches": sum(bool(cache.cpus & cpus) for cache in machine.last_level_caches),
        "cores": len(cores),
        "threadsPerCore": {"min": min(threads), "max": max(threads)},
        "cpus": format_cpulist(cpus),
    }


def _of_sockets(machine: Machine, cpus: frozenset[int]) -> list[int]:
    return [socket.number for socket in machine.sockets if socket.cpus & cpus]


def table(document: Mapping[str, Any], *, width: int | None, color: bool = False) -> str:
    """The document for people."""
    page = Page(width=width, color=color)
    sockets = document["sockets"]
    parts = [
        counted(len(sockets), "socket"),
        counted(len(document["numaNodes"]), "NUMA node"),
        counted(len(document["cores"]), "core"),
        counted(document["cpus"], "CPU"),
    ]
    page.heading(", ".join(parts))
    page.table(
        ("SOCKET", "NUMA NODES", "DIES", "CACHES", "CORES", "THREADS", "CPUS"),
        map(_socket_row, sockets),
        fold=("CPUS",),
    )
    page.heading("NUMA NODES")
    page.table(("NODE", "SOCKETS", "MEMORY", "CPUS"), map(_node_row, document["numaNodes"]), fold=("CPUS",))
    page.heading("LAST-LEVEL CACHES")
    page.table(("SOCKETS", "CACHE", "SIZE", "CPUS"), map(_cache_row, document["lastLevelCaches"]), fold=("CPUS",))
    if document["coreTypes"]:
        page.heading("TYPES OF CORES")
        page.table(("TYPE", "CPUS"), [(kind["name"], kind["cpus"]) for kind in document["coreTypes"]], fold=("CPUS",))
    if document["offline"]:
        page.heading(f"Offline: CPUs {document['offline']}")
    if document["isolated"]:
        page.heading(f"Isolated: CPUs {document['isolated']}")
    if document["assumptions"]:
        page.heading("ASSUMED")
        for item in document["assumptions"]:
            others = f" and {item['others']} more" if item["others"] else ""
            page.item(f"{item['file']}{others}: {item['problem']}; {item['assumed']}")
    return page.text()


def _socket_row(socket: Mapping[str, Any]) -> tuple[str, ...]:
    least, most = socket["threadsPerCore"]["min"], socket["threadsPerCore"]["max"]
    threads = str(most) if least == most else f"{least} or {most}"
    counts = (str(socket[name]) for name in ("dies", "lastLevelCaches", "cores"))
    return (str(socket["socket"]), _numbers(socket["numaNodes"]), *counts, threads, socket["cpus"])


def _node_row(node: Mapping[str, Any]) -> tuple[str, ...]:
    memory = amount("memory", node["memoryBytes"]) if "memoryBytes" in node else UNKNOWN
    return (str(node["node"]), _numbers(node["sockets"]), memory, node["cpus"] or "none")


def _cache_row(cache: Mapping[str, Any]) -> tuple[str, ...]:
    level = f"L{cache['level']}" if "level" in cache else UNKNOWN
    size = amount("memory", cache["sizeBytes"]) if "sizeBytes" in cache else UNKNOWN
    return (_numbers(cache["sockets"]), level, size, cache["cpus"])


def _numbers(numbers: Iterable[int]) -> str:
    return format_cpulist(numbers) or "-"
