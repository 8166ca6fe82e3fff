"""What the placement of an AppGroup is worth as its pods are now: what it survives, and what its calls cost."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from berth.network.service_settings import Advice, advise
from berth.network.sites import Placed, Sites
from berth.network.survival import Survival, survival
from berth.network.traffic import EdgeTraffic, Traffic, cross_zone_share, mean_cost
from berth.network.workload_places import WorkloadPlaces
from berth.scheduling.cache.nodes import ZONE
from berth.scheduling.cache.services import WorkloadRouting

if TYPE_CHECKING:
    from berth.network.costs import NetworkCosts
    from berth.network.groups import Group, GroupKey
    from berth.scheduling.cache.cache import Cache
    from berth.scheduling.gang.infrastructure import InfrastructureView

RoutingOf = Callable[[str], WorkloadRouting]
"""How calls to a workload are routed."""


@dataclass(frozen=True)
class GroupSummary:
    """Figures of docs/concepts/replicas.md."""

    survival: Survival
    """workloads that survive failures"""
    edges: tuple[EdgeTraffic, ...]
    """dependencies with placed pods at both ends"""
    _traffic: Traffic
    _routing: RoutingOf

    @cached_property
    def mean_edge_cost(self) -> float:
        """Mean over the edges of what their calls cost; 0 without edges."""
        return mean_cost(self.edges)

    @cached_property
    def cross_zone_share(self) -> float:
        """Share of the calls that leave the caller's zone."""
        return cross_zone_share(self.edges)

    def advice(self) -> Advice:
        """Settings of Services that would make calls cheaper; computed when asked."""
        return advise(self._traffic, self.edges, lambda workload: self._routing(workload).settable)


def summarize(group: Group, placed: Placed, sites: Sites, routing: RoutingOf) -> GroupSummary:
    """Judge a placement.

    Args:
        group: the AppGroup.
        placed: its pods that count, see :func:`placed_pods`.
        sites: the nodes of the cluster.
        routing: how calls to its workloads are routed.
    """
    traffic = Traffic(group.edges, placed, sites)
    edges = traffic.routed(lambda workload: routing(workload).routing)
    return GroupSummary(survival(placed, sites), tuple(edges), traffic, routing)


def placed_pods(key: GroupKey, cache: Cache) -> Placed:
    """Pods of an AppGroup by workload and node; those that are being deleted are called no more."""
    places, known = cache.members.places(key), cache.state.node_index
    found = ((workload, placed_on(places, workload, known)) for workload in places.workloads())
    return {workload: nodes for workload, nodes in found if nodes}


def placed_on(places: WorkloadPlaces, workload: str, known: Container[str]) -> dict[str, int]:
    """Pods of a workload that count, by node; nodes that are not known have none."""
    return {node: count for node, count in places.staying(workload).items() if node in known}


def group_summary(group: Group, cache: Cache, view: InfrastructureView, costs: NetworkCosts) -> GroupSummary:
    """Judge the placement of an AppGroup by what is bound and assumed now."""
    model = view.current(costs, cache.bandwidth()).infrastructure
    sites = Sites(
        row=cache.state.node_index,
        location=model.location,
        location_cost=model.location_cost,
        zone=cache.state.domains(ZONE),
    )
    return summarize(
        group, placed_pods(group.key, cache), sites, lambda workload: cache.services.routing(group.key, workload)
    )
