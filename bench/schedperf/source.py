"""The test cases of scheduler_perf, read where the pinned Go module keeps them; this repository has no copy."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.schedperf.operations import LeftOutError
from hack.localcluster import golang, tools

MODULE = "k8s.io/kubernetes"
DIRECTORY = Path("test", "integration", "scheduler_perf")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
OUT_OF_SCOPE = {
    "Preemption": "needs eviction",
    "dra/": "needs dynamic resource allocation, which Berth does not do",
    "nodedeclaredfeatures/": "its nodes get their features from code, not from the configuration",
}
"""Beginnings of names, or of paths, of cases that are left out whatever their operations, and why."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One size of a case."""

    name: str
    """such as 500Nodes"""
    params: Mapping[str, int]
    """what the case's operations refer to as $name"""


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a performance-config.yaml."""

    name: str
    """such as SchedulingBasic"""
    directory: Path
    """where its configuration is; paths of templates count from there"""
    operations: tuple[Mapping[str, Any], ...]
    """workloadTemplate as it stands"""
    pod_template: str | None
    """path of the template for pods of operations that name none"""
    workloads: tuple[Workload, ...]
    """its sizes"""

    def reason_left_out(self, root: Path) -> str | None:
        """Why the case is not comparable whatever its operations; None for one that is."""
        place = f"{self.directory.relative_to(root).as_posix()}/"
        for start, reason in OUT_OF_SCOPE.items():
            if self.name.startswith(start) or place.startswith(start):
                return reason
        return None


def module_directory() -> Path:
    """Directory of scheduler_perf in the pinned module, which is downloaded if it is not there.

    Raises:
        ClusterError: there is no Go.
        LeftOutError: the module cannot be had, or has no scheduler_perf.
    """
    go = golang.find(golang.required_version(tools.MODULES / "go.mod"), report=print)
    answer = subprocess.run(
        [str(go), "mod", "download", "-json", f"{MODULE}@{tools.kubernetes_version()}"],
        cwd="/",
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(answer.stdout) if answer.stdout else {}
    if answer.returncode or "Dir" not in found:
        raise LeftOutError(f"{MODULE} {tools.kubernetes_version()}: {found.get('Error') or answer.stderr.strip()}")
    directory = Path(found["Dir"]) / DIRECTORY
    if not directory.is_dir():
        raise LeftOutError(f"{directory} does not exist: scheduler_perf lies elsewhere in this version")
    return directory


def read_cases(root: Path) -> list[Case]:
    """All cases below the directory of scheduler_perf, by path and in the order of their file."""
    return [case for path in sorted(root.rglob("performance-config.yaml")) for case in _cases(path)]


def _cases(path: Path) -> Iterator[Case]:
    for item in yaml.load(path.read_text(), Loader=LOADER):
        yield Case(
            name=item["name"],
            directory=path.parent,
            operations=tuple(item["workloadTemplate"]),
            pod_template=item.get("defaultPodTemplatePath"),
            workloads=tuple(Workload(w["name"], w.get("params") or {}) for w in item["workloads"]),
        )
