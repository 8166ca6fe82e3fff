"""The networktopology controller: what starts a pass over a NetworkTopology, and who does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from berth.kube.client import ApiClient
from berth.runtime.component import ComponentContext, run_together
from berth.runtime.operator import Operator
from berth.runtime.workqueue import WorkQueue
from controllers.networktopology.configmaps import ConfigMapWatches
from controllers.networktopology.nodes import NodeWatch
from controllers.networktopology.reconciler import TOPOLOGIES, Reconciler
from controllers.networktopology.settings import NetworkTopologySettings

DEBOUNCE: Final = 0.2
"""Seconds for which changes are gathered before a pass: measurements and node labels come in bursts."""
WORKERS: Final = 4
"""NetworkTopologies that are worked on at the same time."""


class NetworkTopologyController:
    """Computes network costs and writes them into NetworkTopologies."""

    name = "networktopology"
    Settings = NetworkTopologySettings

    def __init__(self, context: ComponentContext, settings: NetworkTopologySettings) -> None:
        """Prepare without I/O."""
        self._context = context
        self._algorithm = settings.path_algorithm
        self._queue: WorkQueue[str] = WorkQueue()
        self._known: set[str] = set()
        self._nodes = NodeWatch(context.client, changed=self._on_nodes)
        self._operator = Operator(context, name=self.name)
        self._operator.on_event(TOPOLOGIES, self._on_topology)
        context.watch("nodes", self._nodes.reflector)

    async def run(self) -> None:
        """Work until cancelled."""
        context = self._context
        # Every watch keeps a connection, so they must not share the limit of ordinary requests.
        async with ApiClient(context.connection, user_agent=f"berth-{self.name}", max_connections=0) as watching:
            configmaps = ConfigMapWatches(watching, changed=self._on_configmap)
            reconciler = Reconciler(
                client=context.client,
                recorder=context.recorder,
                nodes=self._nodes,
                configmaps=configmaps,
                again=lambda key, delay: self._queue.add(key, delay=delay),
                algorithm=self._algorithm,
            )
            try:
                await run_together(self._nodes.run(), self._operator.run(), self._work(reconciler))
            finally:
                await configmaps.close()

    async def _work(self, reconciler: Reconciler) -> None:
        # Without the nodes' places every cost would be missing for a moment.
        await self._nodes.reflector.synced.wait()

        async def work(key: str) -> None:
            if not await reconciler.reconcile(key):
                self._known.discard(key)

        await self._queue.run(work, workers=WORKERS)

    def _on_topology(self, change: str | None, topology: Mapping[str, Any]) -> None:
        """A NetworkTopology was listed, came, changed or went."""
        key = f"{topology['metadata']['namespace']}/{topology['metadata']['name']}"
        if change == "DELETED":
            self._known.discard(key)
        else:
            self._known.add(key)
        self._queue.add(key, delay=DEBOUNCE)

    def _on_nodes(self) -> None:
        """A node came, went or moved to another place."""
        for key in self._known:
            self._queue.add(key, delay=DEBOUNCE)

    def _on_configmap(self, key: str) -> None:
        """The source of a NetworkTopology changed."""
        self._queue.add(key, delay=DEBOUNCE)
