"""Places of nodes that network costs are stated for: those of zones alone where segments are too many."""

from __future__ import annotations

from dataclasses import replace

from berth.network.costs import Place
from berth.scheduling.cache.nodes import NodeTable

MOST_PLACES = 2000
"""Different places of nodes, segments included, up to which each has costs of its own: tables have a number for each
two of them, 32 MB."""


class NodePlaces:
    """Where nodes stand."""

    def __init__(self, nodes: NodeTable) -> None:
        """Share the nodes."""
        self._nodes = nodes
        self._version = -1
        self._many = False

    def segments_count(self, version: int) -> bool:
        """Whether nodes are told apart by their segments; not while they are in more than MOST_PLACES.

        Args:
            version: that of the nodes' labels.
        """
        if version != self._version:
            nodes = self._nodes.nodes[: self._nodes.count]
            self._many = len({Place.of(node.metadata.labels) for node in nodes if node is not None}) > MOST_PLACES
            self._version = version
        return not self._many

    def of(self, slot: int, version: int) -> Place:
        """Where the node in a slot stands; without its segment where these do not count.

        Args:
            slot: of a node.
            version: that of the nodes' labels.
        """
        node = self._nodes.nodes[slot]
        place = Place() if node is None else Place.of(node.metadata.labels)
        return place if self.segments_count(version) else replace(place, segment="")
