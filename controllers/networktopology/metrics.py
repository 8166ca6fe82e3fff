"""Every metric of this controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from controllers.networktopology.sources.base import TopologyKey

RECONCILE_SECONDS = Histogram(
    "berth_networktopology_reconcile_seconds",
    "Time to bring one NetworkTopology up to date, with its writes.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
COMPUTE_SECONDS = Histogram(
    "berth_networktopology_compute_seconds",
    "Time to compute the weight sets of one NetworkTopology.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
WRITES = Counter(
    "berth_networktopology_writes_total", "Writes to NetworkTopologies by part (weights, status).", ["part"]
)
PROMETHEUS_QUERIES = Counter(
    "berth_networktopology_prometheus_queries_total",
    "Queries to Prometheus by outcome (answered, failed).",
    ["outcome"],
)
MEASUREMENTS = Gauge(
    "berth_networktopology_measurements", "Usable measurements behind the costs.", ["namespace", "name"]
)
UNUSABLE = Gauge(
    "berth_networktopology_unusable_measurements",
    "Measurements that are malformed or name unknown nodes.",
    ["namespace", "name"],
)
STALE = Gauge(
    "berth_networktopology_stale_measurements", "Measurements that are too old to count.", ["namespace", "name"]
)
MISSING_PAIRS = Gauge(
    "berth_networktopology_missing_pairs",
    "Ordered pairs of places without a cost, by level (region, zone, segment).",
    ["namespace", "name", "level"],
)


_LEVELS: Final = ("region", "zone", "segment")
OWN_SERIES: Final = 16
"""NetworkTopologies of one namespace that have series of their own: anybody may create thousands."""
_measured: dict[str, set[str]] = {}


def measure(key: TopologyKey, *, measurements: int, unusable: int, stale: int, missing: Mapping[str, int]) -> None:
    """Set the series of a NetworkTopology; `missing` has pairs by level. Of a namespace with many, some have none."""
    names = _measured.setdefault(key.namespace, set())
    if key.name not in names and len(names) == OWN_SERIES:
        return
    names.add(key.name)
    MEASUREMENTS.labels(*key).set(measurements)
    UNUSABLE.labels(*key).set(unusable)
    STALE.labels(*key).set(stale)
    for level in _LEVELS:
        MISSING_PAIRS.labels(*key, level).set(missing[level])


def forget(key: TopologyKey) -> None:
    """Drop the series of a NetworkTopology that is gone."""
    names = _measured.get(key.namespace, set())
    if key.name not in names:
        return
    names.remove(key.name)
    if not names:
        del _measured[key.namespace]
    for gauge in (MEASUREMENTS, UNUSABLE, STALE):
        gauge.remove(*key)
    for level in _LEVELS:
        MISSING_PAIRS.remove(*key, level)
