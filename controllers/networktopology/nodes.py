"""Follows the nodes of the cluster for the labels that say where they are."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from berth.kube.client import ApiClient
from berth.kube.objects import ObjectMeta
from berth.kube.reflector import Reflector
from berth.kube.resources import Resource
from controllers.networktopology.places import NodePlace, Places


class LabelledNode(msgspec.Struct, gc=False):
    """corev1.Node, cut down to its metadata."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


NODE_LABELS = Resource("", "v1", "nodes", "Node", LabelledNode, namespaced=False)
"""Nodes without spec and status: their images and conditions are most of a node and change all the time."""


class NodeWatch:
    """Keeps the places of all nodes and tells when they change; heartbeats are no change."""

    def __init__(self, client: ApiClient, *, changed: Callable[[], None]) -> None:
        """Prepare.

        Args:
            client: open API client.
            changed: called after a batch of events in which a node came, went or moved.
        """
        self.reflector: Reflector[LabelledNode] = Reflector(client, NODE_LABELS)
        self.reflector.add_handler(self._node_changed)
        self.reflector.add_batch_handler(self._batch_ended)
        self._changed = changed
        self._dirty = False
        self._places: Places | None = None

    @property
    def places(self) -> Places:
        """Where the nodes are now; the same object until something changes."""
        if self._places is None:
            nodes = self.reflector.objects.values()
            self._places = Places.of({node.metadata.name: NodePlace.of(node.metadata.labels) for node in nodes})
        return self._places

    def _node_changed(self, old: LabelledNode | None, new: LabelledNode | None) -> None:
        before = NodePlace.of(old.metadata.labels) if old is not None else None
        after = NodePlace.of(new.metadata.labels) if new is not None else None
        if before != after:
            self._dirty = True
            self._places = None

    def _batch_ended(self) -> None:
        if self._dirty:
            self._dirty = False
            self._changed()
