"""Every metric of this controller."""

from __future__ import annotations

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
MEASUREMENTS = Gauge(
    "berth_networktopology_measurements", "Usable measurements behind the costs.", ["namespace", "name"]
)
UNUSABLE = Gauge(
    "berth_networktopology_unusable_measurements",
    "Measurements that are malformed or name unknown nodes.",
    ["namespace", "name"],
)
MISSING_PAIRS = Gauge(
    "berth_networktopology_missing_pairs",
    "Ordered pairs of places without a cost, by level (region, zone).",
    ["namespace", "name", "level"],
)


def forget(key: TopologyKey) -> None:
    """Drop the series of a NetworkTopology that is gone."""
    for gauge in (MEASUREMENTS, UNUSABLE):
        gauge.remove(*key)
    for level in ("region", "zone"):
        MISSING_PAIRS.remove(*key, level)
