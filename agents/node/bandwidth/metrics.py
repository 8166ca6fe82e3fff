"""Every metric of bandwidth, of the node's link and in bit/s."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

CAPACITY = Gauge("berth_link_capacity_bits_per_second", "Speed of the node's link, if known.", ["interface"])
MEAN = Gauge("berth_link_utilisation_mean_bits_per_second", "Mean use of the last ten minutes.", ["interface"])
DEVIATION = Gauge("berth_link_utilisation_deviation_bits_per_second", "Standard deviation of that use.", ["interface"])
ADVERTISEMENTS = Counter("berth_bandwidth_advertisements_total", "Patches of the node: written, failed.", ["outcome"])


def show(interface: str, capacity: int | None, mean: float | None, deviation: float | None) -> None:
    """Set the series of the node's one link, and drop those of all others and of what is not known."""
    for gauge, value in ((CAPACITY, capacity), (MEAN, mean), (DEVIATION, deviation)):
        gauge.clear()
        if value is not None:
            gauge.labels(interface).set(value)
