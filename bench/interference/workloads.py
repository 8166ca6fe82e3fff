"""The published benchmarks, the three published workloads of 16 pods, and random mixes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

from berth.api.interference import InterferenceClass
from berth.cli.classify.reading import read_run_times
from berth.scheduling.interference.classification import classify, slowdowns
from berth.scheduling.interference.slowdown import SlowdownModel, Workload

PODS: Final = 16
RUNS: Final = Path(__file__).resolve().parents[2] / "examples" / "interference" / "spec-cpu2006.csv"

_THESIS: Final = dict.fromkeys(("omnetpp", "perlbench"), "B") | {"zeusmp": "C"}
"""Classes of the thesis that do not follow from its own run times."""

_SHARED: Final = "namd omnetpp gobmk zeusmp {} GemsFDTD2 perlbench soplex2 omnetpp {} zeusmp zeusmp {} zeusmp {} {}"
PUBLISHED: Final = {
    "low": _SHARED.format("cactusADM", "namd", "gobmk", "perlbench", "namd").split(),
    "mid": _SHARED.format("cactusADM", "namd", "libquantum2", "perlbench", "libquantum1").split(),
    "high": _SHARED.format("libquantum1", "zeusmp", "libquantum2", "soplex2", "libquantum1").split(),
}
"""Benchmarks of each workload, in the order in which their pods are created."""


def model() -> SlowdownModel:
    """Return the model with the published table of pairs."""
    times = read_run_times(RUNS.read_text(encoding="utf-8"))
    return SlowdownModel(slowdowns(times.alone, times.beside))


def benchmarks(*, thesis: bool = False) -> dict[str, Workload]:
    """Return the benchmarks by name, with the classes that follow from their run times, or those of the thesis."""
    found = {}
    for item in classify(model().table):
        letter = item.interference_class
        if letter is None:
            raise ValueError(f"{item.workload} has no class")
        if thesis:
            letter = InterferenceClass(_THESIS.get(item.workload, letter))
        found[item.workload] = Workload(item.workload, letter)
    return found


def orders(name: str, count: int, seed: int) -> list[list[str]]:
    """Return the benchmarks of a published workload, its pods created in other orders, by chance."""
    drawn = random.Random(seed)
    return [drawn.sample(PUBLISHED[name], PODS) for _ in range(count)]


def random_mixes(count: int, seed: int) -> list[list[str]]:
    """Return mixes of 16 benchmarks, each drawn from all with equal chances."""
    drawn, names = random.Random(seed), sorted(benchmarks())
    return [drawn.choices(names, k=PODS) for _ in range(count)]
