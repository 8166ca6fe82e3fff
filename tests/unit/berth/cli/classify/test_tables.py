"""The page of classes: its box plots, and that it stays readable."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cli.classify.document import classification_document
from berth.cli.classify.reading import RunTimes
from berth.cli.classify.tables import MAX_LISTED, classification_page, plot_lines
from berth.scheduling.interference.classification import classify

NAMES = ("a", "b", "c", "d", "e", "f")


def document(table: dict[str, dict[str, float]], limit: float = 1.2) -> dict[str, Any]:
    times = RunTimes({name: [1.0] for name in table}, {})
    return classification_document(classify(table, limit), times, limit)


def test_box_plot() -> None:
    """From 1.0 to 1.5 on 51 characters: a hundredth each."""
    row = dict(zip(NAMES, (1.0, 1.1, 1.1, 1.14, 1.2, 1.5), strict=True))
    width = 51 + len("a  suffers  ")
    suffers, causes, axis = plot_lines(document({"a": row}, 1.3), width)
    plot = suffers.removeprefix("a  suffers  ")
    assert plot[0] == "├"
    assert plot[10:12] == "██"
    assert plot[12] == "│"
    assert plot[20] == "┤"
    assert plot[30] == ":"
    assert plot[50] == "o"
    assert plot[21:30].strip() == ""
    assert causes.split() == ["causes", "│", ":"], "a single value has neither box nor lines"
    assert [axis.index(text) for text in ("1.00", "1.30", "1.50")] == [12, 40, 59]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_plots_of_any_width(width: int) -> None:
    row = {name: 1 + place / 10 for place, name in enumerate(NAMES)}
    page = classification_page(document({"a": row}), plot=True, width=width)
    assert max(map(len, page.splitlines())) <= width
    assert "SLOWDOWNS" in page
    assert "SLOWDOWNS" not in classification_page(document({"a": row}), plot=False, width=width)


def test_names_that_command_terminals_move_nothing() -> None:
    first, second, *_ = plot_lines(document({"a\x1b[31m": {"b": 1.5}, "b": {"a\x1b[31m": 1.5}}), 60)
    assert first.startswith("a\\x1b[31m  suffers  ")
    assert len(first) == len(second) <= 60


def test_on_eighty_columns_no_figure_or_heading_is_broken() -> None:
    row = {f"libquantum{place}": 1 + place / 10 for place in range(6)}
    lines = classification_page(document({"libquantum1": row}), plot=False, width=80).splitlines()
    assert lines[1].split() == ["WORKLOAD", "CLASS", "SENSITIVITY", "FROM", "LIMIT", "CONTENTIOUSNESS", "FROM", "LIMIT"]
    assert lines[3].split() == ["libquantum1", "B", "1.500", "+0.300", "1.100", "-0.100"]


def test_what_is_not_known_has_an_empty_line() -> None:
    lines = plot_lines(document({"a": {"b": 1.5}, "b": {}}), 60)
    assert [line.split() for line in lines[1:3]] == [["causes", ":"], ["b", "suffers", ":"]]
    assert plot_lines(document({"a": {}}), 60) == []


def test_long_lists_are_cut() -> None:
    names = [f"w{number}" for number in range(30)]
    table = {name: dict.fromkeys(names, 1.0) | {"w1": 1.0 if name == "w1" else 1.5} for name in names}
    page = classification_page(document(table), plot=False, width=100)
    assert page.count("1.500") == MAX_LISTED + 1, "those that suffer, all as outliers, and whom they suffer from"
    assert f"and {29 - MAX_LISTED} more; -o json lists them all" in page
    found = document({name: {} for name in names})
    page = classification_page(found, plot=False, width=100)
    assert f"and {len(found['notes']) - MAX_LISTED} more; -o json lists them all" in page


VALUES = st.integers(500, 3000).map(lambda value: value / 1000)


@given(
    table=st.dictionaries(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(NAMES), VALUES), min_size=1),
    limit=st.floats(1.001, 3.0),
    width=st.integers(30, 160),
)
def test_every_figure_has_its_place(table: dict[str, dict[str, float]], limit: float, width: int) -> None:
    found = document(table, limit)
    lines = plot_lines(found, width)
    assert all(len(line) <= max(width, 32) for line in lines)
    boxes = [item[name] for item in found["workloads"] for name in ("sensitivity", "contentiousness") if name in item]
    assert sum("│" in line for line in lines) == len(boxes)
