"""What users had over time, in characters and as a file."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hack.harness.latency_plot import Mark, Point, text_plot, write_svg

SERIES = {
    "Berth": [Point(0, 100), Point(1, 100), Point(2, 20), Point(3, 20)],
    "kube-scheduler": [Point(0, 100), Point(1, 98), Point(2, 50), Point(3, 52)],
}
MARKS = [Mark(2.0, "the pod moves"), Mark(2.1, "users go")]


def test_a_plot() -> None:
    assert text_plot(SERIES, MARKS, width=4, height=3).splitlines() == [
        "   ms  B = Berth, k = kube-scheduler, # = both",
        "  100 |##",
        "   50 |  kk",
        "    0 |  BB",
        "      +----",
        "         12",
        "     1 the pod moves (2 s)",
        "     2 users go (2 s)",
    ]


def test_one_slow_answer_among_many_does_not_leave_the_rest_at_the_bottom() -> None:
    found = text_plot({"Berth": [*(Point(number / 10, 20) for number in range(20)), Point(0.5, 900)]}, [], width=2)
    assert [line for line in found.splitlines() if "B" in line][1:] == ["   20 |BB"]


def test_a_line_goes_on_over_columns_in_which_nobody_asked_and_not_over_an_outage() -> None:
    asked = [Point(each, 20) for each in (0.5, 2.5, 5.5, 9.5)]
    found = text_plot({"Berth": asked}, [Mark(10.0, "the end")], width=10, height=3)
    assert [line for line in found.splitlines() if "B" in line][1:] == ["   20 |BBBBBBBB B"]


points = st.lists(st.builds(Point, st.floats(0, 1e4), st.floats(0, 9e4)), min_size=1, max_size=30)


@given(points, points, st.lists(st.builds(Mark, st.floats(0, 1e4), st.just("x")), max_size=9))
def test_every_plot_has_its_size_and_shows_each_series(one: list[Point], other: list[Point], marks: list[Mark]) -> None:
    marks = sorted(marks)
    lines = text_plot({"one": one, "two": other}, marks, width=30, height=6).split("\n")
    body = [line.partition("|")[2] for line in lines[1:7]]
    assert len(lines) == 1 + 6 + 2 + len(marks)
    assert max(map(len, lines[1:9])) <= 7 + 30
    for letter in ("o", "t"):
        assert any(letter in line or "#" in line for line in body)


def test_a_file_is_an_image_with_the_marks(tmp_path: Path) -> None:
    write_svg(tmp_path / "plot.svg", SERIES, MARKS, limit=60, title="Near")
    assert ET.parse(tmp_path / "plot.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"
