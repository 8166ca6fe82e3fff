"""What the kernel's own sysfs says of two sockets with two dies each, and of CPUs that are switched off."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

from agents.node.topology.assembly import assemble
from agents.node.topology.machine import Machine
from agents.node.topology.sysfs import read_sysfs

PAIRS = [{0, 1}, {2, 3}, {4, 5}, {6, 7}]


def divided(machine: Machine) -> dict[str, list[set[int]]]:
    """CPUs of each part."""
    return {
        "sockets": [set(part.cpus) for part in machine.sockets],
        "nodes": [set(part.cpus) for part in machine.numa_nodes],
        "dies": [set(part.cpus) for part in machine.dies],
        "caches": [set(part.cpus) for part in machine.last_level_caches],
        "cores": [set(part) for part in machine.cores],
    }


def test_sockets_nodes_caches_and_threads() -> None:
    machine = assemble(read_sysfs())
    halves = [{0, 1, 2, 3}, {4, 5, 6, 7}]
    parts = {"sockets": halves, "nodes": halves, "dies": PAIRS, "caches": PAIRS, "cores": PAIRS}
    assert (divided(machine), machine.offline, machine.assumptions) == (parts, frozenset(), ())
    assert {cache.level for cache in machine.last_level_caches} == {3}
    assert all(node.memory_bytes and 2**28 < node.memory_bytes <= 2**29 for node in machine.numa_nodes)


def test_cpus_that_are_off_are_in_no_part(offline: Callable[..., None]) -> None:
    offline(3, 4, 5)
    machine = assemble(read_sysfs())
    halves = [{0, 1, 2}, {6, 7}]
    pairs = [{0, 1}, {2}, {6, 7}]
    parts = {"sockets": halves, "nodes": halves, "dies": pairs, "caches": pairs, "cores": pairs}
    assert (divided(machine), machine.offline, machine.assumptions) == (parts, {3, 4, 5}, ())


def test_a_socket_that_is_off_is_none(offline: Callable[..., None]) -> None:
    offline(4, 5, 6, 7)
    machine = assemble(read_sysfs())
    assert [(socket.number, set(socket.cpus)) for socket in machine.sockets] == [(0, {0, 1, 2, 3})]
    assert [set(node.cpus) for node in machine.numa_nodes] == [{0, 1, 2, 3}, set()]


def test_the_command_shows_it() -> None:
    command = [sys.executable, "-c", "from berth.cli.agent import main; main()", "topology", "-o", "json"]
    shown = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert [socket["cpus"] for socket in shown["sockets"]] == ["0-3", "4-7"]
