"""Lists, counts and cut texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.text import cost_text, counted, listed, one_line, printable, share_text, shortened


@pytest.mark.parametrize(
    ("count", "text"),
    [
        pytest.param(0, "", id="none"),
        pytest.param(2, "0, 1", id="two"),
        pytest.param(10, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9", id="as many as are listed"),
        pytest.param(12, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more", id="more"),
    ],
)
def test_listed(count: int, text: str) -> None:
    assert listed([str(number) for number in range(count)]) == text


def test_listed_with_another_limit_and_separator() -> None:
    assert listed(["a", "b", "c"], limit=2, separator="; ") == "a; b and 1 more"


@pytest.mark.parametrize(("number", "text"), [(0, "0 pods"), (1, "1 pod"), (2, "2 pods")])
def test_counted(number: int, text: str) -> None:
    assert counted(number, "pod") == text


@pytest.mark.parametrize(
    ("text", "limit", "result"),
    [
        pytest.param("abc", 3, "abc", id="fits exactly"),
        pytest.param("abcdefgh", 7, "abcd…", id="cut, the ellipsis takes three bytes"),
        pytest.param("äöüäöü", 9, "äöü…", id="cut between characters"),
        pytest.param("äöüäöü", 10, "äöü…", id="never inside a character"),
        pytest.param("", 5, "", id="empty"),
    ],
)
def test_shortened(text: str, limit: int, result: str) -> None:
    assert shortened(text, limit) == result


@given(text=st.text(max_size=300), limit=st.integers(min_value=3, max_value=400))
def test_shortened_fits_and_keeps_the_beginning(text: str, limit: int) -> None:
    result = shortened(text, limit)
    assert len(result.encode()) <= limit
    assert result == text or (result.endswith("…") and text.startswith(result[:-1]))


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0.00"), (0.3, "0.30"), (9.994, "9.99"), (41.86, "41.9"), (100, "100"), (1401.4, "1401")]
)
def test_costs_have_the_places_that_matter(value: float, text: str) -> None:
    assert cost_text(value) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0%"), (0.001, "0.1%"), (0.667, "67%"), (0.999, "99.9%"), (1, "100%")])
def test_a_share_is_none_or_all_only_if_it_is(value: float, text: str) -> None:
    assert share_text(value) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("zone-a — 5 µs\n\tmore", "zone-a — 5 µs\n\tmore", id="plain"),
        pytest.param("\x1b[31mred\r", "\\x1b[31mred\\r", id="escape sequence"),
        pytest.param("a\x9b2J\x00\x7f", "a\\x9b2J\\x00\\x7f", id="other controls"),
        pytest.param("a\u202eb", "a\\u202eb", id="direction of writing"),
        pytest.param("a\udcffb", "a\\udcffb", id="a byte of a file's name that is no text"),
    ],
)
def test_text_that_commands_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("node-1", "node-1", id="a name"),
        pytest.param("a\nb\tc", "a\\nb\\tc", id="another line"),
        pytest.param("a\x1b[2J", "a\\x1b[2J", id="commands of a terminal"),
        pytest.param("a" * 11, "a" * 7 + "…", id="too long"),
    ],
)
def test_a_name_stays_in_its_line(text: str, shown: str) -> None:
    assert one_line(text, 10) == shown
