"""The objective of docs/concepts/replicas.md, summed up pod by pod."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.replicas.cluster import Cluster, Manifest, Node, Pod
from bench.replicas.evaluator import ALL, Group, edge_results, endpoint_loads, routing
from bench.replicas.rules import DEFAULT_SPREAD, soft_rules
from bench.replicas.selection import soft_taints, unmet_preferences


@dataclass(frozen=True, slots=True)
class Weights:
    """Prices in units of network cost."""

    failover: float = 0.05
    """share of the all-endpoints cost in the cost of an edge whose callee does not say all endpoints"""
    soft_affinity: float = 5.0
    """of a pair of pods, or a pod alone, that a preferred term of weight 100 would have otherwise"""
    skew: float = 5.0
    """of a pod beyond maxSkew in a domain"""
    node_preference: float = 5.0
    """of a preferred node affinity term of weight 100 that a pod's node does not match"""
    soft_taint: float = 5.0
    """of a ``PreferNoSchedule`` taint that a pod on the node does not tolerate"""
    node_failure: float = 5.0
    """of a replicated workload that one node's end takes down"""
    zone_failure: float = 1.0
    """of a replicated workload that one zone's end takes down"""
    load: float = 5.0
    """of a variance of 1 among the loads of a workload's endpoints, the even share being 1"""
    default_spread: Sequence[Manifest] = DEFAULT_SPREAD
    """soft spreading of pods that state no constraint; none switches it off"""


DEFAULT_WEIGHTS = Weights()


def node_cost(node: Node, pod: Pod, weights: Weights) -> float:
    """What a pod pays for a node that it, or the node, would rather not have."""
    return weights.node_preference * unmet_preferences(node, pod) + weights.soft_taint * soft_taints(node, pod)


def objective(cluster: Cluster, group: Group, weights: Weights = DEFAULT_WEIGHTS) -> float:
    """The objective of an AppGroup whose pods are all placed; hard rules are not looked at."""
    edges, members = cluster.groups[group], cluster.members(group)
    total = 0.0
    for result in edge_results(cluster, edges, members):
        share = weights.failover if result.mode != ALL else 0.0
        total += (1 - share) * result.cost + share * result.cost_all
    soft = soft_rules(cluster, group, default_spread=weights.default_spread)
    total += weights.soft_affinity * (soft.anti_affinity + soft.affinity) + weights.skew * soft.skew
    for name, replicas in members.items():
        total += sum(node_cost(cluster.nodes[pod.node], pod, weights) for pod in replicas)
        if len(replicas) >= 2:
            total += weights.node_failure * (len({pod.node for pod in replicas}) == 1)
            total += weights.zone_failure * (len({cluster.nodes[pod.node].failure_domain for pod in replicas}) == 1)
        loads = endpoint_loads(cluster, edges, members, name)
        if loads and routing(cluster, name, replicas) != ALL:
            total += weights.load * sum((load - 1) ** 2 for load in loads.values()) / len(loads)
    return total
