"""Gives containers back the CPUs that they had before they were pinned."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from agents.node.pinning.cpuset import Cpuset, CpusetError, read_cpuset
from agents.node.pinning.hierarchy import Version
from agents.node.pinning.journal import Entry, Journal, JournalError
from agents.node.pinning.writer import CpusetWriter, NotInEffectError, Target
from berth.api.cpulist import parse_cpulist


class Restored(NamedTuple):
    """What became of one container."""

    entry: Entry
    """the container, as the journal has it"""
    problem: str = ""
    """why it does not have its CPUs back; empty: it has, or has ended"""


def before(entry: Entry, found: Cpuset) -> tuple[frozenset[int], frozenset[int]]:
    """Return the CPUs and NUMA nodes that a container is to have back, of those that its pod's cgroup lets it have now.

    They are written out where it had stated none before: a cpuset with processes cannot be emptied, and runtimes take
    an empty list for no change.
    """
    return (
        _numbers(entry.cpus) & found.allowed_cpus or found.allowed_cpus,
        _numbers(entry.mems) & found.allowed_mems or found.allowed_mems,
    )


async def restore(journal: Journal, writer: CpusetWriter, version: Version, entries: Iterable[Entry]) -> list[Restored]:
    """Give containers back what they had; those that have it, or have ended, are struck out of the journal.

    One that cannot be restored stays in the journal and keeps nobody else from being restored.
    """
    outcomes = [Restored(entry, await _restore(entry, writer, version)) for entry in entries]
    done = [outcome.entry.container for outcome in outcomes if not outcome.problem]
    try:
        await asyncio.to_thread(journal.remove, done)
    except JournalError as error:
        # They have their CPUs; the next who restores finds nothing to do.
        return [each if each.problem else each._replace(problem=str(error)) for each in outcomes]
    return outcomes


async def _restore(entry: Entry, writer: CpusetWriter, version: Version) -> str:
    cgroup = Path(entry.cgroup)
    try:
        found = await asyncio.to_thread(read_cpuset, cgroup, version)
        cpus, mems = before(entry, found)
        if (found.effective_cpus, found.effective_mems) != (cpus, mems):
            await writer.write(Target(entry.container, cgroup, cpus, mems))
    except CpusetError as error:
        return "" if error.gone else str(error)
    except NotInEffectError as error:
        return str(error)
    return ""


def _numbers(text: str) -> frozenset[int]:
    try:
        return parse_cpulist(text)
    except ValueError:
        return frozenset()
