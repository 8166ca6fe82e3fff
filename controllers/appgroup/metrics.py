"""Everything the appgroup controller measures about itself."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

RECONCILES = Counter(
    "berth_appgroup_reconciles_total",
    "AppGroups looked at, by outcome: written, unchanged, postponed (large, done in its turn), gone (deleted "
    "meanwhile), failed (tried again later).",
    ["outcome"],
)
RECONCILE_DURATION = Histogram(
    "berth_appgroup_reconcile_duration_seconds",
    "Time to compute the status of one AppGroup and to write it if it changed.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
SPEC_TO_STATUS = Histogram(
    "berth_appgroup_spec_to_status_seconds",
    "Time from seeing a new spec to the API server's answer to the status written for it.",
    buckets=(0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
QUEUE_DEPTH = Gauge("berth_appgroup_queue_depth", "AppGroups that wait for their turn.")
APP_GROUPS = Gauge("berth_appgroup_objects", "AppGroups known.")
PODS = Gauge("berth_appgroup_pods", "Pods known that belong to an AppGroup.")
