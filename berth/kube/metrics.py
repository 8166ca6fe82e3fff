"""Metrics of the API access, shared by every component."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

API_REQUESTS = Counter(
    "berth_api_requests_total",
    "Requests to the API server by verb, resource and HTTP status.",
    ["verb", "resource", "code"],
)
API_LATENCY = Histogram(
    "berth_api_request_duration_seconds",
    "Time from sending a request to its complete answer; watches are left out.",
    ["verb", "resource"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
WATCH_RESTARTS = Counter(
    "berth_watch_restarts_total", "Watches begun again, by resource and reason.", ["resource", "reason"]
)
WATCH_EVENTS = Counter("berth_watch_events_total", "Watch events received by resource and type.", ["resource", "type"])
WATCH_AGE = Gauge(
    "berth_watch_age_seconds", "Seconds since the API server last said anything on a watch.", ["resource"]
)
UNREADABLE = Counter(
    "berth_unreadable_objects_total",
    "Objects left out because their fields do not have the expected types.",
    ["resource"],
)
HANDLER_FAILURES = Counter(
    "berth_handler_failures_total", "Changes of objects whose handling failed; the log has the reason.", ["resource"]
)
CACHED_OBJECTS = Gauge("berth_cached_objects", "Objects in the local copy of a resource.", ["resource"])
LEADER = Gauge("berth_leader", "1 while this process holds the Lease of the component.", ["component"])
EVENTS_DROPPED = Counter(
    "berth_events_dropped_total",
    "Events not written because too many were waiting or the API server refused them.",
    ["reason"],
)
