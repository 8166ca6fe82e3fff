"""What run times say about workloads, as a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from berth.api.interference import InterferenceClass
from berth.api.text import counted
from berth.api.workloadprofile import PLACES
from berth.cli.classify.reading import RunTimes
from berth.scheduling.interference.classification import Classification, Spread
from berth.scheduling.interference.pairing import PairQuality, pair_quality

FEW: Final = 4
"""Slowdowns below which quartiles, and so outliers, say little."""


def classification_document(found: Sequence[Classification], times: RunTimes, limit: float) -> dict[str, Any]:
    """Return the document; docs/reference/classify.md describes it."""
    classes = {item.workload: item.interference_class for item in found}
    return {
        "qosLimit": limit,
        "workloads": [_workload(item, limit) for item in found],
        "classes": {
            name.value: [workload for workload, own in classes.items() if own is name] for name in InterferenceClass
        },
        "misjudged": [
            {"workload": item.workload, "beside": neighbour, "slowdown": slowdown}
            for item in found
            for neighbour, slowdown in item.slowdowns.items()
            if slowdown >= limit and _fit(item.interference_class, classes.get(neighbour))
        ],
        "notes": list(_notes(found, times)),
    }


def _workload(item: Classification, limit: float) -> dict[str, Any]:
    entry: dict[str, Any] = {"workload": item.workload}
    if item.interference_class is not None:
        entry["interferenceClass"] = item.interference_class.value
    for name, spread in (("sensitivity", item.suffers), ("contentiousness", item.causes)):
        if spread is not None:
            entry[name] = _spread(spread, limit)
    return entry


def _spread(spread: Spread, limit: float) -> dict[str, Any]:
    return {
        "slowdown": spread.whisker,
        "fromLimit": round(spread.whisker - limit, PLACES),
        "lowerWhisker": spread.lower_whisker,
        "firstQuartile": round(spread.first_quartile, PLACES + 1),
        "median": round(spread.median, PLACES + 1),
        "thirdQuartile": round(spread.third_quartile, PLACES + 1),
        "outliers": [value for value in spread.values if not spread.lower_whisker <= value <= spread.whisker],
        "samples": len(spread.values),
    }


def _fit(one: InterferenceClass | None, other: InterferenceClass | None) -> bool:
    return one is not None and other is not None and pair_quality(one, other) is not PairQuality.WORST


def _notes(found: Iterable[Classification], times: RunTimes) -> Iterable[str]:
    for workload in times.beside:
        if workload not in times.alone:
            yield f"{workload}: no run time alone; what it suffers beside others is left out"
    for item in found:
        if item.suffers is None:
            yield f"{item.workload}: no run time beside others; its sensitivity is not known"
        if item.causes is None:
            yield f"{item.workload}: nobody with a run time alone ran beside it; its contentiousness is not known"
        counts = [len(spread.values) for spread in (item.suffers, item.causes) if spread is not None]
        if counts and min(counts) < FEW:
            yield f"{item.workload}: {counted(min(counts), 'neighbour')}; fewer than {FEW} do not tell an outlier"
