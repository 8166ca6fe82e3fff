"""The upstream ConfigMap's keys and values; what cannot be used is reported and never becomes a cost."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.networktopology.sources.base import Measurement, Percentile, SourceState
from controllers.networktopology.sources.configmap import key_prefix, parse, parse_microseconds, split_key

NODES = {"n1", "n2", "edge.example.com"}
KEY_PREFIX = key_prefix("p90")


def key(origin: str, destination: str, percentile: str = "p90") -> str:
    return f"netperf.{percentile}.latency.milliseconds.origin.{origin}.destination.{destination}"


def test_measurements_are_read_in_key_order() -> None:
    data = {key("n2", "n1"): "7", key("n1", "n2"): "0.85", key("n1", "edge.example.com"): "12"}
    reading = parse(data, name="ConfigMap a/b", nodes=NODES)
    assert reading.measurements == (
        Measurement("n1", "edge.example.com", 12_000),
        Measurement("n1", "n2", 850),
        Measurement("n2", "n1", 7000),
    )
    assert (reading.state, reading.name) == (SourceState.READ, "ConfigMap a/b")
    assert (reading.malformed, reading.unknown_nodes) == ((), ())


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        pytest.param("0", 0, id="whole ones cut off"),
        pytest.param("12", 12_000, id="whole"),
        pytest.param("0.85", 850, id="fraction"),
        pytest.param("12.0", 12_000, id="fraction of zeros"),
        pytest.param("0.0004", 1, id="below a microsecond is not nothing"),
        pytest.param("0." + "1" * 50, None, id="absurdly precise"),
        pytest.param(" 12\n", 12_000, id="spaces and line end of a file"),
        pytest.param("007", 7000, id="leading zeros"),
        pytest.param("3600000", 3_600_000_000, id="one hour"),
        pytest.param("3600000.001", None, id="over an hour"),
        pytest.param("9" * 5000, None, id="absurdly long"),
        pytest.param("", None, id="empty"),
        pytest.param("abc", None, id="word"),
        pytest.param("12ms", None, id="with unit"),
        pytest.param("12,5", None, id="decimal comma"),
        pytest.param("12.", None, id="nothing after the point"),
        pytest.param(".5", None, id="nothing before the point"),
        pytest.param("1.2.3", None, id="two points"),
        pytest.param("1e3", None, id="exponent"),
        pytest.param("-3", None, id="negative"),
        pytest.param("+3", None, id="sign"),
        pytest.param("1_000", None, id="underscore"),
        pytest.param("١٢", None, id="digits of another script"),
        pytest.param("NaN", None, id="not a number"),
    ],
)
def test_values(text: str, microseconds: int | None) -> None:
    assert parse_microseconds(text) == microseconds


@given(text=st.text(max_size=20))
def test_any_text_is_a_latency_or_refused(text: str) -> None:
    value = parse_microseconds(text)
    assert value is None or (0 <= value <= 3_600_000_000 and 0 <= value - 1000 * Fraction(text.strip()) < 1)


@pytest.mark.parametrize("value", ["", "abc", "12,5", "-1"])
def test_a_bad_value_is_named_and_gives_no_measurement(value: str) -> None:
    reading = parse({key("n1", "n2"): value, key("n2", "n1"): "4"}, name="c", nodes=NODES)
    assert reading.measurements == (Measurement("n2", "n1", 4000),)
    assert reading.malformed == (f"{key('n1', 'n2')} is {value!r}",)


def test_a_long_value_is_cut() -> None:
    (problem,) = parse({key("n1", "n2"): "x" * 10_000}, name="c", nodes=NODES).malformed
    assert len(problem) < 150
    assert problem.endswith("…'")


@pytest.mark.parametrize(("percentile", "microseconds"), [("p50", 300), ("p90", 850), ("p99", 2000)])
def test_the_percentile_that_is_asked_for_is_read_and_no_other_stands_in(
    percentile: Percentile, microseconds: int
) -> None:
    data = {key("n1", "n2", which): value for which, value in (("p50", "0.3"), ("p90", "0.85"), ("p99", "2"))}
    data |= {key("n2", "n1", which): "9" for which in ("p50", "p90", "p99") if which != percentile}
    reading = parse(data, name="c", nodes=NODES, percentile=percentile)
    assert reading.measurements == (Measurement("n1", "n2", microseconds),)
    assert reading.malformed == ()


@pytest.mark.parametrize(
    ("name", "malformed", "unknown"),
    [
        pytest.param(key("n1", "gone"), False, True, id="unknown destination"),
        pytest.param(key("gone", "n1"), False, True, id="unknown origin"),
        pytest.param(KEY_PREFIX + "n1", True, False, id="no destination"),
        pytest.param(KEY_PREFIX + ".destination.n1", True, False, id="empty origin"),
        pytest.param(KEY_PREFIX + "n1.destination.", True, False, id="empty destination"),
        pytest.param("netperf.p50.latency.milliseconds.origin.n1.destination.n2", False, False, id="other percentile"),
        pytest.param("notes.txt", False, False, id="other file"),
    ],
)
def test_keys_that_give_no_measurement(name: str, malformed: bool, unknown: bool) -> None:
    reading = parse({name: "5"}, name="c", nodes=NODES)
    assert reading.state is SourceState.EMPTY
    assert reading.measurements == ()
    assert bool(reading.malformed) == malformed
    assert bool(reading.unknown_nodes) == unknown
    assert all(name in problem for problem in (*reading.malformed, *reading.unknown_nodes))


@pytest.mark.parametrize(
    ("origin", "destination", "nodes"),
    [
        pytest.param("a", "b", {"a", "b"}, id="plain"),
        pytest.param("a.destination.b", "c", {"a.destination.b", "c"}, id="origin contains the separator"),
        pytest.param("a", "b.destination.c", {"a", "b.destination.c"}, id="destination contains the separator"),
        pytest.param("x", "y.destination.z", set(), id="unknown nodes: the first split"),
    ],
)
def test_split_key(origin: str, destination: str, nodes: set[str]) -> None:
    assert split_key(key(origin, destination), nodes, prefix=KEY_PREFIX) == (origin, destination)


NAMES = st.text(alphabet="ab0-.", min_size=1, max_size=10)


@given(pairs=st.dictionaries(st.tuples(NAMES, NAMES), st.integers(0, 3_600_000_000), max_size=8))
def test_what_is_published_is_read_back(pairs: dict[tuple[str, str], int]) -> None:
    nodes = {name for pair in pairs for name in pair}
    reading = parse({key(*pair): str(Decimal(value) / 1000) for pair, value in pairs.items()}, name="c", nodes=nodes)
    assert {(m.origin, m.destination): m.microseconds for m in reading.measurements} == pairs
