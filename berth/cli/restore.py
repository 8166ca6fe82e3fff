"""``berth-agent restore``: undoes what the node agent pinned, by hand."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from agents.node.pinning import kubelet_state
from agents.node.pinning.cri import SOCKET, RuntimeClient
from agents.node.pinning.hierarchy import MOUNT, Hierarchy, HierarchyError, find_hierarchy
from agents.node.pinning.journal import DIRECTORY, Journal, JournalError
from agents.node.pinning.kubelet_state import DIRECTORY as KUBELET
from agents.node.pinning.restore import Leave, Restored
from agents.node.pinning.restore import restore as give_back
from agents.node.pinning.writer import CpusetWriter
from berth.api.text import counted, printable
from berth.cli.commands import fail

FAILED = 1
"""Exit status: some containers do not have their CPUs back, or their runtime does not know of it."""
_NOTHING = "nothing is pinned"


def restore(
    journal: Annotated[Path, typer.Option(metavar="DIR", help="Directory of the agent's journal.")] = DIRECTORY,
    cgroups: Annotated[Path, typer.Option(metavar="DIR", help="Where the host's cgroups are mounted.")] = MOUNT,
    runtime: Annotated[Path, typer.Option(metavar="SOCKET", help="Socket of the container runtime.")] = SOCKET,
    kubelet: Annotated[
        Path, typer.Option(metavar="DIR", help="The kubelet's --root-dir, which says whether it pins.")
    ] = KUBELET,
    force: Annotated[bool, typer.Option("--force", help="Also where the kubelet pins, over what it has set.")] = False,
) -> None:
    """Give every container that the node agent pinned the CPUs back that it had before.

    For when the agent is gone and could not do it itself. Needs root, on the node, and an agent that does not run.

    Examples:

      berth-agent restore

      berth-agent restore --runtime /run/crio/crio.sock

    Where the kubelet pins, or nothing is known of it, containers are left alone: it may have set just what they have.

    Exit status: 0 all have their CPUs back or have ended, 1 some are still in the journal, 2 the journal or the cgroups
    cannot be used.
    """
    try:
        there = journal.exists()
    except OSError as error:  # its name is too long, or only root may look
        fail(f"berth-agent restore: --journal {journal}: {str(error.strerror).lower()}; name a directory, as root")
    if not there:
        # Opening would make it, and say of a directory that was mistyped that nothing is pinned.
        if journal != DIRECTORY:
            fail(f"berth-agent restore: --journal {journal}: no such directory; name the agent's --pinning-journal")
        print(_NOTHING)
        return
    try:
        hierarchy = find_hierarchy(cgroups)
        opened = Journal.open(journal)
    except (HierarchyError, JournalError) as error:
        fail(f"berth-agent restore: {error}")
    pins = "" if force else kubelet_state.pins(kubelet)
    outcomes = asyncio.run(_restore(opened, hierarchy, runtime, Leave.ALL if pins else Leave.NONE))
    left = len(opened.entries)
    opened.close()
    for outcome in outcomes:
        print(printable(str(outcome)))
    if pins and left:
        remedy = "start their pods again, name its directory with --kubelet, or overwrite what it has set with --force"
        fail(f"berth-agent restore: {counted(left, 'container')} left alone: {pins}; {remedy}", status=FAILED)
    if not outcomes:
        print(_NOTHING)
    if any(outcome.problem for outcome in outcomes):
        raise typer.Exit(FAILED)


async def _restore(journal: Journal, hierarchy: Hierarchy, socket: Path, leave: Leave) -> list[Restored]:
    client = RuntimeClient(socket)
    try:
        writer = CpusetWriter(client, hierarchy.version)
        return await give_back(journal, writer, hierarchy, list(journal.entries.values()), leave=leave)
    finally:
        client.close()
