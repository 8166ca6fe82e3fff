"""Answers of Prometheus to an instant query, and what they say about latencies. No I/O.

An answer that is not one, or says itself that part of it is missing, counts for nothing. In one that is whole, figures
that cannot be true are left out and counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from berth.api.probereport import MAX_MICROSECONDS
from berth.api.text import listed, one_line, printable, shortened
from controllers.networktopology.aggregation import inside_zones
from controllers.networktopology.node_medians import latencies, of_several, pair_figures
from controllers.networktopology.places import Places
from controllers.networktopology.sources.base import LatenciesByLevel, Measurement, Reading, SourceState
from controllers.networktopology.sources.prometheus_presets import MICROSECONDS, LatencyQuery, Level

CLOCK_TOLERANCE: Final = 60.0
"""Seconds by which the clock of Prometheus may be off."""
MAX_SERIES: Final = 400_000
"""Most series that are read, whatever room they take in the answer: a short one takes ten times as much in memory."""
_LONGEST_NAME: Final = 80
_LONGEST_TEXT: Final = 200


class PrometheusError(Exception):
    """There is no answer to make use of; the text says why, and holds no secret."""


class Pair(msgspec.Struct, gc=False, frozen=True, order=True):
    """The labels that matter."""

    origin: str = ""
    """where the round trip began"""
    destination: str = ""
    """who answered"""


class Series(msgspec.Struct, gc=False):
    """One element of an instant vector."""

    metric: Pair = Pair()
    """its labels"""
    value: tuple[float, str] | None = None
    """seconds since the epoch, and the figure as text; None of a native histogram"""


class _Data(msgspec.Struct, gc=False, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Answer(msgspec.Struct, gc=False, rename="camel"):
    status: str
    data: _Data = msgspec.field(default_factory=_Data)
    error_type: str = ""
    error: str = ""
    warnings: list[str] = []


_ANSWERS: Final = msgspec.json.Decoder(_Answer)
_VECTORS: Final = msgspec.json.Decoder(list[Series])


def decode_answer(status: int, body: bytes) -> list[Series]:
    """Return the instant vector of an answer, which has elements.

    Args:
        status: of HTTP.
        body: as it came.

    Raises:
        PrometheusError: it is an error, partial, empty, of another type than a vector, or no answer of Prometheus.
    """
    try:
        answer = _ANSWERS.decode(body)
    except (msgspec.DecodeError, RecursionError, ValueError):
        raise PrometheusError(f"status {status} with no answer of Prometheus") from None
    if status != 200 or answer.status != "success":
        reason = _text(f"{answer.error_type}: {answer.error}") if answer.error else "without a reason"
        raise PrometheusError(f"status {status}, {reason}")
    if answer.warnings:
        raise PrometheusError(f"the answer is partial: {_text(listed(answer.warnings, limit=3, separator='; '))}")
    if answer.data.result_type != "vector":
        raise PrometheusError(f"the query gives a {_text(answer.data.result_type)!r} and not an instant vector")
    # Each has two objects, and one that is no series at least one.
    if bytes(answer.data.result).count(b"{") > 2 * MAX_SERIES:
        raise PrometheusError(f"the answer has more than {MAX_SERIES:,} series; ask for fewer pairs")
    try:
        vector = _VECTORS.decode(answer.data.result)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise PrometheusError(f"status {status} with no instant vector: {_text(str(error))}") from None
    if not vector:
        # As after a restart that has lost its series: latencies do not all end at once.
        raise PrometheusError("the query gives no series; see whether the meter runs and is scraped")
    return vector


def read_series(series: Sequence[Series], places: Places, *, query: LatencyQuery, now: datetime) -> Reading:
    """Return what an instant vector says, with the latencies between places.

    Left out are figures that no round trip has, of another time than now, of pairs that have several, of nodes or
    places that the cluster does not have, and of what is measured to itself.

    Args:
        series: the vector.
        places: where nodes are.
        query: whose answer it is.
        now: when it came.
    """
    known = _known(places, query.level)
    factor = MICROSECONDS[query.unit]
    counts = Counter(item.metric for item in series)
    measurements: list[Measurement] = []
    malformed: list[str] = []
    unknown: list[str] = []
    newest: float | None = None
    mistimed = 0
    for item in sorted(series, key=lambda item: item.metric):
        pair = item.metric
        origin, destination = pair.origin, pair.destination
        if not (origin and destination):
            malformed.append("a series without the labels origin and destination")
        elif origin == destination:
            continue
        elif counts[pair] > 1:
            malformed.append(f"{_named(pair)} has {counts[pair]} figures")
        elif origin not in known or destination not in known:
            unknown.append(_named(pair))
        elif item.value is None:
            malformed.append(f"{_named(pair)} is a histogram")
        elif abs(item.value[0] - now.timestamp()) > CLOCK_TOLERANCE:
            mistimed += 1
            malformed.append(f"{_named(pair)} is of another time")
        elif (microseconds := _microseconds(item.value[1], factor)) is None:
            malformed.append(f"{_named(pair)} is {_name(item.value[1])!r}")
        else:
            measurements.append(Measurement(origin, destination, microseconds))
            newest = item.value[0] if newest is None else max(newest, item.value[0])
    region_of, zone_of = _places_of(places, query.level)
    in_zones = inside_zones(measurements, places) if query.level == "node" else []
    return Reading(
        state=SourceState.READ if measurements else SourceState.EMPTY,
        name=f"Prometheus ({query.name})",
        measurements=tuple(measurements),
        latencies=LatenciesByLevel(
            latencies(pair_figures(measurements, region_of)),
            latencies(pair_figures(measurements, zone_of)),
            latencies(of_several(pair_figures(in_zones, places.segment_of))),
        ),
        continuous=True,
        time=None if newest is None else datetime.fromtimestamp(newest, UTC),
        malformed=tuple(malformed),
        unknown_nodes=tuple(unknown),
        mistimed=mistimed,
    )


def _known(places: Places, level: Level) -> Collection[str]:
    return places.nodes if level == "node" else frozenset(places.zones if level == "zone" else places.regions)


def _places_of(places: Places, level: Level) -> tuple[Callable[[str], str], Callable[[str], str]]:
    """Return the region and the zone of what a label names, each empty where that says nothing about it."""
    if level == "node":
        return places.region_of_node, places.zone_of
    if level == "zone":
        return (lambda zone: places.region_of.get(zone, "")), (lambda zone: zone)
    return (lambda region: region), (lambda _: "")


def _named(pair: Pair) -> str:
    return f"{_name(pair.origin)} to {_name(pair.destination)}"


def _microseconds(text: str, factor: float) -> int | None:
    try:
        figure = float(text) * factor
    except ValueError:
        return None
    # Above first: what is not finite has no whole number.
    return round(figure) if math.isfinite(figure) and 1 <= round(figure) <= MAX_MICROSECONDS else None


def _name(text: str) -> str:
    return one_line(text, _LONGEST_NAME)


def _text(text: str) -> str:
    return printable(shortened(text, _LONGEST_TEXT))
