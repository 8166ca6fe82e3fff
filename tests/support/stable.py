"""Controllers that start in no time: a process that has imported everything and forks a ``berth run`` per order.

A start of Python with all of Berth's modules costs more than a second of CPU, which a hundred restarts cannot afford.
The forks are ordinary processes that run the ordinary command; they can be killed like any other. :class:`Stable` runs
this module as a script and talks to it by lines of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from hack.harness.cluster import REPOSITORY

_CHILD = REPOSITORY / "hack" / "localcluster" / "child.py"


class Stable:
    """Forks controllers."""

    def __init__(self, *, kubeconfig: Path, directory: Path, arguments: list[str]) -> None:
        """Prepare; arguments as :meth:`ControllerProcess.start`."""
        self._directory = directory
        self._arguments = ["run", "placement", "--kubeconfig", str(kubeconfig), *arguments]
        self._arguments += ["--health-host", "127.0.0.1", "--health-port", "0"]
        self._count = 0

    def __enter__(self) -> Self:
        """Import everything."""
        command = [sys.executable, str(_CHILD), str(os.getpid()), sys.executable, "-m", "tests.support.stable"]
        # Threads of numerical libraries would not survive the fork.
        self._server = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=REPOSITORY,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        return self

    def __exit__(self, *_: object) -> None:
        """End, and every fork with it."""
        self._server.kill()
        self._server.wait(timeout=60)
        for stream in (self._server.stdin, self._server.stdout):
            if stream is not None:
                stream.close()

    def start(self) -> Path:
        """Start a controller; returns its log. Only one may run at a time."""
        self._count += 1
        log = self._directory / f"berth-{self._count}.log"
        self._ask({"start": self._arguments, "log": str(log)})
        return log

    def kill(self) -> int:
        """SIGKILL the controller; returns how it ended, as a signal number below zero."""
        return int(self._ask({"kill": True})["status"])

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(order).encode() + b"\n")
        self._server.stdin.flush()
        answer: dict[str, Any] = json.loads(self._server.stdout.readline())
        return answer


def _serve() -> None:
    """Obey orders until there are no more."""
    import controllers.placement.controller
    from berth.cli.entry import main

    assert controllers.placement.controller is not None
    child = 0
    for line in sys.stdin:
        order = json.loads(line)
        answer: dict[str, Any] = {}
        if "start" in order:
            child = os.fork()
            if child == 0:
                _become(order["start"], order["log"])
                main()
            answer = {"pid": child}
        else:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            answer = {"status": os.waitstatus_to_exitcode(status)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _become(arguments: list[str], log: str) -> None:
    """Take the output to a log file, die with the parent, and set the command line."""
    import ctypes

    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(1, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, target in ((nothing, 0), (stream, 1), (stream, 2)):
        os.dup2(number, target)
    sys.argv = ["berth", *arguments]


if __name__ == "__main__":
    _serve()
