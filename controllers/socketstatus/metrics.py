"""Every metric of this controller."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

RECONCILE_SECONDS = Histogram(
    "berth_socketstatus_reconcile_seconds",
    "Time to bring one SocketStatus up to date, with its writes.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
MOVED_PODS = Counter("berth_socketstatus_moved_pods_total", "Pods that were assigned another socket.")
ASSIGNED_PODS = Counter(
    "berth_socketstatus_assigned_pods_total",
    "Pods that were assigned their first socket, or one for a socket that is not there.",
)
REMOVED = Counter(
    "berth_socketstatus_removed_assignments_total", "Assignments taken out because their pod is gone or has no class."
)
DISTURBED = Gauge("berth_socketstatus_violations", "Pairs of pods on one socket whose classes do not fit together.")

_pairs: Final[dict[str, int]] = {}
DISTURBED.set_function(lambda: sum(_pairs.values()))


def measure(node: str, pairs: int) -> None:
    """Count the violations of a node."""
    _pairs[node] = pairs


def forget(node: str) -> None:
    """A node's SocketStatus is gone."""
    _pairs.pop(node, None)
