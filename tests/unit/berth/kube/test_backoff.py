"""How long attempts wait."""

from __future__ import annotations

import pytest

from berth.kube.backoff import PAUSE_SECONDS, backoff, wait_after
from berth.kube.errors import ApiError


@pytest.mark.parametrize(
    ("attempt", "most"),
    [
        pytest.param(0, 0.2, id="first"),
        pytest.param(1, 0.4, id="second"),
        pytest.param(3, 1.6, id="fourth"),
        pytest.param(6, 10.0, id="capped"),
        pytest.param(10**9, 10.0, id="after-years"),
    ],
)
def test_each_attempt_waits_up_to_twice_as_long_and_at_least_a_tenth_of_that(attempt: int, most: float) -> None:
    waits = [backoff(attempt) for _ in range(200)]
    assert most / 10 <= min(waits)
    assert max(waits) <= most
    assert max(waits) > most / 2, "the wait does not grow"


@pytest.mark.parametrize(
    ("error", "least", "most"),
    [
        pytest.param(
            ApiError(status=429, reason="TooManyRequests", message="later", retry_after=30.0),
            30.0,
            30.0,
            id="longer-than-ours",
        ),
        pytest.param(
            ApiError(status=429, reason="TooManyRequests", message="later", retry_after=0.001),
            0.01,
            0.1,
            id="shorter-than-ours",
        ),
        pytest.param(ApiError(status=500, reason="InternalError", message="broken"), 0.01, 0.1, id="asks-for-nothing"),
        pytest.param(ConnectionResetError(), 0.01, 0.1, id="no-answer"),
    ],
)
def test_the_first_wait_is_what_the_server_asks_for_and_no_less_than_ours(
    error: Exception, least: float, most: float
) -> None:
    assert least <= wait_after(error, 0) <= most


def test_waits_without_end_are_capped() -> None:
    assert max(wait_after(OSError(), 100) for _ in range(200)) <= PAUSE_SECONDS
