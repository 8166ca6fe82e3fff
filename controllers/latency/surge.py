"""How many replicas a Deployment has to have: one more for each move, and as many as users need. No I/O.

Each step is in the policy's status before the Deployment is scaled, and the next is not taken before this one was seen
to have come: so a controller that is started anew knows how far the last one was. A number that is neither the one
before nor the one after is somebody else's, and stays.

Fewer come by an eviction: the pod that is to go is evicted while the number is as before, and the number follows once
there is another in its place, which is the one that the ReplicaSet deletes.
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

    @property
    def fewer(self) -> bool:
        """Whether the ReplicaSet is to delete pods."""
        return self.write is not None and self.write[1] < self.write[0]


def scaling(
    surge: Surge | None,
    moves: int,
    replicas: int,
    *,
    settled: bool,
    wanted: int | None = None,
    leaving: str | None = None,
    gone: bool = False,
    refused: bool = False,
    deployment: str | None = None,
) -> Scaling:
    """Return what the number of replicas should be.

    Args:
        surge: what is remembered.
        moves: how many pods are moving.
        replicas: what the Deployment says.
        settled: whether replicas may be taken away: the pods beyond the number are there, and none of those that stay
            could be taken for one.
        wanted: how many there should be but for moves; None: as many as there are.
        leaving: pod that is to go where fewer are wanted.
        gone: whether the one that is remembered to be leaving is not there any more.
        refused: whether the API server has refused the number that was wanted last.
        deployment: uid of the Deployment; `surge` is not of another.
    """
    if surge is None:
        if wanted is not None and wanted < replicas and not moves:
            return Scaling(_leaving(replicas, leaving, deployment) if leaving else None)
        base = replicas if wanted is None or moves else wanted
        if base + moves == replicas:
            return Scaling(None)
        surge = Surge(replicas=base, previous=replicas, wanted=base + moves, deployment=deployment)
        return Scaling(surge, write=(replicas, surge.wanted))
    if replicas == surge.wanted:
        surge = surge.model_copy(update={"seen": True})
    elif surge.seen or replicas != surge.previous:
        return Scaling(None, taken_over=moves > 0)
    elif refused and surge.replicas + moves == replicas:
        # The move that it was for was given up, or another takes what was to go.
        surge = surge.model_copy(update={"wanted": replicas, "seen": True})
    elif refused and not moves and wanted == replicas:
        return Scaling(None)  # the users that it was for have gone
    else:
        return Scaling(surge, write=(surge.previous, surge.wanted))
    base = surge.replicas
    if surge.leaving is not None and gone:
        base = max(0, base - 1)  # somebody may have written that of no replicas one leaves
    elif surge.leaving is not None and wanted is not None and wanted < base and not moves:
        return Scaling(surge)
    if base + moves == surge.wanted:
        return Scaling(surge.model_copy(update={"replicas": base, "leaving": None}) if moves else None)
    if base + moves < surge.wanted and not settled:
        return Scaling(surge)
    after = Surge(replicas=base, previous=surge.wanted, wanted=base + moves, deployment=deployment)
    return Scaling(after, write=(after.previous, after.wanted))


def let_down(surge: Surge, replicas: int) -> tuple[int, int] | None:
    """Return the number to replace, and the number instead, once the policy is gone; None: it is right, or not ours.

    Args:
        surge: what was remembered last.
        replicas: what the Deployment says.
    """
    ours = replicas == surge.wanted or (replicas == surge.previous and not surge.seen)
    return (replicas, surge.replicas) if ours and replicas > surge.replicas else None


def is_of_another(surge: Surge | None, deployment: str) -> bool:
    """Return whether what is remembered is of a Deployment of the same name that is gone; `deployment`: its uid now."""
    return surge is not None and surge.deployment not in (None, deployment)


def _leaving(replicas: int, pod: str, deployment: str | None) -> Surge:
    """A pod goes, and the number stays until it has gone."""
    return Surge(replicas=replicas, previous=replicas, wanted=replicas, seen=True, leaving=pod, deployment=deployment)
