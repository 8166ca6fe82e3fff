"""Where the pods of an AppGroup are, and what fails together, in node slots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from berth.api.labels import LABEL_APPGROUP, LABEL_WORKLOAD
from berth.network.costs import Place
from berth.network.groups import Group
from berth.network.routing import zone_numbers
from berth.scheduling.cache.counts import add_count
from berth.scheduling.cache.nodes import ZONE
from berth.scheduling.cache.pod_record import PodRecord
from berth.scheduling.cache.pods import PodGroup
from berth.scheduling.cache.selectors import EVERYTHING, Selector
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.gang.problem import Infrastructure
from berth.scheduling.replicas.problem import Nodes

Ints = npt.NDArray[np.int64]


def placed_replicas(
    group: Group, state: ClusterState, workloads: Iterable[str] | None = None, *, without: Iterable[PodRecord] = ()
) -> dict[str, dict[int, int]]:
    """Pods of an AppGroup by workload and node slot; those that are being deleted are called no more.

    Args:
        group: the AppGroup.
        state: the cluster.
        workloads: selectors of the workloads to look at; None: all.
        without: placed pods of these workloads that are not to be counted.
    """
    found: dict[str, dict[int, int]] = {}
    for workload, pods in member_pods(group, state, workloads):
        if pods.staying:
            counts = found.setdefault(workload, {})
            for slot, count in pods.staying.items():
                counts[slot] = counts.get(slot, 0) + count
    for pod in without:
        home = state.node_index.get(pod.node_name)
        if home is not None and not pod.terminating:
            workload = pod.template.labels.get(LABEL_WORKLOAD, "")
            add_count(found[workload], home, -1)
            if not found[workload]:
                del found[workload]
    return found


def member_pods(
    group: Group, state: ClusterState, workloads: Iterable[str] | None = None
) -> Iterator[tuple[str, PodGroup]]:
    """Placed pods of an AppGroup, or of some workloads of it, that no selector tells apart; with their workload."""
    if workloads is None:
        for pods in state.pods.matching(group.key.namespace, _members(group.key.name)):
            yield pods.labels.get(LABEL_WORKLOAD, ""), pods
        return
    for workload in workloads:
        for pods in state.pods.matching(group.key.namespace, _members(group.key.name, workload)):
            yield workload, pods


@lru_cache(maxsize=4096)
def _members(group: str, workload: str | None = None) -> Selector:
    labels = {LABEL_APPGROUP: group}
    return EVERYTHING.also(labels if workload is None else {**labels, LABEL_WORKLOAD: workload})


def failure_zones(state: ClusterState) -> Ints:
    """int64[N], what fails together: the zone of each node as a number, a number of its own without the label."""
    zone = state.domains(ZONE).astype(np.int64)
    alone = np.flatnonzero(zone < 0)
    zone[alone] = zone.max(initial=-1) + 1 + np.arange(len(alone))
    return zone


@dataclass(frozen=True, slots=True)
class Kinds:
    """Nodes that the objective does not tell apart while none of their pods has to do with the pod in question."""

    infrastructure: Infrastructure
    """the cluster that this is about"""
    nodes: Nodes
    """its nodes, without their room"""
    kind: Ints
    """int64[N], those of one location and zone have one number"""
    first: Ints
    """int64[kinds], a node of each kind"""
    zone: Ints
    """int64[kinds], what fails together with a node of each kind that has no pods: its zone, or nothing else"""

    @classmethod
    def of(cls, state: ClusterState, infrastructure: Infrastructure, places: Sequence[Place]) -> Kinds:
        """Sort the nodes of a cluster; `places` are what its locations stand for."""
        location, zone = infrastructure.location.astype(np.int64), state.domains(ZONE).astype(np.int64)
        _, first, kind = np.unique(
            location * (zone.max(initial=0) + 2) + zone + 1, return_index=True, return_inverse=True
        )
        fails = failure_zones(state)
        nodes = Nodes(
            free=np.zeros((state.size, 0), dtype=np.int64),
            location=location,
            location_cost=infrastructure.location_cost,
            zone=fails,
            service_zone=zone_numbers(places),
        )
        alone = fails.max(initial=-1) + 1 + np.arange(len(first))
        return cls(infrastructure, nodes, kind.reshape(-1), first, np.where(zone[first] < 0, alone, zone[first]))

    def one_of_each(self, homes: Ints) -> Nodes:
        """A node of each kind that has no pods, and then those that have some, int64[H]."""
        nodes, columns = self.nodes, np.append(self.first, homes)
        return replace(
            nodes,
            free=nodes.free[columns],
            location=nodes.location[columns],
            zone=np.append(self.zone, nodes.zone[homes]),
        )
