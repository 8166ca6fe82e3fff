"""The bound: its program's own tests, which cases it is asked about, and who is made for which label.

That it binds is shown against a real API server, in tests/integration/test_schedperf_bound.py.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from bench.schedperf.bound import PROGRAM, Bound, binds_all, contender
from bench.schedperf.operations import Barrier, Operation, Sleep
from hack.localcluster import golang


def test_the_program_passes_its_own_tests() -> None:
    go = golang.find(golang.required_version(PROGRAM.module / "go.mod"), report=print)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
    answer = subprocess.run(
        [str(go), "test", "./..."], cwd=PROGRAM.module, env=environment, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        ([], True),
        ([Sleep(duration="1s"), Barrier()], True),
        ([Barrier(stage_requirement="Attempted")], False),
    ],
    ids=["nothing", "pods are waited for", "refusals are waited for"],
)
def test_cases_in_which_there_is_nothing_to_do_but_bind(sequence: list[Operation], expected: bool) -> None:
    assert binds_all(sequence) is expected


@pytest.mark.parametrize(
    ("label", "scheduler"),
    [
        ("bound", "bound-scheduler"),
        ("bound-with-events", "bound-scheduler"),
        ("kube-scheduler", "default-scheduler"),
        ("berth", "berth-scheduler"),
    ],
)
def test_contenders(label: str, scheduler: str, tmp_path: Path) -> None:
    made = contender(label, cast("Any", None), tmp_path, baseline=None)
    assert made.scheduler_name == scheduler
    assert isinstance(made, Bound) is label.startswith("bound")
