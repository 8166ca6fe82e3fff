"""Costs from round trips between nodes, worked out the plain way: what the controller writes must be the same.

Nothing of the controller is used. All round trips count fully, as if measured just now.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

Pair = tuple[str, str]
RoundTrips = Mapping[Pair, int]
"""Microseconds by origin and destination node."""


def direct(round_trips: RoundTrips, place_of: Mapping[str, str]) -> dict[Pair, int]:
    """Return the latency of every ordered pair of places: the lower median of the medians of nodes.

    Those that measure the opposite direction count where fewer than three measure this one, or most of them reach the
    same node alone.
    """
    measured: dict[Pair, dict[str, list[int]]] = {}
    reached: dict[Pair, dict[str, set[str]]] = {}
    for (origin, destination), microseconds in round_trips.items():
        pair = (place_of[origin], place_of[destination])
        if pair[0] != pair[1]:
            measured.setdefault(pair, {}).setdefault(origin, []).append(microseconds)
            reached.setdefault(pair, {}).setdefault(origin, set()).add(destination)
    nodes = {pair: [statistics.median_low(figures) for figures in rows.values()] for pair, rows in measured.items()}
    found = {}
    for start, end in {*nodes, *((end, start) for start, end in nodes)}:
        own, opposite = nodes.get((start, end), []), nodes.get((end, start), [])
        ends = [peers for peers in reached.get((start, end), {}).values() if len(peers) == 1]
        apart = len(own) >= 3 and all(ends.count(peers) <= len(own) / 2 for peers in ends)
        found[start, end] = statistics.median_low(own if apart else own + opposite)
    return found


def cheapest(links: Mapping[Pair, int]) -> dict[Pair, int]:
    """Return the length of the shortest way of every pair, by allowing one place after another on it."""
    places = sorted({place for pair in links for place in pair})
    rows = {place: {end: links[place, end] for end in places if (place, end) in links} for place in places}
    for middle in places:
        onward = rows[middle]
        for row in rows.values():
            if middle not in row:
                continue
            for end, rest in onward.items():
                if row[middle] + rest < row.get(end, row[middle] + rest + 1):
                    row[end] = row[middle] + rest
    return {(origin, end): length for origin, row in rows.items() for end, length in row.items() if origin != end}


def costs(links: Mapping[Pair, int]) -> dict[Pair, int]:
    """Return latencies in tenths of a millisecond, rounded up, 1 to 10,000."""
    return {pair: min(max(1, -(length // -100)), 10_000) for pair, length in links.items()}
