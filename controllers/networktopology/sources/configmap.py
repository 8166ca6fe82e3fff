"""Measurements in the upstream ConfigMap: one key per ordered pair of nodes.

``netperf.p90.latency.milliseconds.origin.<nodeA>.destination.<nodeB>: "12"`` says that nine of ten requests from
nodeA to nodeB took at most 12 ms. Other keys are other metrics and are left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final

from controllers.networktopology.sources.base import Measurement, Reading, SourceState

KEY_PREFIX: Final = "netperf.p90.latency.milliseconds.origin."
"""Beginning of a key that holds a latency."""
KEY_SEPARATOR: Final = ".destination."
"""Between the two node names of a key."""
MAX_MILLISECONDS: Final = 3_600_000
"""Largest latency that is believed, one hour; above it, the unit of the value is in doubt."""
_LONGEST_VALUE: Final = 40


def parse(data: Mapping[str, str], *, name: str, nodes: Collection[str], time: datetime | None = None) -> Reading:
    """Return what a ConfigMap's data says.

    A value that is no whole number of milliseconds is reported and gives no sample: unknown, never 0.

    Args:
        data: the ConfigMap's ``data``.
        name: the ConfigMap for people.
        nodes: names of the cluster's nodes.
        time: when its data was last written.
    """
    measurements: list[Measurement] = []
    malformed: list[str] = []
    unknown: list[str] = []
    for key in sorted(data):
        if not key.startswith(KEY_PREFIX):
            continue
        pair = split_key(key, nodes)
        if pair is None:
            malformed.append(f"{key} names no destination")
            continue
        value = parse_milliseconds(data[key])
        if value is None:
            malformed.append(f"{key} is {_quote(data[key])}")
            continue
        if pair[0] not in nodes or pair[1] not in nodes:
            unknown.append(key)
            continue
        measurements.append(Measurement(*pair, value))
    return Reading(
        state=SourceState.READ if measurements else SourceState.EMPTY,
        name=name,
        measurements=tuple(measurements),
        time=time if measurements else None,
        malformed=tuple(malformed),
        unknown_nodes=tuple(unknown),
    )


def split_key(key: str, nodes: Collection[str]) -> tuple[str, str] | None:
    """Return (origin, destination) of a key, or None when it names no two nodes.

    A node's name may itself contain ``.destination.``; the split that yields two known nodes wins, otherwise the
    first one.
    """
    rest = key[len(KEY_PREFIX) :]
    origin, separator, destination = rest.partition(KEY_SEPARATOR)
    if not separator or KEY_SEPARATOR not in rest[len(origin) + 1 :]:
        return (origin, destination) if origin and destination else None
    candidates: list[tuple[str, str]] = []
    start = rest.find(KEY_SEPARATOR)
    while start >= 0:
        candidates.append((rest[:start], rest[start + len(KEY_SEPARATOR) :]))
        start = rest.find(KEY_SEPARATOR, start + 1)
    candidates = [pair for pair in candidates if pair[0] and pair[1]]
    known = [pair for pair in candidates if pair[0] in nodes and pair[1] in nodes]
    return next(iter(known or candidates), None)


def parse_milliseconds(text: str) -> int | None:
    """Return the latency that ``text`` states, or None for anything but a whole number in 0 .. one hour."""
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(MAX_MILLISECONDS)) + 8:
        return None
    value = int(text)
    return value if value <= MAX_MILLISECONDS else None


def _quote(value: str) -> str:
    shown = value if len(value) <= _LONGEST_VALUE else value[: _LONGEST_VALUE - 1] + "…"
    return repr(shown)
