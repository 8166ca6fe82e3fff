"""Gives containers back the CPUs that they had before they were pinned."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from enum import Enum, auto
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from agents.node.pinning.cpuset import Cpuset, CpusetError, read_cpuset
from agents.node.pinning.hierarchy import Hierarchy
from agents.node.pinning.journal import Entry, Journal, JournalError
from agents.node.pinning.writer import CpusetWriter, NotInEffectError, Target
from berth.api.cpulist import format_cpulist, parse_cpulist

_ENDED: Final = "has ended, and stays in the journal"


class Leave(Enum):
    """Which of the containers that run are left as they are, and stay in the journal."""

    NONE = auto()
    """none"""
    CHANGED = auto()
    """those that somebody else has changed since: that is his"""
    ALL = auto()
    """all: the kubelet manages them, and may itself have set what was written last"""


class Restored(NamedTuple):
    """What became of one container."""

    entry: Entry
    """the container, as the journal has it"""
    problem: str = ""
    """why it is still in the journal; empty: it has its CPUs back, or has ended"""
    ended: bool = False
    """whether it has ended: nothing has its ID any more"""

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.entry}: {self.problem or ('has ended' if self.ended else 'restored')}"


def before(entry: Entry, found: Cpuset) -> tuple[frozenset[int], frozenset[int]]:
    """Return the CPUs and NUMA nodes that a container is to have back, of those that its pod's cgroup lets it have now.

    They are written out where it had stated none before: a cpuset with processes cannot be emptied, and runtimes take
    an empty list for no change.
    """
    return (
        numbers(entry.cpus) & found.allowed_cpus or found.allowed_cpus,
        numbers(entry.mems) & found.allowed_mems or found.allowed_mems,
    )


def unchanged(entry: Entry, found: Cpuset) -> bool:
    """Whether a container has what it was given last: nobody else has changed it since."""
    return found.effective_cpus == numbers(entry.written) & found.allowed_cpus


def numbers(text: str) -> frozenset[int]:
    """Return the CPUs or NUMA nodes of a list in the journal; none if somebody has edited it into nonsense."""
    try:
        return parse_cpulist(text)
    except ValueError:
        return frozenset()


async def restore(
    journal: Journal,
    writer: CpusetWriter,
    hierarchy: Hierarchy,
    entries: Iterable[Entry],
    *,
    leave: Leave = Leave.NONE,
    asking: Callable[[], bool] = lambda: True,
) -> list[Restored]:
    """Give containers back what they had; each is struck out of the journal as soon as it has it, or has ended.

    One that cannot be restored stays in the journal and keeps nobody else from being restored. So does one whose
    runtime does not take what it had: runtimes keep what they were told to pin, and apply it with later updates.

    Args:
        journal: open.
        writer: sets cpusets.
        hierarchy: where cgroups are.
        entries: what to restore.
        leave: which are left out; they stay in the journal.
        asking: whether there is still time to ask the runtime; without it cgroups are written, which is quick.
    """
    chosen = list(entries)
    places = await asyncio.to_thread(_places, hierarchy, chosen)
    ended = [entry for entry in chosen if entry.container not in places]
    problem = ""
    try:
        # Together, since each time the whole journal is written.
        await asyncio.to_thread(journal.remove, [entry.container for entry in ended])
    except JournalError as error:
        problem = f"{_ENDED}: {error}"
    outcomes = []
    for entry in chosen:
        place = places.get(entry.container)
        if place is None:
            outcomes.append(Restored(entry, problem, ended=True))
            continue
        if leave is Leave.ALL:
            continue
        found = await _restore(journal, writer, hierarchy, entry, place, leave=leave, ask=asking())
        if found is not None:
            outcomes.append(found)
    return outcomes


def _places(hierarchy: Hierarchy, entries: Iterable[Entry]) -> dict[str, Path]:
    """Cgroups of those that have one; all that are not where they were are searched for at once."""
    stated = {entry.container: hierarchy.stated(entry.cgroup) for entry in entries}
    found = {container: cgroup for container, cgroup in stated.items() if cgroup is not None}
    return found | hierarchy.search_all(stated.keys() - found.keys())


async def _restore(
    journal: Journal,
    writer: CpusetWriter,
    hierarchy: Hierarchy,
    entry: Entry,
    cgroup: Path,
    *,
    leave: Leave,
    ask: bool,
) -> Restored | None:
    try:
        found = await asyncio.to_thread(read_cpuset, cgroup, hierarchy.version)
        if leave is Leave.CHANGED and not unchanged(entry, found):
            return None
        return await _give_back(journal, writer, entry, cgroup, found, ask=ask)
    except CpusetError as error:
        if error.gone and await asyncio.to_thread(hierarchy.search, entry.container) is None:
            return await _ended(journal, entry)
        return Restored(entry, str(error))
    except NotInEffectError as error:
        return Restored(entry, str(error))
    except JournalError as error:
        # The journal is written last: the next who restores finds nothing to do.
        return Restored(entry, f"has its CPUs back, and stays in the journal: {error}")


async def _ended(journal: Journal, entry: Entry) -> Restored:
    try:
        await asyncio.to_thread(journal.remove, [entry.container])
    except JournalError as error:
        return Restored(entry, f"{_ENDED}: {error}")
    return Restored(entry, ended=True)


async def _give_back(
    journal: Journal, writer: CpusetWriter, entry: Entry, cgroup: Path, found: Cpuset, *, ask: bool
) -> Restored:
    cpus, mems = before(entry, found)
    written = await writer.write(Target(entry.container, cgroup, cpus, mems), ask=ask)
    given = msgspec.structs.replace(entry, written=format_cpulist(cpus))
    if written.unsettled:
        await asyncio.to_thread(journal.add, [given])
        text = "has its CPUs back, and stays in the journal until the runtime, which may set again those that were "
        return Restored(entry, f"{text}pinned, takes them: {written.unsettled}")
    if cpus == numbers(entry.cpus):
        await asyncio.to_thread(journal.remove, [entry.container])
    else:
        await asyncio.to_thread(journal.mark, given)
    return Restored(entry)
