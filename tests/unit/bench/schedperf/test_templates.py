"""Templates: the actions that are understood, and the names of fields as the API has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.schedperf.operations import LeftOutError
from bench.schedperf.templates import fill, objects


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        pytest.param("pod-{{ .Index }}", "pod-7", id="index"),
        pytest.param("pod-{{.Index}}-of-{{.Count}}", "pod-7-of-30", id="no spaces, two actions"),
        pytest.param("{{- .Count -}}", "30", id="trimming"),
        pytest.param("8{{ Mod .Index 4 }}", "83", id="mod"),
        pytest.param("{{ DivideInt 1000 .Count }}Mi", "33Mi", id="division of whole numbers"),
        pytest.param("{{ DivideFloat 1 4 }}", "0.25", id="division"),
        pytest.param("{{ AddInt .Index 1 2 }}", "10", id="sum of several"),
        pytest.param("{{ SubtractInt .Count .Index }}", "23", id="difference"),
        pytest.param("{{ MultiplyInt .Index 2 }}", "14", id="product"),
        pytest.param("color: blue", "color: blue", id="nothing to fill in"),
    ],
)
def test_actions_are_filled_in(text: str, filled: str) -> None:
    assert fill(text, index=7, count=30) == filled


@pytest.mark.parametrize(
    "action", ["range .Items", ".Name", "printf .Index", "Mod .Index", "DivideInt one 2", "SubtractInt 1 2 3"]
)
def test_an_action_that_is_not_understood_is_named(action: str) -> None:
    with pytest.raises(LeftOutError, match=action.split()[0]):
        fill(f"x: {{{{ {action} }}}}", index=0, count=1)


def test_objects_differ_where_the_template_says_so(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("kind: Pod\nmetadata:\n  name: pod-{{ .Index }}\n")
    assert [item["metadata"]["name"] for item in objects(path, count=3)] == ["pod-0", "pod-1", "pod-2"]


def test_objects_without_actions_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("kind: Pod\nmetadata:\n  generateName: pod-\n")
    first, second = objects(path, count=2)
    assert first is second


def test_names_of_fields_are_lowered_and_data_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(
        "metadata: {labels: {Team: Devops}}\n"
        "spec:\n"
        "  topologySpreadConstraints:\n"
        "  - NodeTaintsPolicy: Honor\n"
        "    labelSelector: {matchLabels: {Foo: Bar}}\n"
    )
    (item,) = objects(path, count=1)
    assert item["metadata"]["labels"] == {"Team": "Devops"}
    assert item["spec"]["topologySpreadConstraints"] == [
        {"nodeTaintsPolicy": "Honor", "labelSelector": {"matchLabels": {"Foo": "Bar"}}}
    ]
