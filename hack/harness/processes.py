"""Controllers as real processes: ``berth run`` started, watched until ready, killed, its log kept.

    with ControllerProcess.start(["appgroup"], kubeconfig=cluster.kubeconfig, directory=tmp_path) as controller:
        controller.wait_ready()
        ...
        controller.kill()          # SIGKILL, as a crash or an eviction without grace would

A process takes a free health port and tells it in its log; :meth:`ControllerProcess.wait_ready` reads it there and
asks /readyz. Whatever happens, leaving the ``with`` block ends the process, and if pytest itself is killed the kernel
ends it (Linux, PR_SET_PDEATHSIG). A failing wait quotes the end of the log.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from hack.harness.cluster import PATIENCE, REPOSITORY, eventually
from hack.harness.forks import CHILD, Fork, current_forks

_numbers = itertools.count(1)


class ControllerProcess:
    """One ``berth run`` process."""

    def __init__(self, process: subprocess.Popen[bytes] | Fork, log: Path) -> None:
        """Wrap a process that was just started; use :meth:`start`."""
        self.process = process
        self.log = log
        """File with everything the process wrote, JSON lines."""

    @classmethod
    def start(
        cls,
        controllers: Sequence[str],
        *,
        kubeconfig: Path | str | None,
        directory: Path,
        arguments: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        checkout: Path | None = None,
        apart: bool = False,
    ) -> Self:
        """Start ``berth run CONTROLLERS``; it is not ready yet. Within :func:`hack.harness.forks.forking` it is forked
        from a process that has imported everything, unless it has an environment or a checkout of its own.

        Args:
            controllers: names as on the command line.
            kubeconfig: the cluster and identity to use; None: what the environment names, as in a pod.
            directory: where the log file goes.
            arguments: further command line arguments, such as ``--no-leader-elect``.
            environment: variables in addition to the test's own.
            apart: never fork it, as where it is to be in a cgroup that this process has entered.
            checkout: another checkout whose code and ``.venv`` are used instead of this one's.
        """
        python = sys.executable if checkout is None else str(checkout / ".venv" / "bin" / "python")
        log = directory / f"berth-{'-'.join(controllers)}-{next(_numbers)}.log"
        run = [*controllers, *(["--kubeconfig", str(kubeconfig)] if kubeconfig is not None else [])]
        run += ["--health-host", "127.0.0.1", "--health-port", "0", *arguments]
        if checkout is None and not environment and not apart and (forks := current_forks()):
            return cls(forks.start(run, log), log)
        command = [sys.executable, str(CHILD), str(os.getpid())]
        command += [python, "-c", "from berth.cli.entry import main; main()", "run", *run]
        with log.open("wb") as stream:
            process = subprocess.Popen(
                command,
                stdout=stream,
                stderr=stream,
                stdin=subprocess.DEVNULL,
                cwd=checkout or REPOSITORY,
                env={**os.environ, **(environment or {})},
            )
        return cls(process, log)

    def __enter__(self) -> Self:
        """Return the process."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process, gently if it listens."""
        self.stop(check=False)

    @property
    def pid(self) -> int:
        """Process id."""
        return self.process.pid

    @property
    def running(self) -> bool:
        """True until the process has ended."""
        return self.process.poll() is None

    def records(self, event: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the log's JSON lines so far, only those of one ``event`` if given; other lines are left out."""
        for line in self.log.read_text(errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and event in (None, record.get("event")):
                yield record

    @property
    def health_port(self) -> int | None:
        """Port of /healthz, /readyz and /metrics; None until the process has told it."""
        return next((int(record["health_port"]) for record in self.records("started")), None)

    def get(self, path: str) -> tuple[int, str]:
        """Return status and body of a page such as ``/metrics``; (0, reason) when the process does not answer."""
        port = self.health_port
        if port is None:
            return 0, "no health port in the log yet"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def metric(self, name: str, **labels: str) -> float:
        """Return the value of a sample of /metrics, 0 when it is not there; labels must match those given."""
        _, text = self.get("/metrics")
        for line in text.splitlines():
            series, _, value = line.rpartition(" ")
            if series.partition("{")[0] == name and all(
                f'{key}="{wanted}"' in series for key, wanted in labels.items()
            ):
                return float(value)
        return 0.0

    def resident_bytes(self) -> int:
        """Return the resident memory of the process."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def wait_ready(self, *, timeout: float = 180.0) -> Self:
        """Wait until /readyz says ok; AssertionError with the end of the log if it does not or the process ends."""
        self.wait_until(
            lambda: self.get("/readyz"), accept=lambda answer: answer[0] == 200, timeout=timeout, what="ready"
        )
        return self

    def wait_leader(self, *, timeout: float = 180.0) -> Self:
        """Wait until the process works, that is, holds its Lease."""
        self.wait_until(lambda: list(self.records("became leader")), accept=bool, timeout=timeout, what="leadership")
        return self

    def wait_until(
        self, probe: Callable[[], Any], *, accept: Callable[[Any], bool] = bool, timeout: float = PATIENCE, what: str
    ) -> Any:
        """Poll like :func:`hack.harness.cluster.eventually`, but stop at once when the process has ended."""

        def look() -> Any:
            if not self.running:
                raise AssertionError(f"process ended with {self.process.returncode} before {what}\n{self.tail()}")
            return probe()

        try:
            return eventually(look, accept=accept, timeout=timeout, what=what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.tail()}") from None

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.process.kill()
        self.process.wait(timeout=PATIENCE)

    def terminate(self) -> None:
        """SIGTERM, without waiting."""
        self.process.terminate()

    def stop(self, *, timeout: float = 60.0, check: bool = True) -> int:
        """SIGTERM and wait; SIGKILL after ``timeout`` seconds; return the exit code, 0 if ``check``."""
        if self.running:
            self.process.terminate()
            try:
                self.process.wait(timeout=timeout)
            except subprocess.TimeoutExpired:
                self.kill()
        code = self.process.wait()
        assert not check or code == 0, f"exit code {code}\n{self.tail()}"
        return code

    def tail(self, lines: int = 30) -> str:
        """Return the end of the log."""
        text = self.log.read_text(errors="replace").splitlines()[-lines:]
        return "\n".join([f"--- end of {self.log}", *text])
