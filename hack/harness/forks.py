"""Controllers that start in no time: a process that has imported what they need forks a ``berth run`` per order.

A start of Python with all of Berth's modules costs more than a second of a processor, which hundreds of starts in tests
cannot afford. The forks are ordinary processes that run the ordinary command; they can be killed like any other.
:class:`Forks` runs this module as a script and talks to it by lines of JSON.

    with forking():
        ControllerProcess.start(...)    # a fork, unless it needs an environment or a checkout of its own
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from hack.harness.cluster import REPOSITORY

CHILD: Final = REPOSITORY / "hack" / "localcluster" / "child.py"
"""A program that asks the kernel to end it with its parent, then becomes another."""
_PR_SET_PDEATHSIG: Final = 1


class Forks:
    """The process that forks. Its forks end with it, and it ends with this one."""

    def __init__(self) -> None:
        """Start it; modules are imported when somebody first needs them."""
        # Threads of numerical libraries would not survive a fork.
        self._server = subprocess.Popen(
            [sys.executable, str(CHILD), str(os.getpid()), sys.executable, "-m", "hack.harness.forks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=REPOSITORY,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        self._one_order = threading.Lock()

    def start(self, arguments: Sequence[str], log: Path) -> Fork:
        """Fork ``berth run ARGUMENTS`` with this process's environment; what it writes goes to *log*."""
        log.touch()  # whoever reads it may be sooner than the fork
        return Fork(self, self.ask({"run": list(arguments), "log": str(log), "environment": dict(os.environ)}))

    def ask(self, order: dict[str, Any]) -> Any:
        """Have an order carried out; its result."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with self._one_order:
            self._server.stdin.write(json.dumps(order).encode() + b"\n")
            self._server.stdin.flush()
            return json.loads(self._server.stdout.readline())

    def close(self) -> None:
        """End it, and every fork with it."""
        self._server.kill()
        self._server.communicate()


class Fork:
    """One forked process, as :class:`subprocess.Popen` has it."""

    def __init__(self, forks: Forks, pid: int) -> None:
        """Wrap a fork that was just made."""
        self._forks = forks
        self._pid = pid
        self._status: int | None = None
        self._asking = threading.Lock()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._pid

    @property
    def returncode(self) -> int | None:
        """How it ended, as last asked by :meth:`poll` or :meth:`wait`; a signal as a number below zero."""
        return self._status

    def poll(self) -> int | None:
        """Look whether it has ended, and how."""
        with self._asking:  # how a process ended is told once
            if self._status is None:
                self._status = self._forks.ask({"status": self._pid})
            return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; :class:`subprocess.TimeoutExpired` if it does not come within *timeout* seconds."""
        if self.poll() is None:
            ended = os.pidfd_open(self._pid)
            try:
                # Not select(), whose sets end at descriptor 1024.
                poll = select.poll()
                poll.register(ended, select.POLLIN)
                poll.poll(None if timeout is None else timeout * 1000)
            finally:
                os.close(ended)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired("berth run", timeout or 0.0)
        return status

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self._pid, sig)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


_open: list[Forks] = []


@contextmanager
def forking() -> Iterator[None]:
    """Have controllers forked meanwhile; to be called by a thread that lives as long, with which the forks end."""
    forks = Forks()
    _open.append(forks)
    try:
        yield
    finally:
        _open.remove(forks)
        forks.close()


def current_forks() -> Forks | None:
    """The process that forks; None outside of :func:`forking`."""
    return _open[-1] if _open else None


def _serve() -> None:
    """Obey orders until there are no more."""
    for line in sys.stdin:
        order = json.loads(line)
        answer = _status(order["status"]) if "status" in order else _fork(order)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _status(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _fork(order: dict[str, Any]) -> int:
    from berth.cli.entry import main
    from berth.runtime.component import available_components, load_component

    for name in set(order["run"]).intersection(available_components()):
        load_component(name)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _become(parent, **order)
        main()
        sys.exit(0)
    return child


def _become(parent: int, *, run: list[str], log: str, environment: dict[str, str]) -> None:
    """End with the parent, take the output to a log file, and set environment and command line."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)):
        opened = os.open(path, flags)
        os.dup2(opened, number)
        os.close(opened)
    os.dup2(1, 2)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["berth", "run", *run]


if __name__ == "__main__":
    _serve()
