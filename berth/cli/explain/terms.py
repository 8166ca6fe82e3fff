"""What the terms of a decision are, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from berth.scheduling.decision import ALONE
from berth.scheduling.gang.strategies import REPLICAS

UNITS: Final = "lower is better; in units of network cost, where a call inside a zone costs 1"
NOTHING: Final = 1e-6
"""Amounts below are rounding."""
_JOINT: Final = {
    "network": "network cost to the pods that it talks to",
    "price": "price of what the pod requests on the node",
    "bandwidth": "price of the bandwidth of calls that leave the node",
    "userLatency": "round trip to its users, 1 for 0.1 ms; where a pod is awaited, 0 there and 600,000 elsewhere",
}
_REPLICAS: Final = {
    "network": "its share of what its calls cost, as Services route them: the mean of each edge, half to each end",
    "survival": "its share of the price of workloads that the failure of a single node or zone ends (5 and 1, if the "
    "AppGroup or profile does not say otherwise by spread)",
    "load": "how unevenly calls load the replicas of workloads whose Services keep calls near, at 5 a unit",
    "rules": "preferred (anti-)affinity and ScheduleAnyway spread that are not met, at 5 for a term of weight 100 or a "
    "pod beyond maxSkew",
    "scores": "points of plugins for what decides between nodes of equal cost, such as room left",
}


def meanings(strategy: str, terms: Mapping[str, float]) -> list[tuple[str, str]]:
    """Name and meaning of the terms that are not nearly 0, the largest first.

    Args:
        strategy: the decision's.
        terms: the largest amount of each term among the nodes that are shown.
    """
    known = {**_JOINT, **(_REPLICAS if strategy == REPLICAS else {})}
    charge = (
        "points of plugin {}, up to 100 times its weight"
        if strategy == ALONE
        else "what plugin {} charges for the node"
    )
    shown = sorted((name for name, value in terms.items() if abs(value) >= NOTHING), key=lambda name: -abs(terms[name]))
    return [
        (name, charge.format(name) if strategy == ALONE else known.get(name, charge.format(name))) for name in shown
    ]
