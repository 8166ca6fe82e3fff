"""What the networktopology controller reacts to. Every handler only says which NetworkTopologies are due."""

from __future__ import annotations

from typing import Any, Final

import kopf

from berth.kube.resources import NETWORK_TOPOLOGIES
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.workqueue import WorkQueue
from controllers.networktopology.sources.base import TopologyKey

DEBOUNCE: Final = 0.2
"""Seconds for which changes are gathered before a pass: measurements and node labels come in bursts."""


class Handlers:
    """All handlers of the controller."""

    def __init__(self, queue: WorkQueue[TopologyKey], versions: SeenVersions[TopologyKey]) -> None:
        """Prepare; ``queue`` gets the keys, ``versions`` says of which there is news."""
        self._queue = queue
        self._versions = versions

    def register(self, registry: kopf.OperatorRegistry) -> None:
        """Register what kopf calls."""

        @kopf.on.event(*NETWORK_TOPOLOGIES.names, registry=registry)
        def topology_changed(namespace: str | None, name: str, meta: kopf.Meta, **_: Any) -> None:
            """A NetworkTopology was listed, created, changed or deleted."""
            self._versions.note(TopologyKey(namespace or "", name), meta["resourceVersion"])

    def listed(self) -> None:
        """All NetworkTopologies were listed anew; some of those known may have gone unseen."""
        self._versions.clear()
        self._queue.add_known()

    def nodes_changed(self) -> None:
        """A node came, went or moved to another place."""
        self._queue.add_known(delay=DEBOUNCE)

    def source_changed(self, key: TopologyKey) -> None:
        """A source of the NetworkTopology ``key`` has something new to say."""
        self._queue.add(key, delay=DEBOUNCE)
