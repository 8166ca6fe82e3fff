"""The evaluator and Berth read the same Services and costs alike, without a line in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from bench.replicas.cluster import Cluster, read_cluster
from bench.replicas.evaluator import edge_results, endpoint_loads, routing
from bench.replicas.problems import GROUP, problem, waiting_pods
from bench.replicas.rules import violations
from berth.api.networktopology import NetworkTopology
from berth.kube.objects import Pod, Service
from berth.network.costs import Place, read_costs
from berth.network.groups import GroupKey
from berth.network.routing import Reach, Routing, edge_cost, reach
from berth.scheduling.cache.services import ServiceTable

SEEDS = range(60)


@dataclass(frozen=True)
class Both:
    """A generated problem with its pods on nodes drawn by lot."""

    documents: list[dict[str, Any]]
    cluster: Cluster

    @classmethod
    def of(cls, seed: int) -> Both:
        documents, random = problem(seed), Random(seed)
        cluster = read_cluster(documents)
        pods = [replace(pod, node=random.choice(list(cluster.nodes))) for pod in waiting_pods(documents)]
        return cls(documents, replace(cluster, pods=[*cluster.pods, *pods]))

    @cached_property
    def table(self) -> ServiceTable:
        table = ServiceTable()
        for item in self.documents:
            if item["kind"] == "Service":
                table.update(msgspec.convert(item, Service))
        for pod in self.cluster.pods:
            metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.name, "labels": dict(pod.labels)}
            table.join(msgspec.convert({"metadata": metadata}, Pod))
        return table

    @cached_property
    def places(self) -> dict[str, np.ndarray]:
        """Location of each node, and costs between locations."""
        found = [Place.of(node.labels) for node in self.cluster.nodes.values()]
        known = sorted(set(found), key=str)
        (topology,) = (item for item in self.documents if item["kind"] == "NetworkTopology")
        costs = read_costs(NetworkTopology.parse(topology)).matrix(known)
        return {"location": np.array([known.index(place) for place in found]), "location_cost": costs}

    @cached_property
    def zone(self) -> np.ndarray:
        zones = [node.zone for node in self.cluster.nodes.values()]
        known = sorted(set(zones) - {""})
        return np.array([known.index(zone) if zone else -1 for zone in zones])

    def counts(self, workload: str) -> np.ndarray:
        nodes = [pod.node for pod in self.cluster.members(GROUP)[workload]]
        return np.array([nodes.count(name) for name in self.cluster.nodes])

    def reach(self, callee: str) -> Reach:
        return reach(self.routing(callee), self.counts(callee), self.zone)

    def routing(self, workload: str) -> Routing:
        return self.table.routing(GroupKey(*GROUP), workload).routing


@pytest.mark.parametrize("seed", SEEDS)
def test_services_say_the_same(seed: int) -> None:
    both = Both.of(seed)
    members = both.cluster.members(GROUP)
    assert {name: both.routing(name).value for name in members} == {
        name: routing(both.cluster, name, pods) for name, pods in members.items()
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_edges_cost_the_same(seed: int) -> None:
    both = Both.of(seed)
    results = edge_results(both.cluster, both.cluster.groups[GROUP], both.cluster.members(GROUP))
    assert results
    for result in results:
        callers = both.counts(result.edge.caller)
        found = both.reach(result.edge.callee)
        assert edge_cost(callers, found.mean_costs(**both.places)) == pytest.approx(result.cost)
        assert float(callers @ (found.reached == 0)) / callers.sum() == pytest.approx(result.unreachable)


@pytest.mark.parametrize("seed", SEEDS)
def test_endpoints_are_loaded_the_same(seed: int) -> None:
    both = Both.of(seed)
    edges, members = both.cluster.groups[GROUP], both.cluster.members(GROUP)
    nodes = list(both.cluster.nodes)
    for callee in {edge.callee for edge in edges}:
        callers = sum(
            both.counts(edge.caller) / both.counts(edge.caller).sum() for edge in edges if edge.callee == callee
        )
        loads, endpoints = both.reach(callee).loads(callers), both.counts(callee)
        found = endpoint_loads(both.cluster, edges, members, callee)
        arrived = float(loads @ endpoints)
        for pod in members[callee] if found else []:
            even = arrived / endpoints.sum()
            assert loads[nodes.index(pod.node)] / even == pytest.approx(found[pod.name])
        assert bool(found) is (arrived > 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_limits_are_broken_the_same(seed: int) -> None:
    both = Both.of(seed)
    broken = {item.subject for item in violations(both.cluster) if item.rule == "maxNetworkCost"}
    expected = set()
    for edge in both.cluster.groups[GROUP]:
        if edge.limit is not None:
            reached = both.reach(edge.callee)
            location, costs = both.places["location"], both.places["location_cost"]
            beyond = costs[np.ix_(location, location)] > max(edge.limit, 1.0)
            np.fill_diagonal(beyond, False)
            far = {name for slot, name in enumerate(both.cluster.nodes) if beyond[slot, reached.shares(slot) > 0].any()}
            expected |= {pod.name for pod in both.cluster.members(GROUP)[edge.caller] if pod.node in far}
    assert broken == expected
