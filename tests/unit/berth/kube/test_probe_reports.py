"""When ProbeReports that are of one moment were read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from berth.kube.probe_reports import FRESH_AGE, Report, moment_of
from tests.support.topologies import probe_report, probed_peer

THEN = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = 3600.0


def report(number: int, *seconds: float) -> Report:
    """A report of a node whose peers it probed so long after THEN."""
    peers = [probed_peer(f"p{item}", 1000, time=THEN + timedelta(seconds=after)) for item, after in enumerate(seconds)]
    return msgspec.convert(probe_report(f"n{number}", *peers), Report)


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        pytest.param([[5]], 5, id="one"),
        pytest.param([[0, 7, 3]], 7, id="its latest"),
        pytest.param([[0], [200], [300]], 300, id="agents write in turns"),
        pytest.param([[0], [0], [FRESH_AGE]], FRESH_AGE, id="by the longest of turns"),
        pytest.param([[0], [0], [FRESH_AGE + 1]], 0, id="one clock is ahead"),
        pytest.param([[-HOUR], [0], [10], [HOUR], [20]], 20, id="one behind and one ahead"),
        pytest.param([[-HOUR], [-HOUR], [0], [10], [20]], 20, id="two agents have stopped"),
        pytest.param([[-HOUR], [0]], 0, id="of two the later counts"),
        pytest.param([[], [10]], 10, id="one says no time"),
    ],
)
def test_moment_of(reports: list[list[float]], expected: float) -> None:
    made = [report(number, *seconds) for number, seconds in enumerate(reports)]
    assert moment_of(made) == moment_of(made[::-1]) == THEN + timedelta(seconds=expected)


@pytest.mark.parametrize("made", [pytest.param([], id="no reports"), pytest.param([report(1)], id="no peers")])
def test_without_a_time_there_is_no_moment(made: list[Report]) -> None:
    assert moment_of(made) is None


def test_the_last_of_all_times_is_one() -> None:
    last = msgspec.convert({"metadata": {"name": "n"}, "status": {"time": "9999-12-31T23:59:59Z"}}, Report)
    assert moment_of([last]) == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert moment_of([last, report(1, 0), report(2, 0)]) == THEN
