"""AppGroups made to hold others up by what their pods have to do with each other, and with those that are placed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from bench.planning.__main__ import HOST, Clock, Edges, layered, make_group, make_node, make_pod
from berth.api.labels import LABEL_REGION, LABEL_ZONE
from berth.kube.objects import Pod, PodSpec
from berth.network.groups import Group
from berth.scheduling.cache.cache import Cache

Case = tuple[Cache, Group, list[Pod]]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def cluster(clock: Clock, nodes: int, edges: Edges, demand: dict[str, Any], cpu: int = 16) -> tuple[Cache, Group]:
    """Nodes, and an AppGroup."""
    cache = Cache(clock=clock)
    for number in range(nodes):
        cache.update_node(make_node(number, cpu))
    return cache, cache.update_group(make_group(edges, demand))


def waiting(cache: Cache, pods: list[Pod]) -> list[Pod]:
    """Have the pods seen."""
    for pod in pods:
        cache.update_pod(pod)
    return pods


def with_spec(pod: Pod, **spec: Any) -> PodSpec:
    """The pod's spec with other fields."""
    return msgspec.convert({**msgspec.to_builtins(pod.spec), **spec}, PodSpec)


def topology_keys(clock: Clock, nodes: int = 5000, pods: int = 230, terms: int = 256) -> Case:
    """Pods but for the first that must be near it by as many topology keys as they may state, which no node has."""
    cache, group = cluster(clock, nodes, layered(10), {})

    def terms_of(number: int) -> list[dict[str, Any]]:
        wanted = {"matchLabels": {"app": "w0"}}
        return [{"topologyKey": f"example.com/k{number}-{at}", "labelSelector": wanted} for at in range(terms)]

    made = [make_pod(f"w{n % 10}", n, {"podAffinity": {REQUIRED: terms_of(n)}} if n else {}) for n in range(pods)]
    return cache, group, waiting(cache, made)


def two_of_many(clock: Clock, nodes: int = 500, workloads: int = 2000, calls: int = 5) -> Case:
    """Two pods more of an application of thousands of workloads that are placed."""
    names = [f"w{number}" for number in range(workloads)]
    edges = {name: [names[(at + k) % workloads] for k in range(1, calls + 1)] for at, name in enumerate(names)}
    cache, group = cluster(clock, nodes, edges, {}, cpu=128)
    for at, name in enumerate(names):
        pod = make_pod(name, 0, {})
        pod.spec.node_name = f"node-{at % 30}"
        cache.update_pod(pod)
    return cache, group, waiting(cache, [make_pod("w0", 1, {}), make_pod("w7", 1, {})])


def unlike_callers(clock: Clock, nodes: int = 100, workloads: int = 60, pods: int = 10) -> Case:
    """Every workload calls every other, and no two pods are alike: each pair of them is a link."""
    names = [f"w{number}" for number in range(workloads)]
    cache, group = cluster(clock, nodes, {name: names[at + 1 :] for at, name in enumerate(names)}, {})
    made = [make_pod(name, number, {}) for name in names for number in range(pods)]
    for number, pod in enumerate(made):
        pod.spec.containers[0].resources.requests["cpu"] = f"{100 + number % pods}m"
    return cache, group, waiting(cache, made)


def tangled_calls(clock: Clock, nodes: int = 40, workloads: int = 100, replicas: int = 3, density: float = 0.5) -> Case:
    """Half of all workloads call each other, each of another size: which of them should share a node is hard to say."""
    some = random.Random(1)
    names = [f"w{number}" for number in range(workloads)]
    edges = {name: [to for to in names[at + 1 :] if some.random() < density] for at, name in enumerate(names)}
    cache, group = cluster(clock, nodes, edges, {})
    made = [make_pod(name, number, {}) for name in names for number in range(replicas)]
    for pod in made:
        pod.spec.containers[0].resources.requests["cpu"] = f"{100 + 37 * int(pod.metadata.labels['app'][1:]) % 900}m"
    return cache, group, waiting(cache, made)


def backwards(clock: Clock, nodes: int = 100, pods: int = 1000) -> Case:
    """A chain of required affinity whose end comes last."""
    cache, group = cluster(clock, nodes, layered(pods, 1), {}, cpu=64)

    def near(number: int) -> dict[str, Any]:
        term = {"topologyKey": LABEL_REGION, "labelSelector": {"matchLabels": {"app": f"w{number}"}}}
        return {"podAffinity": {REQUIRED: [term]}}

    made = [make_pod(f"w{n}", 0, near(n + 1) if n + 1 < pods else {}) for n in range(pods)]
    return cache, group, waiting(cache, made)


def spread_anew(clock: Clock, nodes: int = 300, replicas: int = 300, constraints: int = 255) -> Case:
    """Replicas that must be spread over the hosts by hundreds of constraints.

    API servers store one of each key; manifests may have any.
    """
    cache, group = cluster(clock, nodes, layered(2), {}, cpu=1)
    made = [make_pod("w0", number, {}) for number in range(replicas)]
    stated = [
        {
            "maxSkew": 1000,
            "topologyKey": HOST,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [f"x{at}"]}]},
        }
        for at in range(constraints)
    ]
    for pod in made:
        pod.spec = with_spec(pod, topologySpreadConstraints=stated)
        pod.spec.containers[0].resources.requests["cpu"] = "900m"
    return cache, group, waiting(cache, made)


def soft_terms(clock: Clock, nodes: int = 100, pods: int = 1000, terms: int = 90) -> Case:
    """Pods none of which are alike, each of which would rather be near as many others."""
    cache, group = cluster(clock, nodes, layered(20), {})
    made = [make_pod(f"w{number % 20}", number, {}) for number in range(pods)]
    for number, pod in enumerate(made):
        pod.metadata.labels["own"] = str(number)
        about = [
            {"topologyKey": (HOST, LABEL_ZONE)[at % 2], "labelSelector": {"matchLabels": {"own": str(other % pods)}}}
            for at, other in enumerate(range(number + 1, number + 1 + terms))
        ]
        preferred = [{"weight": 1 + at % 7, "podAffinityTerm": each} for at, each in enumerate(about)]
        pod.spec = with_spec(pod, affinity={"podAffinity": {PREFERRED: preferred}})
    return cache, group, waiting(cache, made)


CASES: dict[str, Callable[[Clock], Case]] = {
    "keys": topology_keys,
    "two of many": two_of_many,
    "unlike": unlike_callers,
    "tangled": tangled_calls,
    "backwards": backwards,
    "spread": spread_anew,
    "soft": soft_terms,
}
