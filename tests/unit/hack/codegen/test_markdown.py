"""Markdown tables."""

from __future__ import annotations

from hack.codegen.markdown import table


def test_a_cell_cannot_end_its_row_or_become_html() -> None:
    assert table(("a", "b"), [("x|y", "<z>"), ("", "v\nw")]) == [
        "| a | b |",
        "|---|---|",
        "| x\\|y | &lt;z> |",
        "|  | v w |",
    ]
