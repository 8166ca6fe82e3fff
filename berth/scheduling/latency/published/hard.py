"""Hard limit alone (LAIS-H): nodes beyond it are left."""

from __future__ import annotations

from collections.abc import Sequence

from berth.scheduling.latency.classification import Limits
from berth.scheduling.latency.published.search import Visited, measured


def leave(nodes: Sequence[Visited], limits: Limits) -> tuple[str, ...]:
    """Return nodes with pods that were measured beyond the hard limit, worst first."""
    return tuple(node.node for microseconds, node in measured(nodes) if microseconds > limits.hard)
