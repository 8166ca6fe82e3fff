"""How many replicas a Deployment has to have while its pods move: one more for each move. No I/O.

Each step is in the policy's status before the Deployment is scaled, and the next is not taken before this one was seen
to have come: so a controller that is started anew knows how far the last one was. A number that is neither the one
before nor the one after is somebody else's, and stays.
"""

from __future__ import annotations

from typing import NamedTuple

from berth.api.latencypolicy import Surge


class Scaling(NamedTuple):
    """What follows for the Deployment."""

    surge: Surge | None
    """what is to be remembered; None: the number is nobody's but the Deployment's"""
    write: tuple[int, int] | None = None
    """the number to replace, and the number instead; None: it is right, or not to be touched yet"""
    taken_over: bool = False
    """whether somebody else has set the number: what was being moved is given up"""


def scaling(surge: Surge | None, moves: int, replicas: int, *, settled: bool) -> Scaling:
    """Return what the number of replicas should be.

    Args:
        surge: what is remembered.
        moves: how many pods are moving.
        replicas: what the Deployment says.
        settled: whether replicas may be taken away: the pods beyond the number are there, and none of those that stay
            could be taken for one.
    """
    if surge is None:
        if not moves:
            return Scaling(None)
        surge = Surge(replicas=replicas, previous=replicas, wanted=replicas + moves)
        return Scaling(surge, write=(replicas, surge.wanted))
    if replicas == surge.wanted:
        surge = surge.model_copy(update={"seen": True})
    elif surge.seen or replicas != surge.previous:
        return Scaling(None, taken_over=moves > 0)
    else:
        return Scaling(surge, write=(surge.previous, surge.wanted))
    wanted = surge.replicas + moves
    if wanted == surge.wanted:
        return Scaling(None if not moves else surge)
    if wanted < surge.wanted and not settled:
        return Scaling(surge)
    after = Surge(replicas=surge.replicas, previous=surge.wanted, wanted=wanted)
    return Scaling(after, write=(after.previous, after.wanted))
