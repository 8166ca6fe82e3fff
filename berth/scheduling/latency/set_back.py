"""A clock that went ahead and was set back: what a status remembers of the time to come counts as of now.

Otherwise moves would never be overdue, agents not be asked, and measurements stand against all later ones until then.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar

from berth.api.base import ApiModel
from berth.api.latencypolicy import LatencyPolicyStatus
from berth.scheduling.latency.knowledge import LONGEST_REJECTION, whole

M = TypeVar("M", bound=ApiModel)


def as_of(status: LatencyPolicyStatus, now: datetime) -> LatencyPolicyStatus:
    """Return the status with no time later than now, and nodes rejected for no longer than any is."""
    present = whole(now)
    nodes = tuple(
        _at_most(_at_most(known, present, "time"), present + LONGEST_REJECTION, "rejected_until")
        for known in status.nodes
    )
    moves = tuple(_at_most(move, present, "start_time", "ready_time") for move in status.moves)
    associations = tuple(_at_most(each, present, "last_seen_time") for each in status.associations)
    found = _at_most(status, present, "probed_time", "unreachable_time", "fewer_time")
    if found.search is not None:
        found = found.model_copy(update={"search": _at_most(found.search, present, "start_time", "round_time")})
    if (nodes, moves, associations) == (status.nodes, status.moves, status.associations):
        return found
    return found.model_copy(update={"nodes": nodes, "moves": moves, "associations": associations})


def _at_most(model: M, latest: datetime, *fields: str) -> M:
    late: dict[str, Any] = {
        field: latest for field in fields if (time := getattr(model, field)) is not None and time > latest
    }
    return model.model_copy(update=late) if late else model
