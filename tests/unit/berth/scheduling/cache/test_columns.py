"""Label columns: values as small numbers, and questions answered once per value."""

from __future__ import annotations

import pytest

from berth.scheduling.cache import columns
from berth.scheduling.cache.columns import LabelColumn


def test_column_answers_questions_about_values() -> None:
    column = LabelColumn(4)
    for slot, value in enumerate(["a", "b", None, "a"]):
        column.set(slot, value)
    assert column.ids.tolist() == [0, 1, -1, 0]
    assert column.present(4).tolist() == [True, True, False, True]
    assert column.among(["a"], 4).tolist() == [True, False, False, True]
    assert column.among(["a", "b", "z"], 4).tolist() == [True, True, False, True]
    assert column.among(["z"], 4).tolist() == [False] * 4


def test_column_renumbers_and_keeps_its_answers() -> None:
    column = LabelColumn(3)
    for gone in ("old", "older"):
        column.set(0, gone)
    for slot, value in enumerate(["a", None, "b"]):
        column.set(slot, value)
    column.renumber(3)
    assert column.values == ["a", "b"]
    assert column.ids.tolist() == [0, -1, 1]
    assert column.among(["old"], 3).tolist() == [False] * 3


def test_column_that_grows_lacks_the_key_on_new_slots() -> None:
    column = LabelColumn(1)
    column.set(0, "a")
    column.grow(3)
    column.set(2, "a")
    assert column.ids.tolist() == [0, -1, 0]


def test_values_as_integers_follow_the_values() -> None:
    column = LabelColumn(4)
    for slot, value in enumerate(["7", "seven", None, "-3"]):
        column.set(slot, value)
    numbers, known = column.integers(4)
    assert known.tolist() == [True, False, False, True]
    assert numbers[known].tolist() == [7, -3]
    column.set(1, str(2**63 - 1))
    column.set(0, str(2**63))
    column.renumber(4)
    numbers, known = column.integers(3)
    assert known.tolist() == [False, True, False]
    assert numbers[known].tolist() == [2**63 - 1]


def test_values_are_read_once_for_all_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(text: str) -> int:
        read.append(text)
        return int(text)

    monkeypatch.setattr(columns, "parse_int64", counted)
    column = LabelColumn(8)
    for slot in range(8):
        column.set(slot, str(slot))
    for _ in range(100):
        column.integers(8)
    assert len(read) == 8
