"""Processes that outlive the command that started them, and how to be sure which is which.

A pid alone is not an identity: the kernel hands it out again. A process is ours
when its start time matches the record, or when its environment carries the mark
of the instance; the second finds processes whose record was never written because
the starter was killed in between.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hack.localcluster.errors import ClusterError

MARK = "BERTH_LOCAL_CLUSTER"
"""Environment variable that every process of an instance carries: the instance's directory."""

EXEC_SECONDS = 0.5
"""For so long a process without an environment may be one whose program the kernel is starting."""

_KERNEL_THREAD = 0x00200000
"""PF_KTHREAD in the flags of /proc/PID/stat."""
_CHILD = Path(__file__).with_name("child.py")
_PROC = Path("/proc")


@dataclass(frozen=True, kw_only=True)
class ProcessRecord:
    """What is written down about a started process."""

    name: str
    """Component, as in ``kube-apiserver``."""
    pid: int
    """Process id; also its process group and session, since it was started in its own."""
    started: str
    """Opaque start stamp from `start_stamp`; equal stamps mean the same process."""
    argv: list[str]
    """Full command line."""
    log: str
    """File with its standard output and error."""

    def save(self, path: Path) -> None:
        """Write the record atomically to *path*."""
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self), indent=1))
        temporary.replace(path)

    @classmethod
    def load(cls, path: Path) -> ProcessRecord:
        """Read a record.

        Raises:
            ClusterError: the file is not a record.
        """
        try:
            return cls(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise ClusterError(f"{path} is not a process record ({error}): run hack/cluster down") from error

    @property
    def alive(self) -> bool:
        """Whether any thread of that very process still runs."""
        return start_stamp(self.pid) == self.started

    @property
    def rss(self) -> int:
        """Resident memory in bytes, 0 when the process is gone."""
        try:
            pages = int((_PROC / str(self.pid) / "statm").read_text().split()[1]) if self.alive else 0
        except OSError:
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def cpu_seconds(self) -> float:
        """User plus system time used so far in seconds, 0 when the process is gone."""
        fields = _stat_fields(self.pid) if self.alive else None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _stat_fields(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the state (field 3) on; the name before it may contain blanks."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()


def _boot_id() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def start_stamp(pid: int) -> str | None:
    """Stamp that tells this process from any other of the same pid, before or after; None for none, or an ended one."""
    if pid <= 0:
        return None
    if (_PROC / "self/stat").exists():
        fields = _stat_fields(pid)
        # The first thread may end before the others, which hold the sockets of all: it is a zombie that counts them.
        if not fields or (fields[0] in "ZX" and int(fields[17]) <= 1):
            return None
        # Start times count from boot, so the boot belongs to the identity.
        return f"{_boot_id()}/{fields[19]}"
    answer = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = answer.stdout.strip().partition(" ")
    return started.strip() if started and not state.startswith("Z") else None


def marked(mark: str) -> list[int]:
    """Pids of the running processes whose environment carries *mark* as value of `MARK`."""
    wanted = f"{MARK}={mark}".encode()
    names = [entry.name for entry in _PROC.iterdir()] if _PROC.is_dir() else []
    pids = [int(name) for name in names if name.isdigit() and int(name) != os.getpid()]
    found: list[int] = []
    deadline = time.monotonic() + EXEC_SECONDS
    while pids:
        environments = {pid: _environment(pid) for pid in pids}
        found += [pid for pid, environment in environments.items() if wanted in environment.split(b"\0")]
        pids = [pid for pid, environment in environments.items() if not environment and _in_user_space(pid)]
        if time.monotonic() > deadline:
            break
        if pids:
            time.sleep(0.005)
    return [pid for pid in found if start_stamp(pid) is not None]


def _environment(pid: int) -> bytes:
    """Environment of a process, empty while the kernel starts its program."""
    found = b"-"  # another user's, or ended while we look
    with contextlib.suppress(OSError):
        # The first thread may have ended, and then has none; the others still have it.
        for thread in (_PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                found = (thread / "environ").read_bytes()
                if found:
                    break
    return found


def _in_user_space(pid: int) -> bool:
    """Whether the process is neither a zombie nor a thread of the kernel, which have no environment."""
    fields = _stat_fields(pid)
    return fields is not None and fields[0] not in "ZX" and not int(fields[6]) & _KERNEL_THREAD


def spawn(
    name: str,
    argv: Sequence[str],
    *,
    mark: str,
    log: Path,
    record: Path,
    cwd: Path,
    die_with_parent: bool = False,
    env: Mapping[str, str] | None = None,
) -> ProcessRecord:
    """Start *argv* in a session of its own, append its output to *log* and write *record*.

    Args:
        name: component name for the record.
        argv: command line; the first element is an absolute path.
        mark: value of the `MARK` variable in its environment.
        log: file that receives standard output and error.
        record: where the `ProcessRecord` goes.
        cwd: working directory.
        die_with_parent: the kernel kills the process when the calling process ends, however it ends (Linux).
        env: further environment variables.

    Raises:
        ClusterError: the program cannot be started.
    """
    command = [sys.executable, "-I", "-S", str(_CHILD), str(os.getpid()), *argv] if die_with_parent else list(argv)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=cwd,
                env={**os.environ, **(env or {}), MARK: mark},
            )
        except OSError as error:
            raise ClusterError(f"{name}: cannot start {argv[0]}: {error.strerror}") from error
    # exec keeps pid and start time, so the stamp taken now stays right.
    result = ProcessRecord(
        name=name, pid=process.pid, started=start_stamp(process.pid) or "", argv=list(argv), log=str(log)
    )
    result.save(record)
    _CHILDREN[process.pid] = process
    return result


_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}
"""Children of this very process, kept to reap them: a zombie would hold its pid."""


def reap() -> None:
    """Collect the exit status of children that ended."""
    for pid, child in list(_CHILDREN.items()):
        if child.poll() is not None:
            del _CHILDREN[pid]


def stop(records: Iterable[ProcessRecord], *, grace: float = 0.0, timeout: float = 60.0) -> None:
    """End the processes and return when all are gone: SIGTERM and *grace* seconds if *grace* is positive, then SIGKILL.

    Raises:
        ClusterError: a process survives SIGKILL for *timeout* seconds.
    """
    stamps = {record.pid: record.started for record in records if record.alive}
    if grace > 0:
        _signal(stamps, signal.SIGTERM)
        _wait_gone(stamps, grace)
    _signal(stamps, signal.SIGKILL)
    left = _wait_gone(stamps, timeout)
    if left:
        raise ClusterError(f"processes {sorted(left)} do not end after SIGKILL: look at them with ps")


def kill_marked(mark: str) -> list[int]:
    """SIGKILL every process that carries *mark* and wait until they are gone; return their pids."""
    pids = marked(mark)
    stamps = {pid: stamp for pid in pids if (stamp := start_stamp(pid))}
    _signal(stamps, signal.SIGKILL)
    _wait_gone(stamps, 20.0)
    return pids


def _signal(stamps: Mapping[int, str], number: signal.Signals) -> None:
    for pid, stamp in stamps.items():
        if start_stamp(pid) == stamp:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _wait_gone(stamps: Mapping[int, str], timeout: float) -> set[int]:
    deadline = time.monotonic() + timeout
    left = set(stamps)
    while left:
        reap()
        left = {pid for pid in left if start_stamp(pid) == stamps[pid]}
        if time.monotonic() > deadline:
            break
        if left:
            time.sleep(0.02)
    return left
