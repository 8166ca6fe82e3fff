"""A group of placed pods in a few lines, over nodes in two regions."""

from __future__ import annotations

import math

from berth.network.costs import NetworkCosts, Place
from berth.network.groups import Group, GroupEdge, GroupKey
from berth.network.members import Member

PLACES = {
    "a1": Place("r1", "a"),
    "a2": Place("r1", "a"),
    "b1": Place("r1", "b"),
    "x1": Place("r2", "x"),
    "bare": Place(),
}
COSTS = NetworkCosts(
    source="default/net", zones={("a", "b"): 5.0, ("b", "a"): 7.0}, regions={("r1", "r2"): 40.0, ("r2", "r1"): 40.0}
)


def group(*edges: tuple[str, str], limit: float = math.inf, bandwidth: int = 0) -> Group:
    selectors = tuple(dict.fromkeys(name for edge in edges for name in edge))
    return Group(
        key=GroupKey("default", "shop"),
        selectors=selectors,
        edges=tuple(GroupEdge(caller, called, bandwidth, limit) for caller, called in edges),
    )


def member(workload: str, node: str, number: int = 1) -> Member:
    return Member(f"{workload}-{number}", f"default/{workload}-{number}", workload, node)
