"""A machine of what sysfs says about it, with the assumptions that were needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from pathlib import PurePosixPath

from agents.node.topology.machine import (
    UNKNOWN_DIE,
    Assumption,
    CoreType,
    Die,
    LastLevelCache,
    Machine,
    NumaNode,
    Socket,
)
from agents.node.topology.readings import CacheReading, CpuReading, Readings
from agents.node.topology.sysfs import CPUS, NODES


def assemble(readings: Readings) -> Machine:
    """Return the machine that fits the readings of at least one CPU best."""
    cpus = readings.cpus
    assumptions = list(readings.assumptions)
    packages = {cpu: reading.package for cpu, reading in cpus.items()}
    first = min((package for package in packages.values() if package is not None), default=0)
    sockets = _divided(cpus, lambda cpu: first if (package := packages[cpu]) is None else package)
    dies = {(socket, die): found for socket, own in sockets.items() for die, found in _dies(own, cpus).items()}
    cores = [core for own in dies.values() for core in _cores(own, cpus, assumptions)]
    return Machine(
        sockets=tuple(Socket(number=number, cpus=own) for number, own in sorted(sockets.items())),
        dies=tuple(Die(socket=at[0], number=at[1], cpus=own) for at, own in sorted(dies.items())),
        numa_nodes=tuple(_numa_nodes(readings, sockets.values(), assumptions)),
        last_level_caches=tuple(_caches(cpus, dies.values(), cores, assumptions)),
        cores=tuple(sorted(cores, key=min)),
        core_types=tuple(_core_types(readings)),
        offline=readings.offline,
        isolated=readings.isolated & cpus.keys(),
        assumptions=tuple(_together(assumptions)),
    )


def _divided(cpus: Iterable[int], part: Callable[[int], int]) -> dict[int, frozenset[int]]:
    parts: defaultdict[int, set[int]] = defaultdict(set)
    for cpu in cpus:
        parts[part(cpu)].add(cpu)
    return {number: frozenset(found) for number, found in parts.items()}


def _dies(socket: frozenset[int], cpus: Mapping[int, CpuReading]) -> dict[int, frozenset[int]]:
    stated = {cpu: cpus[cpu].die for cpu in socket}
    first = min((die for die in stated.values() if die is not None), default=UNKNOWN_DIE)
    return _divided(socket, lambda cpu: first if (die := stated[cpu]) is None else die)


def _cores(die: frozenset[int], cpus: Mapping[int, CpuReading], assumptions: list[Assumption]) -> list[frozenset[int]]:
    stated: dict[int, frozenset[int]] = {}
    for cpu in die:
        reading = cpus[cpu]
        if reading.siblings is not None:
            siblings = reading.siblings & cpus.keys()
            if not siblings <= die:
                _add(assumptions, f"{CPUS}/cpu{cpu}/topology", "siblings on another die", "those are other cores")
            stated[cpu] = siblings & die
        elif reading.core is not None:
            stated[cpu] = frozenset(other for other in die if cpus[other].core == reading.core)
    return _shared(die, stated, f"{CPUS}/cpu{{}}/topology", "one core", assumptions)


def _caches(
    cpus: Mapping[int, CpuReading],
    dies: Iterable[frozenset[int]],
    cores: Iterable[frozenset[int]],
    assumptions: list[Assumption],
) -> list[LastLevelCache]:
    last = {cpu: cache for core in cores for cpu in core if (cache := _last_level(cpus[cpu], core, cpus.keys()))}
    shared = {cpu: cache.cpus & cpus.keys() for cpu, cache in last.items()}
    found = []
    for group in _shared(last, shared, f"{CPUS}/cpu{{}}/cache", "one cache", assumptions):
        cache = last[min(group & last.keys())]
        found.append(LastLevelCache(level=cache.level, size_bytes=cache.size_bytes, cpus=group))
    known = frozenset[int]().union(*(cache.cpus for cache in found))
    # Whether they share one is not known; that they do is the assumption which keeps pods that fight apart.
    unknown = [die - known for die in dies if die - known]
    for cpu in sorted(cpu for group in unknown for cpu in group):
        problem = "no L3, and no L2 that cores share"
        _add(assumptions, f"{CPUS}/cpu{cpu}/cache", problem, "such CPUs of a die share one cache of unknown size")
    found += [LastLevelCache(level=0, size_bytes=None, cpus=group) for group in unknown]
    return sorted(found, key=lambda cache: min(cache.cpus))


def _last_level(reading: CpuReading, core: frozenset[int], online: Set[int]) -> CacheReading | None:
    """The outermost cache; not an L2 of one core alone: behind it there is one that is not listed."""
    found = max(reading.caches, key=lambda cache: cache.level, default=None)
    if found is None or (found.level < 3 and found.cpus & online <= core):
        return None
    return found


def _shared(
    cpus: Iterable[int],
    stated: Mapping[int, frozenset[int]],
    directory: str,
    what: str,
    assumptions: list[Assumption],
) -> list[frozenset[int]]:
    """Divide CPUs by what each says it shares; where they do not agree, all that name each other are together."""
    groups: dict[int, set[int]] = {}
    for cpu in cpus:
        group = groups.setdefault(cpu, {cpu})
        for other in stated.get(cpu, ()):
            joined = groups.setdefault(other, {other})
            if joined is not group:
                group |= joined
                groups.update(dict.fromkeys(joined, group))
    for cpu, group in sorted(groups.items()):
        if cpu in stated and stated[cpu] != group:
            _add(assumptions, directory.format(cpu), "CPUs do not agree about what they share", f"they are {what}")
    return [frozenset(group) for group in {id(group): group for group in groups.values()}.values()]


def _numa_nodes(readings: Readings, sockets: Iterable[frozenset[int]], assumptions: list[Assumption]) -> list[NumaNode]:
    online = frozenset(readings.cpus)
    if not readings.nodes:
        _add(assumptions, NODES, "no NUMA nodes", "all CPUs are in node 0")
        return [NumaNode(number=0, cpus=online, memory_bytes=None)]
    node_of: dict[int, int] = {}
    for number, node in sorted(readings.nodes.items()):
        for cpu in sorted(node.cpus & online):
            if node_of.setdefault(cpu, number) != number:
                file = f"{NODES}/node{number}/cpulist"
                _add(assumptions, file, "names CPUs of another node", "they are in the node with the lesser number")
    near: dict[int, int] = {}
    for socket in sockets:
        first = min((node_of[cpu] for cpu in socket & node_of.keys()), default=min(readings.nodes))
        near |= dict.fromkeys(socket - node_of.keys(), first)
    for cpu in sorted(near):
        _add(assumptions, f"{CPUS}/cpu{cpu}", "in no NUMA node", "it is in the first node of its socket")
    node_of |= near
    return [
        NumaNode(
            number=number,
            cpus=frozenset(cpu for cpu, own in node_of.items() if own == number),
            memory_bytes=node.memory_bytes,
        )
        for number, node in sorted(readings.nodes.items())
    ]


def _core_types(readings: Readings) -> list[CoreType]:
    named = {name: cpus & readings.cpus.keys() for name, cpus in readings.core_types.items()}
    capacities = {reading.capacity for reading in readings.cpus.values()}
    if not named and len(capacities) > 1 and None not in capacities:
        ordered = sorted((capacity for capacity in capacities if capacity is not None), reverse=True)
        named = {
            f"capacity {capacity}": frozenset(cpu for cpu, found in readings.cpus.items() if found.capacity == capacity)
            for capacity in ordered
        }
    found = [CoreType(name=name, cpus=cpus) for name, cpus in named.items() if cpus]
    return found if len(found) > 1 else []


def _add(assumptions: list[Assumption], file: str, problem: str, assumed: str) -> None:
    assumptions.append(Assumption(file, problem, assumed))


def _together(assumptions: Iterable[Assumption]) -> Iterable[Assumption]:
    """One of each kind, by the last part of its file: what all CPUs lack is told once."""
    kinds: defaultdict[tuple[str, str, str], list[Assumption]] = defaultdict(list)
    for item in assumptions:
        name = PurePosixPath(item.file).name.rstrip("0123456789")
        kinds[name, item.problem, item.assumed].append(item)
    return [Assumption(*items[0][:3], others=len(items) - 1) for items in kinds.values()]
