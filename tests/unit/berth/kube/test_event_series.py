"""Which notes of a series are written, and how many series are remembered."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube import event_series
from berth.kube.event_series import (
    FIRST_INTERVAL,
    LONGEST_INTERVAL,
    MAX_TEXTS,
    SILENCE,
    Series,
    SeriesMemory,
)

DAY = 86_400


def begun() -> Series:
    return Series("e", last=0.0, next_write=FIRST_INTERVAL)


def test_intervals_double_up_to_half_an_hour() -> None:
    series = begun()
    writes = [float(second) for second in range(1, DAY) if series.due("e", float(second))]
    gaps = [round(later - earlier) for earlier, later in pairwise(writes)]
    assert writes[0] == FIRST_INTERVAL
    assert gaps[:7] == [60, 120, 240, 480, 960, 1800, 1800]
    assert max(gaps) == LONGEST_INTERVAL
    assert 45 <= len(writes) <= 60  # a day of a pending pod
    assert series.count == DAY


def test_after_a_silence_the_next_note_is_written_and_intervals_begin_anew() -> None:
    series = begun()
    moments = [float(second) for second in range(1, 4000) if series.due("e", float(second))]
    again = 3999.0 + LONGEST_INTERVAL
    assert series.due("e", again)
    assert not series.due("e", again + 59.0)
    assert series.due("e", again + 60.0)
    assert len(moments) == 7


def test_the_first_few_other_texts_are_written_at_once() -> None:
    series = begun()
    assert [series.due(f"e{number}", 1.0) for number in range(MAX_TEXTS + 3)] == [True] * MAX_TEXTS + [False] * 3
    assert series.count == MAX_TEXTS + 4


def test_a_text_that_comes_and_goes_is_not_news_for_ever() -> None:
    series = begun()
    assert sum(series.due("ab"[number % 2], 2.0) for number in range(1000)) == MAX_TEXTS


def test_another_text_is_an_event_that_is_not_written_yet() -> None:
    series = begun()
    series.written = True
    assert series.due("other", 1.0)
    assert (series.event_name, series.written) == ("other", False)
    series.written = True
    assert series.due("other", 1.0 + FIRST_INTERVAL)
    assert series.written


def test_what_an_event_says_is_never_older_than_the_longest_interval() -> None:
    series = begun()
    said: dict[str, float] = {}
    for minute in range(24 * 60):
        now = 60.0 * minute
        if series.due(f"0/{minute} nodes", now):
            said[series.event_name] = now
        assert now - said[series.event_name] <= LONGEST_INTERVAL


@given(steps=st.lists(st.tuples(st.floats(0.0, SILENCE - 1), st.sampled_from("abcdefgh")), max_size=200))
def test_writes_are_bounded_by_time_whatever_the_texts(steps: list[tuple[float, str]]) -> None:
    memory, now, writes = SeriesMemory(), 0.0, 0
    for seconds, text in steps:
        now += seconds
        writes += memory.due("key", text, now) is not None
    doublings = 7
    assert writes <= 1 + MAX_TEXTS + doublings + now / LONGEST_INTERVAL


def test_series_are_told_apart_and_the_first_note_is_written() -> None:
    memory = SeriesMemory()
    first, second = memory.due("one", "e", 0.0), memory.due("two", "e", 0.0)
    assert first is not None
    assert second is not None
    assert first is not second
    assert memory.due("one", "e", 1.0) is None
    assert (first.count, second.count) == (2, 1)


def test_memory_is_bounded_and_keeps_what_was_noted_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_series, "MAX_SERIES", 3)
    memory = SeriesMemory()
    for number in range(3):
        memory.due(number, "e", 0.0)
    memory.due(0, "e", 1.0)
    for number in (3, 4):
        memory.due(number, "e", 1.0)
    assert len(memory) == 3
    assert memory.due(0, "e", 1.0) is None
    assert memory.due(1, "e", 1.0) is not None


def test_series_of_events_that_have_run_out_are_forgotten() -> None:
    memory = SeriesMemory()
    for number in range(100):
        memory.due(number, "e", float(number))
    memory.due("new", "e", 99.0 + 2 * LONGEST_INTERVAL)
    assert len(memory) == 2
