"""What ProbeReports say: what counts, and what is left out because it cannot be true."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.probe_reports import Report
from controllers.networktopology.sources.base import (
    UNREACHABLE,
    Measurement,
    Percentile,
    Reading,
    SourceState,
    left_out,
)
from controllers.networktopology.sources.probe_measurements import read_reports
from tests.support.topologies import places, probe_report, probed_peer

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
PLACES = places(n1="r/A", n2="r/B", n3="s/C")


def report(node: str, *peers: dict[str, Any]) -> Report:
    return msgspec.convert(probe_report(node, *peers), Report)


def peer(node: str, microseconds: int | None = 850, *, age: float = 30.0, **fields: Any) -> dict[str, Any]:
    return {**probed_peer(node, microseconds, time=NOW - timedelta(seconds=age)), **fields}


def read(*reports: Report, percentile: Percentile = "p90") -> Reading:
    return read_reports(reports, PLACES, percentile=percentile, now=NOW)


def test_measurements_are_in_order_and_latencies_of_both_levels_are_worked_out() -> None:
    found = read(report("n2", peer("n1", 900, age=60)), report("n1", peer("n3", 20_000), peer("n2", 700)))
    assert found.measurements == (
        Measurement("n1", "n2", 700, 30.0),
        Measurement("n1", "n3", 20_000, 30.0),
        Measurement("n2", "n1", 900, 60.0),
    )
    assert (found.state, found.name, found.continuous) == (SourceState.READ, "ProbeReports of 2 nodes", True)
    assert found.time == NOW - timedelta(seconds=30)
    assert found.latencies is not None
    regions, zones, _ = found.latencies
    assert regions.known == {("r", "s"): 20_000, ("s", "r"): 20_000}
    assert zones.known["A", "C"] == 20_000
    assert 700 <= zones.known["A", "B"] == zones.known["B", "A"] <= 900


def test_round_trips_inside_a_zone_are_those_between_its_segments() -> None:
    where = places(n1="r/A/s1", n2="r/A/s2", n3="r/A/s3", n4="r/B/s4", n5="r/A")
    reports = [
        report("n1", peer("n2", 300), peer("n3", None), peer("n4", 20_000), peer("n5", 100)),
        report("n2", peer("n1", 500)),
        report("n3", peer("n1", None)),
    ]
    found = read_reports(reports, where, percentile="p90", now=NOW).latencies
    assert found is not None
    assert found.segments.known == {("s1", "s2"): 300, ("s2", "s1"): 300}
    assert found.segments.cut == {("s1", "s3"), ("s3", "s1")}
    assert found.zones.known == {("A", "B"): 20_000, ("B", "A"): 20_000}


@pytest.mark.parametrize(
    ("others", "known", "cut"),
    [
        pytest.param([], {}, set(), id="alone"),
        pytest.param(
            [report("n4", peer("n1", 300))], {("s1", "s2"): 300, ("s2", "s1"): 300}, set(), id="another knows better"
        ),
        pytest.param([report("n4", peer("n1", None))], {}, {("s1", "s2"), ("s2", "s1")}, id="two agree"),
        pytest.param([report("n4", peer("n1", 300, age=600))], {}, set(), id="the other is dead"),
        pytest.param(
            [report("n4", peer("n1", 300, age=700)), report("n3", peer("n1", 400, age=700))],
            {},
            set(),
            id="the others are dead",
        ),
        pytest.param(
            [report("n4", peer("n1", 300, age=400)), report("n3", peer("n1", 400, age=400))],
            {("s1", "s2"): 400, ("s2", "s1"): 400},
            set(),
            id="the others together outweigh it",
        ),
    ],
)
def test_one_node_alone_cuts_no_two_segments_and_makes_none_dear(
    others: list[Report], known: dict[tuple[str, str], int], cut: set[tuple[str, str]]
) -> None:
    """Agents see to three that measure a pair of zones; of two racks it may be one, whatever it says."""
    where = places(n1="r/A/s1", n2="r/A/s1", n3="r/A/s2", n4="r/A/s2")
    liar = report("n1", peer("n3", None), peer("n4", None))
    found = read_reports([liar, *others], where, percentile="p90", now=NOW).latencies
    assert found is not None
    assert (found.segments.known, found.segments.cut) == (known, cut)


@pytest.mark.parametrize(("percentile", "microseconds"), [("p50", 500), ("p90", 850), ("p99", 1900)])
def test_the_percentile_that_is_asked_for_counts(percentile: Percentile, microseconds: int) -> None:
    found = read(report("n1", peer("n2", p50Microseconds=500, p99Microseconds=1900)), percentile=percentile)
    assert found.measurements == (Measurement("n1", "n2", microseconds, 30.0),)


@pytest.mark.parametrize(
    ("bad", "malformed", "unknown", "stale"),
    [
        pytest.param(peer("n3", lastProbeTime="yesterday"), 1, 0, 0, id="no time"),
        pytest.param(peer("n3", lastProbeTime="2026-11-22T11:59:00"), 1, 0, 0, id="a time of no zone"),
        pytest.param(peer("n3", -5), 1, 0, 0, id="negative"),
        pytest.param(peer("n3", 0), 1, 0, 0, id="nothing"),
        pytest.param(peer("n3", 10**15), 1, 0, 0, id="longer than any round trip"),
        pytest.param(peer("n3", age=900), 0, 0, 1, id="a quarter of an hour old"),
        pytest.param(peer("n3", lastProbeTime="0001-01-01T00:00:00Z"), 0, 0, 1, id="of the far past"),
        pytest.param(peer("forged"), 0, 1, 0, id="peer that does not exist"),
        pytest.param(peer("n1"), 0, 0, 0, id="about itself"),
    ],
)
def test_what_cannot_be_is_left_out_and_counted(bad: dict[str, Any], malformed: int, unknown: int, stale: int) -> None:
    found = read(report("n1", bad, peer("n2", 700)))
    assert found.measurements == (Measurement("n1", "n2", 700, 30.0),)
    assert (len(found.malformed), len(found.unknown_nodes), found.stale) == (malformed, unknown, stale)
    assert found.state is SourceState.READ
    alone = read(report("n1", bad))
    assert (alone.state, alone.measurements) == (SourceState.EMPTY, ())


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        pytest.param({}, "peers of n1", id="no such node"),
        pytest.param({"lastProbeTime": "never\n\x1b[2J"}, "n1 says no time that can be read", id="no time"),
        pytest.param({"p90Microseconds": -1}, "n1 says less than a microsecond", id="no round trip"),
        pytest.param({"p90Microseconds": 10**9}, "n1 says more than a minute", id="too long a round trip"),
    ],
)
def test_a_node_that_forges_is_named_once_and_nothing_that_it_says(bad: dict[str, Any], says: str) -> None:
    """It may say something else each time: another text would be a write of every NetworkTopology's status."""
    names = ["n3\nStatus: True", "n\x1b[2J\t", "\u202e3n", "x" * 300]
    where = places(n1="r/A", **(dict.fromkeys(names, "r/B") if bad else {}))
    for forged in (names, names[:1]):
        peers = [{**peer(name), **bad} for name in forged]
        found = read_reports([report("n1", *peers)], where, percentile="p90", now=NOW)
        assert (*found.malformed, *found.unknown_nodes) == (says,) * len(forged), "each is counted"
        assert left_out(found, malformed="so", unknown="so") == f". Not used because so: {says}"


