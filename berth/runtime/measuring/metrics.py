"""Metrics of what is told to the latency controller."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge

REPORTS: Final = Counter(
    "berth_round_trip_reports_total", "Messages to the latency controller: answered, failed.", ["outcome"]
)
TOLD: Final = Counter("berth_round_trips_told_total", "Round trips that the latency controller has been told of.")
TELLING: Final = Gauge("berth_round_trips_wanted", "1 while a LatencyPolicy wants round trips, as far as is known.")
