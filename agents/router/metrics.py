"""Every metric of the router."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter(
    "berth_router_requests_total",
    "Requests by how they were routed (near: to the user's node; load: to the pod with the least to do; steered: to "
    "another router; none) and the class of their status.",
    ["route", "status"],
)
FAILURES = Counter(
    "berth_router_upstream_failures_total", "Attempts that a pod did not answer, or not in full.", ["failure"]
)
REPEATED = Counter("berth_router_repeated_requests_total", "Requests that were sent a second time.")
SECONDS = Histogram(
    "berth_router_request_seconds",
    "Time from the head of a request to the end of its answer; not of WebSockets.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0),
)
BACKENDS = Gauge("berth_router_backends", "Pods that may be asked.")
ASSOCIATIONS = Gauge("berth_router_associations", "Users with a node of their own.")
UNDER_WAY = Gauge("berth_router_requests_under_way", "Requests that are being answered, WebSockets among them.")
CONNECTIONS = Gauge("berth_router_connections", "Connections of clients.")

STATUS_CLASSES: Final = ("none", "1xx", "2xx", "3xx", "4xx", "5xx")
"""Classes of status; none: the client got no answer."""


def status_class(status: int) -> str:
    """Return the class of a status; one beyond HTTP's five counts as the last."""
    return STATUS_CLASSES[min(status // 100, 5)]
