"""Why nodes do not take a pod, as data: from the filter to the Event, the annotation and ``berth explain``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rejection:
    """Nodes that one plugin ruled out for one reason."""

    plugin: str
    """name of the plugin"""
    reason: str
    """in kube-scheduler's words, e.g. ``Insufficient cpu``"""
    count: int
    """number of nodes"""


def merged(rejections: Iterable[Rejection]) -> tuple[Rejection, ...]:
    """Return the rejections with those of one plugin and one reason added up, in order of first sight."""
    counts: dict[tuple[str, str], int] = {}
    for item in rejections:
        counts[item.plugin, item.reason] = counts.get((item.plugin, item.reason), 0) + item.count
    return tuple(Rejection(plugin, reason, count) for (plugin, reason), count in counts.items())


def sentence(rejections: Iterable[Rejection], *, feasible: int, nodes: int) -> str:
    """Return the rejections in the words of kube-scheduler's FailedScheduling Event.

    For example ``0/24 nodes are available: 20 Insufficient cpu, 4 node(s) had untolerated taint(s).``
    """
    counts: dict[str, int] = {}
    for rejection in rejections:
        counts[rejection.reason] = counts.get(rejection.reason, 0) + rejection.count
    parts = sorted(f"{count} {reason}" for reason, count in counts.items())
    head = f"{feasible}/{nodes} nodes are available"
    return f"{head}: {', '.join(parts)}." if parts else f"{head}."
