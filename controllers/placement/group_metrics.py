"""What the placement of each AppGroup is worth, as metrics that follow its pods, also those that are placed alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import perf_counter
from typing import Final

import structlog
from prometheus_client import Gauge

from berth.network.groups import GroupKey
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import PlacementConfiguration
from berth.scheduling.gang.infrastructure import InfrastructureView
from berth.scheduling.group_summary import group_summary
from controllers.placement.metrics import (
    CROSS_ZONE_CALLS,
    MEAN_EDGE_COST,
    REPLICATED_WORKLOADS,
    SURVIVE_NODE,
    SURVIVE_ZONE,
)

log = structlog.get_logger(__name__)

REFRESH_SECONDS: Final = 10.0
"""How long changes are gathered: a group that changes all the time costs one look in that time."""
SHARE: Final = 0.1
"""Part of its time that the event loop spends on looks at the most: large groups may change all the time."""
_OF_PODS: Final = (REPLICATED_WORKLOADS, SURVIVE_NODE, SURVIVE_ZONE)
_OF_EDGES: Final = (MEAN_EDGE_COST, CROSS_ZONE_CALLS)


class GroupMetrics:
    """Gauges of AppGroups that Berth places pods of; a group without placed pods has none."""

    def __init__(
        self,
        cache: Cache,
        configuration: PlacementConfiguration,
        *,
        view: Callable[[str], InfrastructureView],
        idle: Callable[[], Awaitable[None]],
    ) -> None:
        """Share the cache.

        Args:
            cache: pods, nodes, Services, AppGroups.
            configuration: which network costs count for a scheduler name.
            view: the cluster as the planner of a scheduler name sees it.
            idle: waits until cache and view belong to the event loop.
        """
        self._cache = cache
        self._configuration = configuration
        self._view = view
        self._idle = idle
        self._schedulers: dict[GroupKey, str] = {}
        self._due: set[GroupKey] = set()
        self._namespaces: set[str] = set()
        self._all = False

    def pod_changed(self, key: GroupKey, scheduler: str) -> None:
        """A pod of a group came, went or moved; `scheduler` is whose pod it is."""
        self._schedulers[key] = scheduler
        self._due.add(key)

    def group_changed(self, key: GroupKey) -> None:
        """An AppGroup came, went or was edited."""
        self._due.add(key)

    def namespace_changed(self, namespace: str) -> None:
        """Calls in a namespace may be routed otherwise, or cost otherwise."""
        self._namespaces.add(namespace)

    def costs_changed(self) -> None:
        """Network costs, or the places of nodes, are others."""
        self._all = True

    async def run(self) -> None:
        """Follow changes until cancelled."""
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            await self.refresh()

    async def refresh(self) -> None:
        """Look at the groups that changed, one after another; others have most of the time in between."""
        due, namespaces, everything = self._due, self._namespaces, self._all
        self._due, self._namespaces, self._all = set(), set(), False
        if everything or namespaces:
            due |= {key for key in self._schedulers if everything or key.namespace in namespaces}
        for key in sorted(due):
            await self._idle()
            began = perf_counter()
            try:
                self._look(key)
            except Exception:
                # One odd group must not stop the others, least of all their placement.
                log.exception("group not measured", group=str(key))
            await asyncio.sleep((perf_counter() - began) * (1 / SHARE - 1))

    def _look(self, key: GroupKey) -> None:
        members = self._cache.members
        if not members.of(key):
            self._schedulers.pop(key, None)
        group, scheduler = self._cache.groups.get(key), self._schedulers.get(key, "")
        profile = self._configuration.profile_for(scheduler)
        if group is None or group.problem or profile is None or not members.placed(key):
            _remove(key, *_OF_PODS, *_OF_EDGES)
            return
        found = group_summary(group, self._cache, self._view(scheduler), self._cache.costs_for(key.namespace, profile))
        REPLICATED_WORKLOADS.labels(*key).set(found.survival.replicated)
        SURVIVE_NODE.labels(*key).set(found.survival.survive_node)
        SURVIVE_ZONE.labels(*key).set(found.survival.survive_zone)
        if not found.edges:
            _remove(key, *_OF_EDGES)
            return
        MEAN_EDGE_COST.labels(*key).set(found.mean_edge_cost)
        CROSS_ZONE_CALLS.labels(*key).set(found.cross_zone_share)


def _remove(key: GroupKey, *gauges: Gauge) -> None:
    for gauge in gauges:
        with suppress(KeyError):
            gauge.remove(*key)
