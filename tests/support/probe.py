"""A component made for the tests of the process around components, and ``berth`` with it as an installed component.

``python -m tests.support.probe run probe ...`` is ``berth run probe ...``. What the component does is chosen by the
environment variable PROBE: ``wait`` (follow namespaces and never end), ``idle`` (never end, no API access), ``fail``,
``end``, ``refuse`` (its settings), ``large`` (say whether large blocks are given back), ``files`` (say how many it may
have open), ``types`` (say whether types have been worked out), ``stuck`` (ignore cancellation), ``slow`` (clean up for
a while), ``note`` (record an Event about the namespace default while it is stopped).
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import structlog
from pydantic import Field, FilePath

from berth.kube.events import Note, Reference
from berth.kube.reflector import Reflector
from berth.kube.resources import NAMESPACES
from berth.runtime import component
from berth.runtime.component import ComponentContext
from berth.runtime.settings import ComponentSettings
from hack.harness.cluster import PATIENCE
from tests.support import malloc

log = structlog.get_logger(__name__)

REPOSITORY = Path(__file__).resolve().parents[2]
CHILD = REPOSITORY / "hack" / "localcluster" / "child.py"
"""Runs a command that the kernel kills when its parent ends."""


_worked_out: list[type] = []


def _noted() -> type[int]:
    """Evaluated when msgspec works a type out that has it in an annotation."""
    _worked_out.append(int)
    return int


class Late(msgspec.Struct):
    """A type that is not read before the process runs."""

    number: _noted()  # type: ignore[valid-type]


QUIET = ("--no-leader-elect", "--health-host", "127.0.0.1", "--health-port", "0")
"""Options of a process that competes with nobody and listens where no other does."""


def unreachable(directory: Path) -> str:
    """The option for a kubeconfig of a server that is not there."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = directory / "kubeconfig"
    path.write_text(json.dumps(document))
    return f"--kubeconfig={path}"


class ProbeSettings(ComponentSettings):
    """Settings of the probe."""

    depth: int = Field(default=3, ge=1)
    """How deep, from 1 to 100 % of everything."""
    sample: FilePath | None = None
    """A file."""
    careful: bool = False
    """Whether to look twice."""


class Probe:
    """See the module."""

    Settings: ClassVar[type[ComponentSettings]] = ProbeSettings

    def __init__(self, context: ComponentContext, settings: ProbeSettings) -> None:
        """Prepare what PROBE asks for."""
        self._mode = os.environ.get("PROBE", "idle")
        self._context = context
        if self._mode == "refuse":
            raise ValueError(f"depth {settings.depth}: no such profile; name one of: default")
        self._namespaces = Reflector(context.client, NAMESPACES)
        if self._mode in ("wait", "note"):
            context.watch("namespaces", self._namespaces)

    async def run(self) -> None:
        """Do what PROBE asks for."""
        log.info("working")
        if self._mode == "fail":
            raise RuntimeError("the probe failed")
        if self._mode == "end":
            return
        if self._mode == "large":
            log.info("large blocks", given_back=malloc.given_back())
        if self._mode == "files":
            log.info("files", most=resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        if self._mode == "types":
            before, told = len(_worked_out), faulthandler.is_enabled()
            msgspec.convert({"number": 1}, Late)
            log.info("types", worked_out=before, later=len(_worked_out) - before, crashes_told=told)
        try:
            if self._mode in ("wait", "note"):
                await self._namespaces.run()
            await asyncio.Event().wait()
        finally:
            await self._stop()

    async def _stop(self) -> None:
        if self._mode == "slow":
            await asyncio.sleep(0.3)
            log.info("cleaned up")
        if self._mode == "stuck":
            log.info("cancellation ignored")
            while True:
                with suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
        if self._mode == "note":
            subject = Reference.of(self._namespaces.objects["default"].metadata, kind="Namespace")
            self._context.recorder.record(Note(subject, "Stopped", "the probe was stopped", "Stopping"))


class Running:
    """A ``berth`` process."""

    def __init__(self, popen: subprocess.Popen[str]) -> None:
        """Wrap the process."""
        self.popen = popen
        self.lines: list[dict[str, Any]] = []

    def until(self, event: str) -> dict[str, Any]:
        """Read log lines until one says `event`, and return it."""
        assert self.popen.stderr is not None
        for text in self.popen.stderr:
            self.lines.append(json.loads(text) if text.startswith("{") else {"event": text.rstrip("\n")})
            if self.lines[-1]["event"] == event:
                return self.lines[-1]
        raise AssertionError(f"the process ended without {event!r}; its log: {self.lines}")

    def stop(self, number: int = signal.SIGTERM, *, timeout: float = PATIENCE) -> int:
        """Send a signal, read the rest of the log and return the exit status."""
        self.popen.send_signal(number)
        return self.wait(timeout=timeout)

    def wait(self, *, timeout: float = PATIENCE) -> int:
        """Read the rest of the log and return the exit status."""
        _, rest = self.popen.communicate(timeout=timeout)
        self.lines += [json.loads(text) if text.startswith("{") else {"event": text} for text in rest.splitlines()]
        return self.popen.returncode

    @property
    def text(self) -> str:
        """Everything logged, for searching."""
        return "\n".join(json.dumps(line) for line in self.lines)


@contextmanager
def berth(*arguments: str, mode: str = "idle", env: dict[str, str] | None = None) -> Iterator[Running]:
    """``berth ARGUMENTS`` with the probe installed; killed at the end of the block, by the kernel if we die."""
    command = [sys.executable, "-I", "-S", str(CHILD), str(os.getpid()), sys.executable, "-m", "tests.support.probe"]
    clean = {key: value for key, value in os.environ.items() if key not in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST")}
    with subprocess.Popen(
        [*command, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env={**clean, "PROBE": mode, "COLUMNS": "200", "NO_COLOR": "1", **(env or {})},
    ) as popen:
        try:
            yield Running(popen)
        finally:
            popen.kill()


def installed(*, group: str) -> EntryPoints:
    """The installed components and the probe, under two names, and one that cannot be imported."""
    further = {"probe": "probe:Probe", "twin": "probe:Probe", "broken": "nowhere:Broken"}
    return EntryPoints(
        [
            *entry_points(group=group),
            *(EntryPoint(name, f"tests.support.{value}", group) for name, value in further.items()),
        ]
    )


def main() -> None:
    """Run ``berth`` with the probe as a further component."""
    vars(component)["entry_points"] = installed
    from berth.cli.entry import main as berth_main

    berth_main()


if __name__ == "__main__":
    main()
