"""What time it is by the nodes' clocks: reports that have just come in say so, those that were there do not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.probe_reports import Report
from controllers.networktopology.sources.reported_time import ReportedTime
from tests.support.topologies import probe_report, probed_peer

START = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
LAST = (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - START).total_seconds()


def reports(**ages: float) -> dict[str, Report]:
    """A report of each node, whose last probe was so many seconds before the start."""
    return {
        node: msgspec.convert(probe_report(node, probed_peer("peer", 850, time=START - timedelta(seconds=age))), Report)
        for node, age in ages.items()
    }


def said(*looks: tuple[float, Mapping[str, Report]], at: float) -> float | None:
    """Seconds after the start that it is by the nodes' clocks, after reports were heard at these moments."""
    subject = ReportedTime()
    for moment, found in looks:
        subject.hear(found, moment)
    time = subject.at(at)
    return None if time is None else (time - START).total_seconds()


BEFORE = reports(n1=200, n2=100, n3=300)


@pytest.mark.parametrize(
    ("looks", "at", "expected"),
    [
        pytest.param([(0.0, {})], 0.0, None, id="no report"),
        pytest.param([(0.0, BEFORE)], 0.0, None, id="when they were written nobody knows"),
        pytest.param([(0.0, BEFORE), (9.0, BEFORE)], 9.0, None, id="nothing has come in"),
        pytest.param([(0.0, BEFORE), (9.0, reports(n1=200, n2=100, n3=300))], 9.0, None, id="read anew, not written"),
        pytest.param([(0.0, BEFORE), (9.0, {**BEFORE, **reports(n1=0)})], 9.0, None, id="one of three is no majority"),
        pytest.param([(0.0, BEFORE), (9.0, {**BEFORE, **reports(n1=0, n2=0)})], 10.0, 1.0, id="two of three are"),
        pytest.param([(0.0, BEFORE), (9.0, reports(n1=0, n2=4, n3=-7200))], 9.0, 0.0, id="one wrong node is outvoted"),
        pytest.param([(0.0, BEFORE), (9.0, reports(n1=0, n2=0, n3=0))], 908.0, 899.0, id="it goes on by itself"),
        pytest.param([(0.0, BEFORE), (9.0, reports(n1=0, n2=0, n3=0))], 910.0, None, id="until agents fall silent"),
        pytest.param([(0.0, reports(n1=9)), (1.0, {}), (9.0, reports(n1=0))], 9.0, None, id="a node that is new again"),
        pytest.param([(0.0, BEFORE), (9.0, reports(n1=-LAST, n2=-LAST))], 12.0, None, id="beyond the year 9999"),
        pytest.param([(0.0, BEFORE), (9.0, reports(n1=400, n2=400, n3=400))], 9.0, None, id="older than before"),
    ],
)
def test_the_nodes_time(looks: list[tuple[float, Mapping[str, Report]]], at: float, expected: float | None) -> None:
    assert said(*looks, at=at) == expected


@pytest.mark.parametrize("gap", [300.0, 366.0, 376.0])
def test_agents_that_write_as_seldom_as_their_rounds_allow_keep_the_time(gap: float) -> None:
    """A round a minute, give or take a tenth: what is due after 300 seconds comes with the next."""
    subject, known = ReportedTime(), []
    for look in range(0, 3600, 10):
        # Half of the agents write in the middle between two reports of the others.
        written = {"n1": look // gap * gap, "n2": (look + gap / 2) // gap * gap - gap / 2}
        subject.hear(reports(**{node: -moment for node, moment in written.items()}), float(look))
        known.append(subject.at(float(look)) is not None)
    assert all(known[known.index(True) :])


def test_times_that_cannot_be_read_say_nothing() -> None:
    bad = {"n1": msgspec.convert(probe_report("n1", {"node": "n2", "lastProbeTime": "yesterday"}), Report)}
    assert said((0.0, reports(n1=9)), (1.0, bad), (2.0, {}), at=2.0) is None


@given(
    honest=st.lists(st.floats(0, 30), min_size=1, max_size=9),
    forged=st.lists(st.floats(-1e7, 1e7), max_size=8),
)
def test_nodes_that_forge_move_it_no_further_than_the_others_say(honest: list[float], forged: list[float]) -> None:
    """As long as they are fewer."""
    forged = forged[: len(honest) - 1]
    ages = {f"n{number}": age for number, age in enumerate([*honest, *forged])}
    time = said((0.0, reports(**dict.fromkeys(ages, 2e7))), (9.0, reports(**ages)), at=9.0)
    assert time is not None
    assert -31.0 <= time <= 0.0
