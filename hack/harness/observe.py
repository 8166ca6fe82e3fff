"""What happened to the pods, seen through a watch of our own, and judged from scratch."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from berth.kube.objects import CustomObject, Node, Pod
from berth.network.costs import NetworkCosts
from berth.network.edge_costs import node_places
from berth.network.edges import pod_edges
from berth.network.groups import read_group
from berth.network.members import Member
from berth.scheduling.requests import pod_requests
from berth.scheduling.units import resource_units


@dataclass(slots=True)
class PodLog:
    """Times of every pod, by uid, as the benchmark's own watch saw them."""

    created: dict[str, float] = field(default_factory=dict)
    """when the pod first appeared, or its creation was answered if that was earlier"""
    bound: dict[str, float] = field(default_factory=dict)
    """when it first had a node"""
    pods: dict[str, Pod] = field(default_factory=dict)
    """newest state"""
    rebound: int = 0
    """pods whose node changed after they had one: must stay 0"""

    def answered(self, uid: str) -> None:
        """The pod's creation was answered; a watch that lags would have it created later, and sooner bound."""
        self.created.setdefault(uid, time.monotonic())

    def note(self, _old: Pod | None, pod: Pod | None) -> None:
        """Handler of the watch."""
        if pod is None:
            return
        now, uid = time.monotonic(), pod.metadata.uid
        self.created.setdefault(uid, now)
        if pod.spec.node_name:
            old = self.pods.get(uid)
            if old is not None and old.spec.node_name and old.spec.node_name != pod.spec.node_name:
                self.rebound += 1
            self.bound.setdefault(uid, now)
        self.pods[uid] = pod


@dataclass(frozen=True, slots=True)
class Judgement:
    """Quality of a placement."""

    mean_edge_cost: float
    """network cost per dependency edge"""
    edges: int
    """edges with both ends placed"""
    overcommitted: int
    """nodes on which requests exceed allocatable"""
    nodes_used: int
    """nodes with at least one pod"""


def judge(pods: Sequence[Pod], groups: Sequence[CustomObject], nodes: Sequence[Node], costs: NetworkCosts) -> Judgement:
    """Cost of every dependency edge and over-commitment of every node, computed from the objects alone."""
    places = node_places(nodes)
    members: dict[tuple[str, str], list[Member]] = defaultdict(list)
    for pod in pods:
        labels = pod.metadata.labels
        key = (pod.metadata.namespace, labels.get("appgroup.diktyo.x-k8s.io", ""))
        if pod.spec.node_name:
            workload = labels.get("appgroup.diktyo.x-k8s.io.workload", "")
            members[key].append(Member(pod.metadata.uid, pod.key, workload, pod.spec.node_name))
    total, count = 0.0, 0
    for obj in groups:
        group = read_group(obj)
        for edge in pod_edges(group, members.get(group.key, [])):
            count += 1
            if edge.dependent.node != edge.dependency.node:
                cost = costs.between(places[edge.dependent.node], places[edge.dependency.node])
                total += costs.unknown_cost if cost is None else cost
    return Judgement(
        mean_edge_cost=total / count if count else float("nan"),
        edges=count,
        overcommitted=_overcommitted(pods, nodes),
        nodes_used=len({pod.spec.node_name for pod in pods if pod.spec.node_name}),
    )


def _overcommitted(pods: Sequence[Pod], nodes: Sequence[Node]) -> int:
    used: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for pod in pods:
        if pod.spec.node_name and not pod.finished:
            for name, amount in pod_requests(pod).items():
                used[pod.spec.node_name][name] += amount
            used[pod.spec.node_name]["pods"] += 1
    over = 0
    for node in nodes:
        free = {name: resource_units(name, q) for name, q in node.status.allocatable.items()}
        over += any(amount > free.get(name, 0) for name, amount in used[node.metadata.name].items())
    return over


def percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Median and 99th percentile."""
    if not seconds:
        return float("nan"), float("nan")
    low, high = np.percentile(np.asarray(seconds), [50, 99])
    return float(low), float(high)
