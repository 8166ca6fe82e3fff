"""The minimum (LAIS-0): all nodes are visited, the worst is always left, and the search ends on the best."""

from __future__ import annotations

from collections.abc import Sequence

from berth.scheduling.latency.classification import Limits
from berth.scheduling.latency.published import search
from berth.scheduling.latency.published.search import Visited


def leave(nodes: Sequence[Visited], limits: Limits) -> tuple[str, ...]:  # noqa: ARG001 - a rule
    """Return the worst node with pods while some are not visited, then those that are not among the best."""
    there = search.measured(nodes)
    if any(not node.visits for node in nodes):
        return tuple(node.node for _, node in there[:1])
    best = {node.node for node in _best(nodes)}
    return tuple(node.node for _, node in there if node.node not in best)


def destination(nodes: Sequence[Visited]) -> str:
    """Return where a pod goes that was left: as by the other rules until all are visited, then the best without one."""
    if any(not node.visits for node in nodes):
        return search.destination(nodes)
    return next((node.node for node in _best(nodes) if not node.pods), search.destination(nodes))


def _best(nodes: Sequence[Visited]) -> list[Visited]:
    """As many nodes as there are pods, those with the lowest latency, best first."""
    known = [(node.microseconds, at) for at, node in enumerate(nodes) if node.microseconds is not None]
    return [nodes[at] for _, at in sorted(known)[: max(sum(node.pods for node in nodes), 1)]]
