"""Answers of Prometheus: what is believed of them, and how much."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.networktopology.compute import compute
from controllers.networktopology.sources.base import Measurement, Reading, SourceState
from controllers.networktopology.sources.prometheus_answer import (
    Pair,
    PrometheusError,
    Series,
    decode_answer,
    read_series,
)
from controllers.networktopology.sources.prometheus_presets import Level, Unit, own_query
from tests.support.prometheus import MOMENT, answer, series
from tests.support.topologies import places

NOW = datetime.fromtimestamp(MOMENT, UTC)
PLACES = places(a1="r/A", a2="r/A", a3="r/A", b1="r/B", b2="r/B", c1="s/C")


def read(*rows: dict[str, Any], unit: Unit = "seconds", level: Level = "node", now: datetime = NOW) -> Reading:
    decoded = decode_answer(200, answer(*rows))
    return read_series(decoded, PLACES, query=own_query("q", unit, level), now=now)


def test_a_vector_gives_measurements_in_microseconds() -> None:
    found = read(series("b1", "a1", "0.00115"), series("a1", "b1", "0.00085"), series("a1", "c1", "0.0784"))
    assert found.state is SourceState.READ
    assert found.measurements == (
        Measurement("a1", "b1", 850),
        Measurement("a1", "c1", 78_400),
        Measurement("b1", "a1", 1150),
    )
    assert (found.name, found.time, found.continuous) == ("Prometheus (query)", NOW, True)
    assert found.malformed == found.unknown_nodes == ()


@pytest.mark.parametrize("cut", [[], [series("a1", "b1", "NaN")]], ids=["gone from the answer", "not a number"])
def test_a_pair_without_an_answer_is_missing_and_not_cut(cut: list[dict[str, Any]]) -> None:
    """A meter that has just started gives the same as a network that is cut."""
    found = read(series("a1", "c1", "0.002"), series("b1", "c1", "0.003"), *cut)
    assert found.latencies is not None
    assert found.latencies[1].cut == frozenset()
    sets = compute(found, PLACES).sets
    assert sets["Dijkstra"].zones == {("A", "B"): 50, ("B", "A"): 50}
    assert sets["NetperfCosts"].zones == {}


@pytest.mark.parametrize(
    ("rows", "known"),
    [
        pytest.param([series("n1", "n3", "59"), series("n1", "n4", "59")], {}, id="one-node-alone"),
        pytest.param(
            [series("n1", "n3", "59"), series("n4", "n1", "0.0003")],
            {("s1", "s2"): 300, ("s2", "s1"): 300},
            id="another-knows-better",
        ),
    ],
)
def test_one_exporter_makes_no_two_segments_dear(rows: list[dict[str, Any]], known: dict[tuple[str, str], int]) -> None:
    where = places(n1="r/A/s1", n2="r/A/s1", n3="r/A/s2", n4="r/A/s2")
    query = own_query("q", "seconds", "node")
    found = read_series(decode_answer(200, answer(*rows)), where, query=query, now=NOW).latencies
    assert found is not None
    assert (found.segments.known, found.segments.cut) == (known, frozenset())


@pytest.mark.parametrize(
    ("unit", "figure", "microseconds"),
    [
        ("seconds", "0.00085", 850),
        ("seconds", "8.5e-04", 850),
        ("milliseconds", "0.85", 850),
        ("microseconds", "850", 850),
        ("microseconds", "849.6", 850),
        ("seconds", "60", 60_000_000),
        ("microseconds", "0.6", 1),
    ],
)
def test_units(unit: Unit, figure: str, microseconds: int) -> None:
    assert read(series("a1", "b1", figure), unit=unit).measurements == (Measurement("a1", "b1", microseconds),)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        pytest.param(series("a1", "b1", "NaN"), "a1 to b1 is 'NaN'", id="not a number"),
        pytest.param(series("a1", "b1", "+Inf"), "a1 to b1 is '+Inf'", id="infinite"),
        pytest.param(series("a1", "b1", "-Inf"), "a1 to b1 is '-Inf'", id="infinite, the other way"),
        pytest.param(series("a1", "b1", "-1"), "a1 to b1 is '-1'", id="less than nothing"),
        pytest.param(series("a1", "b1", "0"), "a1 to b1 is '0'", id="nothing"),
        pytest.param(series("a1", "b1", "0.0000004"), "a1 to b1 is '0.0000004'", id="less than a microsecond"),
        pytest.param(series("a1", "b1", "60.1"), "a1 to b1 is '60.1'", id="more than a minute"),
        pytest.param(series("a1", "b1", "fast"), "a1 to b1 is 'fast'", id="a word"),
        pytest.param(series("a1", "b1", "1" * 5000), f"a1 to b1 is '{'1' * 77}…'", id="endless"),
        pytest.param(series("a1", "b1", "\x1b[2J"), "a1 to b1 is '\\\\x1b[2J'", id="commands for a terminal"),
        pytest.param(series("a1", "b1", "1", time=MOMENT - 61), "a1 to b1 is of another time", id="of before"),
        pytest.param(series("a1", "b1", "1", time=MOMENT + 61), "a1 to b1 is of another time", id="of the future"),
        pytest.param(series("", "b1", "1"), "a series without the labels origin and destination", id="no origin"),
        pytest.param({"metric": {}, "value": [MOMENT, "1"]}, "a series without the labels", id="no labels"),
        pytest.param(
            {"metric": {"origin": "a1", "destination": "b1"}, "histogram": [MOMENT, {"count": "3"}]},
            "a1 to b1 is a histogram",
            id="a native histogram",
        ),
    ],
)
def test_what_cannot_be_is_left_out_and_counted(row: dict[str, Any], says: str) -> None:
    found = read(row, series("b1", "a1", "0.001"))
    assert found.measurements == (Measurement("b1", "a1", 1000),)
    (told,) = found.malformed
    assert says in told


def test_a_pair_with_several_figures_has_none() -> None:
    found = read(series("a1", "b1", "0.001"), series("a1", "b1", "0.9"), series("b1", "a1", "0.002"))
    assert found.measurements == (Measurement("b1", "a1", 2000),)
    assert found.malformed == ("a1 to b1 has 2 figures",) * 2


def test_other_nodes_are_named_and_what_is_measured_to_itself_says_nothing() -> None:
    found = read(series("a1", "z9", "1"), series("z8", "a1", "1"), series("a1", "a1", "0.00001"))
    assert found.state is SourceState.EMPTY
    assert found.unknown_nodes == ("a1 to z9", "z8 to a1")
    assert found.malformed == ()


def test_one_node_that_lies_moves_no_cost() -> None:
    honest = [series(node, "b1", "0.001") for node in ("a1", "a2")]
    found = read(*honest, series("a3", "b1", "0.00001"), series("a3", "b2", "0.00001"))
    assert found.latencies is not None
    assert found.latencies[1].known["A", "B"] == 1000


@pytest.mark.parametrize(
    ("level", "rows", "regions", "zones"),
    [
        pytest.param(
            "region",
            [series("r", "s", "0.08")],
            {("r", "s"): 80_000, ("s", "r"): 80_000},
            {},
            id="regions: a round trip leads both ways",
        ),
        pytest.param(
            "zone",
            [series("A", "B", "0.001"), series("A", "C", "0.08"), series("B", "C", "0.09")],
            {("r", "s"): 80_000, ("s", "r"): 80_000},
            {("A", "B"): 1000, ("B", "A"): 1000, ("A", "C"): 80_000, ("C", "A"): 80_000}
            | {("B", "C"): 90_000, ("C", "B"): 90_000},
            id="zones: regions follow",
        ),
        pytest.param("region", [series("r", "a1", "0.08")], {}, {}, id="a node is no region"),
    ],
)
def test_labels_may_name_places(
    level: Level, rows: list[dict[str, Any]], regions: dict[Any, int], zones: dict[Any, int]
) -> None:
    found = read(*rows, level=level)
    assert found.latencies is not None
    assert [item.known for item in found.latencies] == [regions, zones, {}]


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        pytest.param(200, b"<html>Sign in</html>", "status 200 with no answer of Prometheus", id="a page"),
        pytest.param(200, b"", "no answer of Prometheus", id="empty"),
        pytest.param(200, b"[1]", "no answer of Prometheus", id="other JSON"),
        pytest.param(200, b"[" * 100_000, "no answer of Prometheus", id="nested without end"),
        pytest.param(401, b"Unauthorized", "status 401 with no answer of Prometheus", id="refused by a proxy"),
        pytest.param(
            400,
            b'{"status":"error","errorType":"bad_data","error":"parse error"}',
            "status 400, bad_data: parse error",
            id="no PromQL",
        ),
        pytest.param(503, b'{"status":"error"}', "status 503, without a reason", id="no reason"),
        pytest.param(500, answer(), "status 500", id="success that is none"),
        pytest.param(200, answer(), "the query gives no series", id="nothing"),
        pytest.param(200, answer(warnings=["store away"]), "the answer is partial: store away", id="partial"),
        pytest.param(200, answer(kind="matrix"), "'matrix' and not an instant vector", id="matrix"),
        pytest.param(200, answer(kind="scalar", result=[MOMENT, "1"]), "'scalar' and not an inst", id="scalar"),
        pytest.param(200, answer(result={"a": 1}), "with no instant vector", id="no list"),
        pytest.param(200, answer({"metric": {}, "value": [MOMENT, 1]}), "no instant vector", id="a number as such"),
        pytest.param(200, answer({"metric": {"origin": 1}}), "no instant vector", id="a label that is no text"),
    ],
)
def test_what_is_no_answer_counts_for_nothing(status: int, body: bytes, says: str) -> None:
    with pytest.raises(PrometheusError) as caught:
        decode_answer(status, body)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("row", [series("a1", "b1", "0.001"), {}], ids=["series", "next to nothing"])
def test_an_answer_of_more_series_than_memory_has_room_for_is_not_read(
    monkeypatch: pytest.MonkeyPatch, row: dict[str, Any]
) -> None:
    monkeypatch.setattr("controllers.networktopology.sources.prometheus_answer.MAX_SERIES", 10)
    with pytest.raises(PrometheusError, match=r"^the answer has more than 10 series; ask for fewer pairs$"):
        decode_answer(200, answer(*[row] * 21))


def test_notes_that_are_no_warnings_do_not_matter() -> None:
    body = msgspec.json.encode({**msgspec.json.decode(answer(series("a1", "b1", "1"))), "infos": ["a counter?"]})
    assert len(decode_answer(200, body)) == 1


_NAMES = st.sampled_from(["a1", "a2", "b1", "c1", "x", ""])


@given(
    rows=st.lists(
        st.builds(
            Series,
            metric=st.builds(Pair, _NAMES, _NAMES),
            value=st.none()
            | st.tuples(
                st.floats(allow_nan=False) | st.just(MOMENT),
                st.sampled_from(["NaN", "inf", "-0", "1e309", "1e-9", "0.001", "5"]) | st.floats().map(str) | st.text(),
            ),
        ),
        max_size=12,
    )
)
def test_whatever_comes_only_round_trips_between_nodes_count(rows: list[Series]) -> None:
    found = read_series(rows, PLACES, query=own_query("q", "seconds", "node"), now=NOW)
    assert all(1 <= item.microseconds <= 60_000_000 for item in found.measurements)
    pairs = [(item.origin, item.destination) for item in found.measurements]
    assert len(set(pairs)) == len(pairs)
    assert all({origin, destination} <= set(PLACES.nodes) and origin != destination for origin, destination in pairs)
    itself = sum(item.metric.origin == item.metric.destination != "" for item in rows)
    assert len(found.measurements) + len(found.malformed) + len(found.unknown_nodes) + itself == len(rows)
    assert found.time is None or math.isclose(found.time.timestamp(), MOMENT, abs_tol=60.0)
