"""Services, and how the calls to each workload of an AppGroup are routed.

Routings are worked out when somebody asks, and kept until a Service of the namespace or the labels of the workload's
own pods change: a change in one namespace costs the others nothing. The rules are those of `berth.network.services`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from berth.api.labels import membership
from berth.kube.objects import Pod, Service
from berth.network.groups import Group, GroupKey
from berth.network.routing import Routing
from berth.network.services import ServiceIndex, routing_of

TOGETHER = 500
"""Workloads whose routings are worked out at a time: all thousands of a namespace would keep others waiting."""
_STATEFUL_SET = "StatefulSet"


@dataclass(frozen=True, slots=True)
class WorkloadRouting:
    """Which replicas of a workload its callers reach."""

    routing: Routing = Routing.ALL
    """how a replica is chosen"""
    service: str = ""
    """name of the Service that says so, empty when none selects the workload's pods"""
    settable: bool = True
    """whether the Service's trafficDistribution could change that: not where each replica is called by its own name,
    nor beside the annotation topology-mode"""


class _Workload(NamedTuple):
    group: GroupKey
    selector: str


class _Shape(NamedTuple):
    """What Services make of a pod; replicas of one template share it."""

    labels: frozenset[tuple[str, str]]
    stateful: bool


_Replica = tuple[_Workload, _Shape]
"""What is known of a pod."""


class ServiceTable:
    """Fed with every Service, and every pod while it is a member of an AppGroup."""

    def __init__(self) -> None:
        """Start empty."""
        self._services: defaultdict[str, dict[str, Service]] = defaultdict(dict)
        self._indexes: dict[str, ServiceIndex] = {}
        self._pods: dict[str, _Replica] = {}
        self._replicas: dict[_Replica, _Replica] = {}  # one object for all pods that are alike
        self._shapes: defaultdict[str, dict[_Workload, Counter[_Shape]]] = defaultdict(dict)
        self._known: defaultdict[str, dict[_Workload, WorkloadRouting]] = defaultdict(dict)

    def update(self, service: Service) -> bool:
        """A Service was added or changed; returns whether that can change a routing."""
        meta = service.metadata
        old = self._services[meta.namespace].get(meta.name)
        if old is not None and old.spec == service.spec and _route(old) == _route(service):
            return False
        self._services[meta.namespace][meta.name] = service
        self._changed(meta.namespace)
        return True

    def delete(self, service: Service) -> None:
        """A Service was deleted."""
        namespace = service.metadata.namespace
        if self._services[namespace].pop(service.metadata.name, None) is not None:
            self._changed(namespace)
        if not self._services[namespace]:
            del self._services[namespace]

    def join(self, pod: Pod) -> bool:
        """A live pod was added or changed; one outside any AppGroup is left alone.

        Returns whether its labels or owners are new, so that calls to its workload may be routed otherwise.
        """
        place, uid = membership(pod.metadata.labels), pod.metadata.uid
        if place is None:
            self.leave(uid)
            return False
        workload = _Workload(GroupKey(pod.metadata.namespace, place.appgroup), place.workload)
        stateful = any(owner.kind == _STATEFUL_SET for owner in pod.metadata.owner_references)
        now: _Replica = workload, _Shape(frozenset(pod.metadata.labels.items()), stateful)
        if self._pods.get(uid) == now:
            return False
        self.leave(uid)
        self._pods[uid] = now = self._replicas.setdefault(now, now)
        shapes = self._shapes[workload.group.namespace].setdefault(workload, Counter())
        shapes[now[1]] += 1
        if shapes[now[1]] == 1:
            self._forget(workload)
        return True

    def leave(self, uid: str) -> None:
        """A pod is no member any more."""
        if uid not in self._pods:
            return
        workload, shape = replica = self._pods.pop(uid)
        namespace = workload.group.namespace
        shapes = self._shapes[namespace][workload]
        shapes[shape] -= 1
        if not shapes[shape]:
            del shapes[shape], self._replicas[replica]
            self._forget(workload)
            if not shapes:
                del self._shapes[namespace][workload]
                if not self._shapes[namespace]:
                    del self._shapes[namespace]

    def routing(self, group: GroupKey, workload: str) -> WorkloadRouting:
        """How calls to a workload (by its selector) are routed: evenly to all while no Service selects a pod of it."""
        key = _Workload(group, workload)
        if key not in self._shapes.get(group.namespace, {}):
            return WorkloadRouting()  # not kept: no pod of it would take it away again
        known = self._known[group.namespace]
        if key not in known:
            self._route(key, known)
        return known[key]

    def keeps_near(self, group: Group) -> bool:
        """Whether some calls of an AppGroup that have a limit or bandwidth do not go to all endpoints."""
        return any(
            self.routing(group.key, edge.dependency).routing is not Routing.ALL
            for edge in group.edges
            if edge.bandwidth or edge.max_cost < math.inf
        )

    def unserved(self, group: Group) -> list[str]:
        """Workloads of an AppGroup, by selector, of which a Service could decide which replica is called; none does.

        One replica is what every call reaches, and members of a StatefulSet are called each by its own name.
        """
        of_all = self._shapes.get(group.key.namespace, {})
        found = []
        for name in sorted({edge.dependency for edge in group.edges}):
            if of_all.get(_Workload(group.key, name), Counter()).total() > 1:
                known = self.routing(group.key, name)
                if known.settable and not known.service:
                    found.append(name)
        return found

    def _forget(self, workload: _Workload) -> None:
        """Drop what was worked out for a workload, and its namespace with the last one."""
        namespace = workload.group.namespace
        known = self._known.get(namespace, {})
        known.pop(workload, None)
        if not known:
            self._known.pop(namespace, None)

    def _changed(self, namespace: str) -> None:
        """Drop what was worked out of the Services of a namespace."""
        self._known.pop(namespace, None)
        self._indexes.pop(namespace, None)

    def _route(self, asked: _Workload, known: dict[_Workload, WorkloadRouting]) -> None:
        """Work out what is asked and others of the namespace: one for itself costs nearly as much as some hundreds."""
        namespace = asked.group.namespace
        if namespace not in self._indexes:
            self._indexes[namespace] = ServiceIndex(self._services.get(namespace, {}).values())
        of_all = self._shapes[namespace]
        others = (key for key in of_all if key not in known and key != asked)
        wanted = [(key, of_all[key]) for key in (asked, *islice(others, TOGETHER - 1))]
        used = self._indexes[namespace].used([(key.selector, [s.labels for s in shapes]) for key, shapes in wanted])
        for (key, shapes), service in zip(wanted, used, strict=True):
            named = any(shape.stateful for shape in shapes)
            if service is None:
                known[key] = WorkloadRouting(settable=not named)
            elif named:
                known[key] = WorkloadRouting(Routing.ALL, service.metadata.name, settable=False)
            else:
                known[key] = _route(service)


def _route(service: Service) -> WorkloadRouting:
    spec = replace(service.spec, traffic_distribution=Routing.SAME_ZONE.value, internal_traffic_policy="Cluster")
    settable = routing_of(replace(service, spec=spec)) is Routing.SAME_ZONE
    return WorkloadRouting(routing_of(service), service.metadata.name, settable=settable)