def test_a_clock_that_is_a_little_ahead_is_believed() -> None:
    assert read(report("n1", peer("n2", age=-30))).measurements == (Measurement("n1", "n2", 850, 0.0),)


def test_a_node_whose_clock_is_ahead_is_named_once_and_in_the_same_words_by_each_report() -> None:
    for age in (-61, -899, -3601, -(10**9)):
        reading = read(report("n1", peer("n2", age=age), peer("n3", age=300)))
        assert (reading.measurements, reading.mistimed, reading.distrusted) == ((), 2, {"n1"})
        says = left_out(reading, malformed="so", unknown="")
        assert says == ". Not used because so: n1 probed more than a minute from now"


def test_what_is_no_time_is_named_in_the_same_words_by_each_report() -> None:
    times = ("2026-11-22t11:59:00z", "2026-11-22T11:59:60Z", "")
    found = {read(report("n1", peer("n2", lastProbeTime=time))).malformed for time in times}
    assert found == {("n1 says no time that can be read",)}


@pytest.mark.parametrize("wrong", [-3600.0, 3600.0], ids=["an hour behind", "an hour ahead"])
def test_a_node_whose_clock_is_wrong_moves_no_cost(wrong: float) -> None:
    where = places(a1="r/A", a2="r/A", a3="r/A", b1="r/B")
    honest = [report(node, peer("b1", figure)) for node, figure in (("a1", 850), ("a2", 860))]
    late = report("a3", peer("b1", 59_000_000, age=30.0 - wrong))
    found = read_reports([*honest, late], where, percentile="p90", now=NOW)
    alone = read_reports(honest, where, percentile="p90", now=NOW)
    assert found.latencies == alone.latencies
    assert found.measurements == alone.measurements
    assert (len(found.malformed), found.stale) == ((1, 0) if wrong > 0 else (0, 1))


def test_a_report_of_a_node_that_is_gone_is_left_out() -> None:
    found = read(report("gone", peer("n1")), report("n1", peer("n2")))
    assert found.unknown_nodes == ("gone",)
    assert len(found.measurements) == 1


def test_a_peer_without_an_answer_is_unreachable_and_never_near() -> None:
    found = read(report("n1", peer("n2", None), peer("n3")))
    assert found.measurements[0] == Measurement("n1", "n2", UNREACHABLE, 30.0)
    assert found.latencies is not None
    assert ("A", "B") in found.latencies[1].cut


def test_where_nobody_answers_there_is_nothing_to_go_by() -> None:
    assert read(report("n1", peer("n2", None))).state is SourceState.EMPTY


def test_no_report_at_all() -> None:
    assert read().state is SourceState.MISSING


def test_a_report_that_is_still_empty() -> None:
    assert read(msgspec.convert({"metadata": {"name": "n1"}}, Report)).state is SourceState.EMPTY


PEERS = st.builds(
    lambda node, value, time: {"node": node, "p90Microseconds": value, "lastProbeTime": time},
    st.sampled_from(["n1", "n2", "n3", "gone", ""]),
    st.none() | st.integers(),
    st.sampled_from([NOW.isoformat(), "", "x", "2026-11-22T11:50:00Z", "9999-12-31T23:59:59Z", "2026-11-22"]),
)


@given(reports=st.dictionaries(st.sampled_from(["n1", "n2", "n3", "gone"]), st.lists(PEERS, max_size=5)))
def test_whatever_reports_say_only_known_nodes_and_possible_figures_count(reports: dict[str, list[Any]]) -> None:
    found = read(*(report(node, *peers) for node, peers in reports.items()))
    for item in found.measurements:
        assert {item.origin, item.destination} <= set(PLACES.nodes)
        assert 0 < item.microseconds <= 60_000_000 or item.microseconds == UNREACHABLE
        assert 0.0 <= item.age < 900.0
