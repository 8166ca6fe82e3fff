"""Label columns: values as small numbers, and questions answered once per value."""

from __future__ import annotations

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
    assert column.where(lambda value: value > "a", 4).tolist() == [False, True, False, False]


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
