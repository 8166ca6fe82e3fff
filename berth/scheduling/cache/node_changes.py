"""What has changed of a node between two looks at it, as far as filters read it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, auto
from typing import TYPE_CHECKING

from berth.api.labels import BERTH_PREFIX, RESOURCE_BANDWIDTH, TOPOLOGY_LEVELS

if TYPE_CHECKING:
    from berth.kube.objects import Node


class NodePart(Flag):
    """What of a node may change while a pod is assumed on it; taints and cordons are looked at apart."""

    PLACE = auto()
    """its region, zone or segment"""
    AMOUNTS = auto()
    """what it can give"""
    LINK = auto()
    """of that, the bandwidth"""
    SETTINGS = auto()
    """its annotations that are settings of ours"""
    FEATURES = auto()
    """what its kubelet declares"""


NOTHING = NodePart(0)


def node_settings(node: Node) -> dict[str, str]:
    """The node's annotations that are settings of ours."""
    return {name: value for name, value in node.metadata.annotations.items() if name.startswith(BERTH_PREFIX)}


@dataclass(frozen=True, slots=True)
class NodeChange:
    """What differs between two states of a node."""

    parts: NodePart
    """parts that differ"""
    labels: frozenset[str]
    """keys of labels that differ"""

    @classmethod
    def between(cls, one: Node, other: Node) -> NodeChange:
        """Compare two states."""
        if one is other:
            return UNCHANGED
        before, after = one.metadata.labels.items(), other.metadata.labels.items()
        labels = frozenset(key for key, _ in before ^ after)
        amounts, now = one.status.allocatable, other.status.allocatable
        differs = {
            NodePart.PLACE: not labels.isdisjoint(TOPOLOGY_LEVELS),
            NodePart.AMOUNTS: amounts != now,
            NodePart.LINK: amounts.get(RESOURCE_BANDWIDTH) != now.get(RESOURCE_BANDWIDTH),
            NodePart.SETTINGS: node_settings(one) != node_settings(other),
            NodePart.FEATURES: one.status.declared_features != other.status.declared_features,
        }
        parts = NOTHING
        for part in (part for part, different in differs.items() if different):
            parts |= part
        return cls(parts, labels)

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.parts or self.labels)


UNCHANGED = NodeChange(NOTHING, frozenset())
