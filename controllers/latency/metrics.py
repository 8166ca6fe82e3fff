"""Every metric of this controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from berth.api.latencypolicy import Move

RECONCILE_SECONDS = Histogram(
    "berth_latency_reconcile_seconds",
    "Time to bring one LatencyPolicy up to date, with its writes.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
MESSAGES = Counter("berth_latency_messages_total", "Messages of meters, routers and node agents.", ["kind"])
MOVES = Counter("berth_latency_moves_total", "Moves of pods that have begun, or come to a further step.", ["outcome"])
EVICTED = Counter("berth_latency_evicted_pods_total", "Pods that were evicted.")
REFUSED = Counter(
    "berth_latency_evictions_refused_total", "Evictions that were refused, mostly by a PodDisruptionBudget."
)
PROBES = Counter("berth_latency_probes_ordered_total", "Addresses that nodes were told to probe.")
BEYOND = Gauge("berth_latency_policies_beyond_limits", "LatencyPolicies whose pods are beyond a limit.")

_beyond: Final[set[str]] = set()
BEYOND.set_function(lambda: len(_beyond))


def measure(policy: str, *, beyond: bool) -> None:
    """Count a policy."""
    (_beyond.add if beyond else _beyond.discard)(policy)


def count_moves(before: Sequence[Move], after: Sequence[Move]) -> None:
    """Count the steps that moves of a policy have come to."""
    known = {(move.pod, move.start_time): move.outcome for move in before}
    for move in after:
        if known.get((move.pod, move.start_time)) is not move.outcome:
            MOVES.labels(move.outcome.value).inc()


def forget(policy: str) -> None:
    """A policy is gone."""
    _beyond.discard(policy)
