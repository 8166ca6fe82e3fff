"""What the placement of each AppGroup is worth, as metrics that follow its pods, also those that are placed alone.

What is needed of the cache is copied on the event loop, a slice at a time; a thread works the figures out of the copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import structlog
from prometheus_client import Gauge

from berth.network.costs import NetworkCosts, Place
from berth.network.groups import Group, GroupKey
from berth.network.sites import Placed, Sites
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.services import WorkloadRouting
from berth.scheduling.configuration import PlacementConfiguration
from berth.scheduling.group_summary import placed_on, summarize
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
"""Part of the time that looks take at the most: large groups may change all the time."""
SLICE: Final = 0.005
"""Seconds for which the event loop reads the cache until others have a turn."""
_OF_PODS: Final = (REPLICATED_WORKLOADS, SURVIVE_NODE, SURVIVE_ZONE)
_OF_EDGES: Final = (MEAN_EDGE_COST, CROSS_ZONE_CALLS)


@dataclass(frozen=True, slots=True)
class _Placement:
    """An AppGroup and all that its figures depend on; nobody changes it any more."""

    group: Group
    placed: Placed
    routing: Mapping[str, WorkloadRouting]
    """how calls to its workloads are routed"""
    places: Mapping[str, Place]
    """where each node of the cluster stands"""
    costs: NetworkCosts


class GroupMetrics:
    """Gauges of AppGroups that Berth places pods of; a group without placed pods has none."""

    def __init__(
        self, cache: Cache, configuration: PlacementConfiguration, *, idle: Callable[[], Awaitable[None]]
    ) -> None:
        """Share the cache.

        Args:
            cache: pods, nodes, Services, AppGroups.
            configuration: which network costs count for a scheduler name.
            idle: waits until the cache belongs to the event loop.
        """
        self._cache = cache
        self._configuration = configuration
        self._idle = idle
        self._schedulers: dict[GroupKey, str] = {}
        self._due: set[GroupKey] = set()
        self._namespaces: set[str] = set()
        self._all = False
        self._places: Mapping[str, Place] = {}
        self._places_version = -1

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
                await self._look(key)
            except Exception:
                # One odd group must not stop the others, least of all their placement.
                log.exception("group not measured", group=str(key))
            await asyncio.sleep((perf_counter() - began) * (1 / SHARE - 1))

    async def _look(self, key: GroupKey) -> None:
        placement = await self._copy(key)
        if placement is None:
            _remove(key, *_OF_PODS, *_OF_EDGES)
            return
        if await self._unsure(key):
            self._due.add(key)
        figures = await asyncio.to_thread(_figures, placement)
        for gauge, figure in figures.items():
            gauge.labels(*key).set(figure)
        _remove(key, *(gauge for gauge in (*_OF_PODS, *_OF_EDGES) if gauge not in figures))

    async def _unsure(self, key: GroupKey) -> bool:
        """Whether pods of a group count that have no binding yet: no watch shows it when one is refused."""
        pace = _Pace(self._idle)
        for member in self._cache.members.placed(key):
            if self._cache.assumed(member.uid):
                return True
            await pace()
        return False

    async def _copy(self, key: GroupKey) -> _Placement | None:
        """What a group's figures depend on, None for a group that has none.

        What changes between two slices makes the group due again.
        """
        cache, pace = self._cache, _Pace(self._idle)
        if not cache.members.of(key):
            self._schedulers.pop(key, None)
        group, profile = cache.groups.get(key), self._configuration.profile_for(self._schedulers.get(key, ""))
        places = cache.members.places(key)
        if group is None or group.problem or profile is None or not places.workloads():
            return None
        nodes, costs = self._node_places(), cache.costs_for(key.namespace, profile)
        placed: dict[str, Mapping[str, int]] = {}
        routing: dict[str, WorkloadRouting] = {}
        for workload in places.workloads():
            placed[workload] = placed_on(places, workload, nodes)
            if not placed[workload]:
                del placed[workload]
            await pace()
        for callee in dict.fromkeys(edge.dependency for edge in group.edges):
            if callee in placed:
                routing[callee] = cache.services.routing(key, callee)
                await pace()
        return _Placement(group, placed, routing, nodes, costs)

    def _node_places(self) -> Mapping[str, Place]:
        """Where nodes stand now; a new mapping after a change."""
        state = self._cache.state
        if self._places_version != state.static_version:
            self._places_version = state.static_version
            self._places = {name: state.place(slot) for name, slot in state.node_index.items()}
        return self._places


class _Pace:
    """Gives others a turn after each slice."""

    def __init__(self, idle: Callable[[], Awaitable[None]]) -> None:
        self._idle = idle
        self._began = perf_counter()

    async def __call__(self) -> None:
        if perf_counter() - self._began >= SLICE:
            await asyncio.sleep(0)
            await self._idle()
            self._began = perf_counter()


def _figures(placement: _Placement) -> dict[Gauge, float]:
    """What the gauges of an AppGroup are to say; those that do not apply are left out."""
    sites = Sites.of(placement.places, placement.costs)
    found = summarize(placement.group, placement.placed, sites, placement.routing.__getitem__)
    figures: dict[Gauge, float] = {
        REPLICATED_WORKLOADS: found.survival.replicated,
        SURVIVE_NODE: found.survival.survive_node,
        SURVIVE_ZONE: found.survival.survive_zone,
    }
    if found.edges:
        figures |= {MEAN_EDGE_COST: found.mean_edge_cost, CROSS_ZONE_CALLS: found.cross_zone_share}
    return figures


def _remove(key: GroupKey, *gauges: Gauge) -> None:
    for gauge in gauges:
        with suppress(KeyError):
            gauge.remove(*key)
