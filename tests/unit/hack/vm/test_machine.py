"""Running a virtual machine that does not begin, does not end, or does what it is to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hack.harness.cluster import eventually
from hack.localcluster.errors import ClusterError
from hack.vm.machine import BOOTS, run_machine

PATIENT = 60.0
SHORT = 0.2


def program(log: Path, begun: Path, *, stands_still: int, ends: bool) -> list[str]:
    """A machine that writes a line into the log each time it is started, and does not begin so many times."""
    lines = [
        "import pathlib, signal, sys",
        f"log = pathlib.Path({str(log)!r})",
        "log.open('a').write('started\\n')",
        f"len(log.read_text().splitlines()) > {stands_still} or signal.pause()",
        f"pathlib.Path({str(begun)!r}).touch()",
        f"{ends} or signal.pause()",
    ]
    return [sys.executable, "-c", "\n".join(lines)]


class Machine:
    """One that stands still so many times, on a clock on which a day passes each time."""

    def __init__(self, directory: Path, *, stands_still: int = 0, ends: bool = True) -> None:
        self.log, self.begun = directory / "log", directory / "begun"
        self.stands_still = stands_still
        self.line = program(self.log, self.begun, stands_still=stands_still, ends=ends)

    @property
    def starts(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    def time(self) -> float:
        return min(self.starts, self.stands_still) * 86400.0

    def run(self, timeout: float = PATIENT) -> None:
        run_machine(self.line, os.environ, self.begun, start=PATIENT, timeout=timeout, clock=self.time)


@pytest.mark.parametrize(
    ("stands_still", "left"),
    [
        pytest.param(0, False, id="begins at once"),
        pytest.param(1, False, id="begins the second time"),
        pytest.param(1, True, id="a boot before it had begun"),
    ],
)
def test_one_that_stands_still_is_begun_anew(tmp_path: Path, stands_still: int, left: bool) -> None:
    machine = Machine(tmp_path, stands_still=stands_still)
    if left:
        machine.begun.touch()
    machine.run()
    assert machine.starts == stands_still + 1
    assert machine.begun.exists()


def test_what_it_does_before_anybody_looks_counts_as_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, stands_still=1)
    popen = subprocess.Popen

    def late(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        before, made = machine.starts, popen(*arguments, **options)
        eventually(lambda: machine.starts, accept=lambda starts: starts > before, what="it is started")
        return made

    monkeypatch.setattr(subprocess, "Popen", late)
    machine.run()
    assert machine.starts == 2


def test_one_that_never_begins_is_told(tmp_path: Path) -> None:
    machine = Machine(tmp_path, stands_still=BOOTS)
    with pytest.raises(ClusterError, match=f"did not boot, {BOOTS} times"):
        machine.run()
    assert machine.starts == BOOTS


def test_one_that_does_not_end_is_told_and_not_begun_anew(tmp_path: Path) -> None:
    machine = Machine(tmp_path, ends=False)
    with pytest.raises(ClusterError, match="still running"):
        machine.run(timeout=SHORT)
    assert machine.starts == 1


def test_one_that_ends_before_it_has_begun_is_not_begun_anew(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.line = [sys.executable, "-c", f"open({str(machine.log)!r}, 'a').write('started\\n')"]
    machine.run()
    assert machine.starts == 1
    assert not machine.begun.exists()
