"""How long a status may wait to be written, and a policy to be looked at again. No I/O.

Figures change all the time, and what is done must be remembered first.
"""

from __future__ import annotations

from typing import Any, Final

from berth.api.latencypolicy import LatencyPolicyStatus

ROUTED_DELAY: Final = 1.0
"""Seconds from one write to the next for users who have another pod, at least."""
ROUTED_DELAY_EACH: Final = 0.01
"""The same for each user in the status: a thousand are written as often as figures are."""
SHARE: Final = 0.1
"""Share of the time that one policy may take: a thousand users and 256 nodes take half a second."""
LONGEST_REST: Final = 10.0
"""Seconds that a policy is left alone for that at most."""
SHORT: Final = 0.02
"""Seconds that nobody else notices: no rest follows."""
_FIGURES: Final[dict[str, Any]] = {
    "nodes": (),
    "conditions": (),
    "state": None,
    "p50": None,
    "associations": (),
    "fewer_time": None,
}


def patience(before: LatencyPolicyStatus, after: LatencyPolicyStatus, interval: float) -> float:
    """Return the seconds that have to pass from the last write of a status until it is written again.

    Args:
        before: as it was written.
        after: as it is to be.
        interval: seconds between writes of figures that change nothing else.
    """
    if _without_figures(after) != _without_figures(before):
        return 0.0
    if _nodes_of_users(after) != _nodes_of_users(before):
        return min(interval, max(ROUTED_DELAY, len(after.associations) * ROUTED_DELAY_EACH))
    return interval


def rest_after(seconds: float) -> float:
    """Return the seconds until a policy is looked at again that took so many, of a processor."""
    return min(LONGEST_REST, seconds * (1 / SHARE - 1)) if seconds > SHORT else 0.0


def _without_figures(status: LatencyPolicyStatus) -> dict[str, Any]:
    """What a status says but for figures that change all the time, and what is told of them."""
    nodes = [(each.node, each.state, each.rejections, each.rejected_until) for each in status.nodes]
    told = [(each.type, each.status, each.reason, each.observed_generation) for each in status.conditions]
    rest = status.model_copy(update=_FIGURES)
    if rest.search is not None:
        begun = rest.search.start_time
        rest = rest.model_copy(update={"search": rest.search.model_copy(update={"round_time": begun})})
    return {"nodes": nodes, "conditions": told, "rest": rest.to_api()}


def _nodes_of_users(status: LatencyPolicyStatus) -> list[tuple[str, str]]:
    return [(each.user, each.node) for each in status.associations]
