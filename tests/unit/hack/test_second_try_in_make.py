"""How ``make test`` ends."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
PYTHON = """#!/bin/sh
case "$*" in
  *tests/e2e*) exec sleep 300 ;;
  *tests/{ended}*) exit {status} ;;
esac
"""


def _heeds_interrupts() -> None:
    """What is begun in the background by a shell, or by nohup, ignores Ctrl-C, and so does all that it begins."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _make_test(venv: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run ``make test`` with this script for the python of its environment."""
    python = venv / "bin" / "python"
    python.parent.mkdir(exist_ok=True)
    python.write_text(text)
    python.chmod(0o755)
    command = ["make", f"VENV={venv}", "-o", "lint", "-o", "tools", "test", "TESTS="]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=_heeds_interrupts,
    )


@pytest.mark.parametrize(
    ("ended", "status"),
    [pytest.param("unit", 2, id="pytest"), pytest.param("integration", 130, id="what runs pytest, perhaps twice")],
)
def test_who_ends_the_tests_ends_those_that_go_on_beside_them(ended: str, status: int, tmp_path: Path) -> None:
    """What is run in the foreground hears of Ctrl-C, and the shell by its status alone."""
    run = _make_test(tmp_path, PYTHON.format(ended=ended, status=status))
    assert run.returncode != 0
    assert (tmp_path / "e2e.log").exists()


FAILS = """#!/bin/sh
case "$*" in
  *tests/e2e*) echo 'end to end passed' ;;
  *tests/unit*) echo 'failed: tests/unit/test_it.py::test_one' >> "$3"; exit 1 ;;
esac
"""


def test_what_failed_is_shown_after_everything_else(tmp_path: Path) -> None:
    """The log of the tests from end to end, which are shown last, would hide it."""
    run = _make_test(tmp_path, FAILS)
    assert run.returncode != 0
    assert run.stdout.splitlines()[-2:] == ["end to end passed", "failed: tests/unit/test_it.py::test_one"]
    assert _make_test(tmp_path, FAILS).stdout.count("failed: ") == 1, "what was told the last time was shown again"


CRIO = """#!/bin/sh
case "$*" in
  *hack.crio*)
    timeout 10 sh -c 'until [ -e "$0" ]; do sleep 0.05; done' "${{0%/*}}/began" || exit 3
    echo 'error: no CRI-O'; {built} ;;
  *tests/e2e*) {end_to_end} ;;
  *tests/unit*) touch "${{0%/*}}/began" ;;
  *tests/integration*) test -e "${{0%/*}}/built" && echo 'with CRI-O' || echo 'without' ;;
esac
"""
"""One that is built only once unit tests have begun."""


def test_crio_is_built_beside_unit_tests_and_awaited_by_the_others(tmp_path: Path) -> None:
    run = _make_test(tmp_path, CRIO.format(built='touch "${0%/*}/built"', end_to_end="true"))
    assert (run.returncode, run.stdout.splitlines()[-1]) == (0, "with CRI-O")


def test_without_crio_the_tests_end_and_it_is_told_last_why(tmp_path: Path) -> None:
    run = _make_test(tmp_path, CRIO.format(built="exit 1", end_to_end="echo begun; exec sleep 300"))
    assert run.returncode != 0
    assert run.stdout.splitlines()[-1] == "error: no CRI-O"
    assert "without" not in run.stdout, "tests that need it were run"
