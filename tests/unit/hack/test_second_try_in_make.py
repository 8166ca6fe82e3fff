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


@pytest.mark.parametrize(
    ("ended", "status"),
    [pytest.param("unit", 2, id="pytest"), pytest.param("integration", 130, id="what runs pytest, perhaps twice")],
)
def test_who_ends_the_tests_ends_those_that_go_on_beside_them(ended: str, status: int, tmp_path: Path) -> None:
    """What is run in the foreground hears of Ctrl-C, and the shell by its status alone."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(PYTHON.format(ended=ended, status=status))
    python.chmod(0o755)
    command = ["make", f"VENV={tmp_path}", "-o", "lint", "-o", "tools", "test", "TESTS="]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    run = subprocess.run(
        command,
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=_heeds_interrupts,
    )
    assert run.returncode != 0
    assert (tmp_path / "e2e.log").exists()
