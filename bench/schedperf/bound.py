"""What this API server and this machine allow: a scheduler in Go that does nothing but bind (directory ``bound``)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.live.contenders import Berth, KubeScheduler
from bench.live.contenders import contender as compared
from bench.schedperf.operations import Barrier, Operation
from bench.schedperf.results import BOUND, BOUND_TOLD
from hack.localcluster import LocalCluster
from hack.localcluster.errors import ClusterError
from hack.localcluster.paths import REPOSITORY
from hack.localcluster.tools import Tool, ensure_apart

PROGRAM = Tool(
    name="schedperf-bound", package="berth.dev/schedperf-bound", module=Path(__file__).resolve().parent / "bound"
)
_CHILD = REPOSITORY / "hack" / "localcluster" / "child.py"


class Bound:
    """The program as a process of its own."""

    scheduler_name = "bound-scheduler"

    def __init__(self, cluster: LocalCluster, directory: Path, *, events: bool) -> None:
        """Remember the cluster, where its log goes, and whether it writes Events."""
        self._cluster = cluster
        self._log = directory / "bound.log"
        self._events = events
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> list[int]:
        """Start it and wait until it watches; returns its pid.

        Raises:
            ClusterError: it cannot be built, or ended before.
        """
        command = [sys.executable, str(_CHILD), str(os.getpid()), str(ensure_apart(PROGRAM))]
        command += [f"-server={self._cluster.server}", f"-ca={self._cluster.ca_file}"]
        command += [f"-scheduler={self.scheduler_name}", f"-events={str(self._events).lower()}"]
        environment = {**os.environ, "BOUND_TOKEN": self._cluster.token}
        with self._log.open("w") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
            )
        self._process = process
        if process.stdout is None or process.stdout.readline() != "ready\n":
            self.stop()
            raise ClusterError(f"{PROGRAM.name} did not begin: {self._log.read_text().strip()}")
        return [process.pid]

    def stop(self) -> None:
        """Stop it."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def contender(
    label: str, cluster: LocalCluster, directory: Path, *, baseline: Path | None
) -> Bound | Berth | KubeScheduler:
    """Make a contender by its label."""
    if label in (BOUND, BOUND_TOLD):
        return Bound(cluster, directory, events=label == BOUND_TOLD)
    return compared(label, cluster, directory, baseline=baseline)


def binds_all(sequence: Sequence[Operation]) -> bool:
    """Whether a case has nothing that a scheduler must do but bind: none waits for pods that find no node."""
    return not any(isinstance(item, Barrier) and item.stage_requirement == "Attempted" for item in sequence)
