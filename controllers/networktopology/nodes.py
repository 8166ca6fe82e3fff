"""Follows the nodes of the cluster for the labels that say where they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from berth.kube.client import ApiClient
from berth.kube.objects import ObjectMeta
from berth.kube.reflector import Reflector
from berth.kube.resources import Resource
from berth.runtime.component import run_together
from controllers.networktopology.places import NodePlace, Places

LOOKS: Final = 5
"""Looks at where nodes are that may follow on each other. Each has every NetworkTopology looked at, and its status
written if places come or go; a kubelet may change the labels of its own node as often as it likes."""
LOOK_SECONDS: Final = 10.0
"""Seconds until there may be one more of them, if nodes go on moving."""
GATHER_SECONDS: Final = 0.2
"""Seconds for which moves are gathered before a look: nodes are labelled one after another."""


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
            changed: called soon after nodes came, went or moved, and at a pace if they go on moving.
        """
        self.reflector: Reflector[LabelledNode] = Reflector(client, NODE_LABELS)
        self.reflector.add_handler(self._node_changed)
        self._changed = changed
        self._moved = asyncio.Event()
        self._places: Places | None = None

    @property
    def places(self) -> Places:
        """Where the nodes are, or were a few seconds ago; the same object until that changes."""
        if self._places is None:
            nodes = self.reflector.objects.values()
            self._places = Places.of({node.metadata.name: NodePlace.of(node.metadata.labels) for node in nodes})
        return self._places

    async def run(self) -> None:
        """Follow them for ever."""
        await run_together(self.reflector.run(), self._look_again_and_again())

    async def _look_again_and_again(self) -> None:
        now = asyncio.get_running_loop().time
        left, counted = float(LOOKS), now()
        await self.reflector.synced.wait()
        while True:
            await self._moved.wait()
            await asyncio.sleep(max(GATHER_SECONDS, (1 - left) * LOOK_SECONDS - (now() - counted)))
            self._moved.clear()
            moment = now()
            left, counted = min(LOOKS, left + (moment - counted) / LOOK_SECONDS) - 1, moment
            self._places = None
            self._changed()

    def _node_changed(self, old: LabelledNode | None, new: LabelledNode | None) -> None:
        before = NodePlace.of(old.metadata.labels) if old is not None else None
        after = NodePlace.of(new.metadata.labels) if new is not None else None
        if before != after:
            self._moved.set()
