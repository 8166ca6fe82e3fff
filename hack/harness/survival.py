"""What is left of an application when a node or a zone fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from berth.api.labels import membership
from berth.kube.objects import Node, Pod
from berth.network.edge_costs import node_places


@dataclass(frozen=True, slots=True)
class Survival:
    """Workloads that keep at least one replica."""

    workloads: int
    """workloads with a pod that has a node"""
    worst_node: int
    """how many of them are left when the node fails whose loss hurts most"""
    worst_zone: int
    """the same for zones"""


def survival(pods: Sequence[Pod], nodes: Iterable[Node]) -> Survival:
    """Judge a placement; pods without a node, or that belong to no AppGroup, do not count."""
    zones = {name: place.zone for name, place in node_places(nodes).items()}
    by_node: dict[str, set[str]] = {}
    for pod in pods:
        member = membership(pod.metadata.labels)
        if member is not None and pod.spec.node_name and not pod.finished:
            by_node.setdefault(member.workload, set()).add(pod.spec.node_name)
    by_zone = {workload: {zones.get(node, "") for node in where} for workload, where in by_node.items()}
    return Survival(len(by_node), _left(by_node), _left(by_zone))


def _left(places: Mapping[str, set[str]]) -> int:
    """Workloads with a replica elsewhere, at the loss of the place where fewest have one."""
    everywhere = set().union(*places.values())
    return min((sum(bool(where - {lost}) for where in places.values()) for lost in everywhere), default=0)
