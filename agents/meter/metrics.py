"""Every metric of the meter."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

ROUND_TRIPS: Final = Histogram(
    "berth_meter_round_trip_seconds",
    "Round trips of users, by the kernel or by the time that clients state.",
    ["source"],
    buckets=(0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0),
)
REQUESTS: Final = Counter(
    "berth_meter_requests_total", "Requests: answered, or why they were not, or not in full.", ["outcome"]
)
ROUTED: Final = Counter("berth_meter_routed_total", "Requests of a router, whose own round trip is not measured.")
UNPROVEN: Final = Counter(
    "berth_meter_unproven_marks_total",
    "Requests that say so without a code by the policy's key, not measured either: of a router without it, or a user.",
)
USERS: Final = Gauge("berth_meter_users", "Users that are remembered.")
PUSHED_OUT: Final = Gauge("berth_meter_users_pushed_out", "Users who had to give way to others since the start.")
REJECTED: Final = Counter(
    "berth_meter_timestamps_rejected_total",
    "Stated times that were not believed: malformed, absurd, negative.",
    ["reason"],
)
