"""The document of classes: pairs that the classes misjudge, and what it says about missing run times."""

from __future__ import annotations

from typing import Any

import pytest

from berth.cli.classify.document import classification_document
from berth.cli.classify.reading import RunTimes
from berth.scheduling.interference.classification import classify


def document(table: dict[str, dict[str, float]], beside: tuple[str, ...] = (), limit: float = 1.2) -> dict[str, Any]:
    times = RunTimes({name: [1.0] for name in table}, {name: {} for name in beside})
    return classification_document(classify(table, limit), times, limit)


QUIET = {name: {other: 1.0 for other in "bcdef" if other != name} for name in "bcdef"}


@pytest.mark.parametrize(
    ("table", "pairs"),
    [
        pytest.param(QUIET, [], id="nobody suffers"),
        pytest.param({"a": {"b": 1.5}, "b": {"a": 1.0}}, [], id="B beside C: the rules keep them apart"),
        pytest.param(QUIET | {"b": QUIET["b"] | {"c": 1.9}}, [("b", "c", 1.9)], id="an outlier, between two A"),
        pytest.param({"a": {"b": 1.5}, "b": {}}, [], id="classes not known"),
        pytest.param({"a": {"x": 1.5}}, [], id="a neighbour without class"),
    ],
)
def test_pairs_that_suffer_although_their_classes_fit(
    table: dict[str, dict[str, float]], pairs: list[tuple[str, str, float]]
) -> None:
    found = document(table)["misjudged"]
    assert [(item["workload"], item["beside"], item["slowdown"]) for item in found] == pairs


@pytest.mark.parametrize(
    ("table", "beside", "notes"),
    [
        pytest.param(QUIET, ("b",), [], id="all there"),
        pytest.param({}, ("x",), ["x: no run time alone"], id="never alone"),
        pytest.param(
            {"a": {}}, (), ["a: no run time beside others", "a: nobody with a run time alone"], id="always alone"
        ),
        pytest.param(
            {"a": {"a": 1.0}}, (), ["a: 1 neighbour; fewer than 4 do not tell an outlier"], id="few neighbours"
        ),
        pytest.param(
            {name: dict.fromkeys("abc", 1.0) for name in "abc"},
            (),
            [f"{name}: 3 neighbours; fewer than 4" for name in "abc"],
            id="some",
        ),
    ],
)
def test_notes(table: dict[str, dict[str, float]], beside: tuple[str, ...], notes: list[str]) -> None:
    found = document(table, beside)["notes"]
    assert len(found) == len(notes)
    assert all(text.startswith(start) for text, start in zip(found, notes, strict=True))


def test_how_far_from_the_limit() -> None:
    (item,) = document({"a": {"a": 1.25}}, limit=1.3)["workloads"]
    assert (item["interferenceClass"], item["sensitivity"]["fromLimit"]) == ("A", -0.05)
    assert (item["sensitivity"]["outliers"], item["sensitivity"]["samples"]) == ([], 1)
