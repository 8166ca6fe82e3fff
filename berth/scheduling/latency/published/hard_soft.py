"""Hard and soft limit (LAIS-S): nodes beyond the hard one are left, and some beyond the soft one.

The soft condition: while, without it, half of all nodes or more would still be valid, the worst node that is beyond the
soft limit is left too. A node counts as valid until it is found to be beyond the hard limit, or was left for the soft
one: with one pod, of which a single node is measured at a time, no other reading gives the published results.
"""

from __future__ import annotations

from collections.abc import Sequence

from berth.scheduling.latency.classification import Limits
from berth.scheduling.latency.published import hard
from berth.scheduling.latency.published.search import Visited, measured


def leave(nodes: Sequence[Visited], limits: Limits) -> tuple[str, ...]:
    """Return the nodes that a round leaves: invalid ones, then hard-valid ones as the soft condition lets it."""
    invalid = hard.leave(nodes, limits)
    valid = sum(not node.dropped and (node.microseconds is None or node.microseconds <= limits.hard) for node in nodes)
    left = []
    for microseconds, node in measured(nodes):
        if limits.soft < microseconds <= limits.hard and 2 * (valid - 1) >= len(nodes):
            left.append(node.node)
            valid -= 1
    return (*invalid, *left)
