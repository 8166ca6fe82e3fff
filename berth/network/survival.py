"""Which workloads of a placed AppGroup have a replica left whichever node, or whichever zone, fails."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from berth.network.sites import Placed, Sites


@dataclass(frozen=True, slots=True)
class Survival:
    """What is left after a failure, of workloads with two placed replicas or more: others cannot survive one."""

    replicated: int
    """workloads with two placed replicas or more"""
    lost_with_node: tuple[str, ...]
    """those of them that are all on one node, sorted"""
    lost_with_zone: tuple[str, ...]
    """those that are all in one zone, sorted; a node without a zone is a zone of its own"""

    @property
    def survive_node(self) -> int:
        """Workloads that have a replica left whichever node fails."""
        return self.replicated - len(self.lost_with_node)

    @property
    def survive_zone(self) -> int:
        """Workloads that have a replica left whichever zone fails."""
        return self.replicated - len(self.lost_with_zone)


def survival(placed: Placed, sites: Sites) -> Survival:
    """Judge a placement."""
    replicated = sorted(workload for workload, nodes in placed.items() if sum(nodes.values()) >= 2)
    zones: list[int] = sites.zone.tolist()

    def in_one_zone(nodes: Iterable[str]) -> bool:
        rows = [sites.row[node] for node in nodes]
        first = zones[rows[0]]
        return len(rows) == 1 or (first >= 0 and all(zones[row] == first for row in rows))

    return Survival(
        len(replicated),
        tuple(workload for workload in replicated if len(placed[workload]) == 1),
        tuple(workload for workload in replicated if in_one_zone(placed[workload])),
    )
