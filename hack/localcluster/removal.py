"""Ending everything of an instance, whatever state it is in."""

from __future__ import annotations

import contextlib
from pathlib import Path

from hack.localcluster import processes
from hack.localcluster.errors import ClusterError
from hack.localcluster.kubelets import remains
from hack.localcluster.processes import ProcessRecord


def kill_all(home: Path) -> bool:
    """SIGKILL every process of the instance in *home*, by mark and by record, and take its real nodes off the machine.

    Returns:
        Whether there was any marked process.

    Raises:
        ClusterError: something of a real node stays; nothing below *home* may be deleted then.
    """
    survivors = processes.kill_marked(str(home))
    records: list[ProcessRecord] = []
    for path in (home / "processes").glob("*.json"):
        # A damaged record has nothing to tell; the mark above found its process.
        with contextlib.suppress(ClusterError):
            records.append(ProcessRecord.load(path))
    processes.stop(records)
    remains.remove(home)
    return bool(survivors)
