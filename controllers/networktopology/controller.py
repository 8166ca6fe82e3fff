"""The networktopology controller: its parts, and how they start."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final

from berth.kube.resources import NETWORK_TOPOLOGIES
from berth.runtime.component import ComponentContext, run_together
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.settings import ComponentSettings
from berth.runtime.workqueue import WorkQueue
from controllers.networktopology.handlers import DEBOUNCE, Handlers
from controllers.networktopology.nodes import NodeWatch
from controllers.networktopology.reconciler import Reconciler
from controllers.networktopology.settings import NetworkTopologySettings
from controllers.networktopology.sources.base import TopologyKey
from controllers.networktopology.sources.registry import Sources

WORKERS: Final = 4
"""NetworkTopologies that are worked on at the same time."""


class NetworkTopologyController:
    """Computes network costs and writes them into NetworkTopologies."""

    Settings: ClassVar[type[ComponentSettings]] = NetworkTopologySettings

    def __init__(self, context: ComponentContext, settings: NetworkTopologySettings) -> None:
        """Prepare without I/O."""
        self._context = context
        self._settings = settings
        self._queue: WorkQueue[TopologyKey] = WorkQueue(lambda key: key.namespace)
        self._versions: SeenVersions[TopologyKey] = SeenVersions(partial(self._queue.add, delay=DEBOUNCE))
        self._handlers = Handlers(self._queue, self._versions)
        self._nodes = NodeWatch(context.client, changed=self._handlers.nodes_changed)
        context.watch("nodes", self._nodes.reflector)

    async def run(self) -> None:
        """Work until cancelled."""
        context, queue, settings = self._context, self._queue, self._settings
        sources = Sources(
            context,
            client=context.client,
            changed=self._handlers.source_changed,
            settings=settings.of_sources(),
        )
        reconciler = Reconciler(
            client=context.client,
            recorder=context.recorder,
            nodes=self._nodes,
            sources=sources,
            queue=queue,
            versions=self._versions,
            algorithm=settings.path_algorithm,
            cost_unit=settings.cost_unit_microseconds,
        )
        await run_together(
            self._nodes.run(),
            sources.run(),
            context.operator.follow(context, NETWORK_TOPOLOGIES, self._handlers.register, listed=self._handlers.listed),
            self._work(reconciler),
        )

    async def _work(self, reconciler: Reconciler) -> None:
        # Without the nodes' places every cost would be missing for a moment.
        await self._nodes.reflector.synced.wait()
        await self._queue.run(reconciler.reconcile, workers=WORKERS)
