"""Only who has the key writes a mark that is believed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.latency_exchange import hash_identity
from berth.runtime.proxy.mark import mark_of, marked_user

KEY = b"k" * 32
USER = hash_identity(KEY, "somebody")


def test_a_mark_says_who_it_is_about() -> None:
    assert marked_user(KEY, mark_of(KEY, USER)) == USER


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("", id="nothing"),
        pytest.param(USER, id="no code"),
        pytest.param(f"{USER}.", id="empty code"),
        pytest.param(f"{USER}.{hash_identity(KEY, USER)}", id="a hash of the same key"),
        pytest.param(mark_of(b"other", USER), id="another key"),
        pytest.param(mark_of(KEY, USER).replace(USER, hash_identity(KEY, "x")), id="another user"),
        pytest.param(mark_of(KEY, USER) + " ", id="something behind it"),
        pytest.param(mark_of(KEY, USER).upper(), id="another case"),
        pytest.param("\udcff.\udcff", id="bytes that are no text"),
    ],
)
def test_what_no_router_has_written(value: str) -> None:
    assert marked_user(KEY, value) is None


@given(value=st.text())
def test_no_text_stops_the_reading(value: str) -> None:
    assert marked_user(KEY, value) is None


def test_wrong_ones_take_no_room() -> None:
    before = mark_of.cache_info().currsize
    for number in range(100):
        marked_user(KEY, f"{number}.x")
    assert mark_of.cache_info().currsize == before
