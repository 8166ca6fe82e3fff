"""``berth-agent topology``: its table, its document, its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from agents.node.topology.assembly import assemble
from agents.node.topology.machine import Machine
from agents.node.topology.sysfs import read_sysfs
from berth.cli.agent import app
from berth.cli.cpu_topology import fields, table
from tests.support.sysfs import CPU, NODE, uniform, write_sysfs

TWO_SOCKETS = uniform(sockets=2, caches=2, cores=4, threads=2, nodes=2)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["topology", *arguments])


def page(root: Path, machine: Machine, **changes: str | None) -> list[list[str]]:
    found = assemble(read_sysfs(write_sysfs(root, machine, changes=changes)))
    return [line.split() for line in table(fields(found), width=110).splitlines()]


def test_table(tmp_path: Path) -> None:
    lines = page(tmp_path, TWO_SOCKETS)
    assert lines[0] == ["2", "sockets,", "4", "NUMA", "nodes,", "16", "cores,", "32", "CPUs"]
    assert ["SOCKET", "NUMA", "NODES", "DIES", "CACHES", "CORES", "THREADS", "CPUS"] in lines
    assert ["0", "0-1", "1", "2", "8", "2", "0-7,16-23"] in lines
    assert ["3", "1", "1Gi", "12-15,28-31"] in lines
    assert ["0", "L3", "32Mi", "0-3,16-19"] in lines
    assert not {"ASSUMED", "Offline:", "Isolated:", "TYPES"} & {line[0] for line in lines if line}


def test_what_only_some_machines_have(tmp_path: Path) -> None:
    changes = {f"{CPU}/cpu{cpu}/{name}": None for cpu in range(4) for name in ("cache", "topology/die_id")}
    changes[f"{CPU}/cpu3/topology"] = None
    there = {f"{CPU}/online": "0-2", f"{CPU}/isolated": "1-3"}
    kinds = {"devices/cpu_core/cpus": "0", "devices/cpu_atom/cpus": "1-2"}
    memory = {f"{NODE}/node0/meminfo": "?", f"{NODE}/node2/cpulist": "", f"{NODE}/node2/meminfo": "MemTotal: 8 kB"}
    lines = page(tmp_path, uniform(cores=4), **changes, **kinds, **memory, **there)
    assert ["core", "0"] in lines
    assert ["atom", "1-2"] in lines
    assert ["0", "0", "?", "0-2"] in lines, "memory of the node"
    assert ["2", "-", "8Ki", "none"] in lines, "memory without CPUs"
    assert ["0", "?", "?", "0-2"] in lines, "cache"
    assert ["Offline:", "CPUs", "3"] in lines
    assert ["Isolated:", "CPUs", "1-2"] in lines
    text = " ".join(word for line in lines[lines.index(["ASSUMED"]) :] for word in line)
    assert f"- {CPU}/cpu0/cache and 2 more: no L3, and no L2 that cores share; such CPUs of a die share" in text


def test_threads_of_unequal_cores(tmp_path: Path) -> None:
    lines = page(tmp_path, uniform(cores=2, threads=2), **{f"{CPU}/online": "0-2"})
    assert ["0", "0", "1", "1", "2", "1", "or", "2", "0-2"] in lines


def test_document(tmp_path: Path) -> None:
    write_sysfs(tmp_path, TWO_SOCKETS)
    result = run("--sysfs", str(tmp_path), "-o", "json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert [found[name] for name in ("cpus", "offline", "isolated", "coreTypes", "assumptions")] == [32, "", "", [], []]
    assert found["sockets"][1] == {
        "socket": 1,
        "numaNodes": [2, 3],
        "dies": 1,
        "lastLevelCaches": 2,
        "cores": 8,
        "threadsPerCore": {"min": 2, "max": 2},
        "cpus": "8-15,24-31",
    }
    assert found["dies"][1] == {"socket": 1, "die": 0, "cpus": "8-15,24-31"}
    assert found["numaNodes"][0] == {"node": 0, "sockets": [0], "cpus": "0-3,16-19", "memoryBytes": 2**30}
    assert found["lastLevelCaches"][3] == {"sockets": [1], "level": 3, "sizeBytes": 2**25, "cpus": "12-15,28-31"}
    assert found["cores"][15] == {"cpus": "15,31"}


def test_this_machine() -> None:
    result = run()
    assert result.exit_code == 0
    assert result.stdout.startswith(("1 socket", "2 sockets", "4 sockets", "8 sockets"))


def test_a_directory_without_cpus_ends_with_2(tmp_path: Path) -> None:
    result = run("--sysfs", str(tmp_path))
    assert result.exit_code == 2
    assert f"berth-agent topology: {tmp_path}/{CPU}: no CPUs" in result.stderr
