"""What the applications of a run cost and survive, judged by the evaluator of bench.replicas."""

from __future__ import annotations

from typing import Any

from bench.replicas.cluster import Manifest, read_cluster
from bench.replicas.evaluator import Evaluation, evaluate, together
from berth.kube.client import ApiClient
from berth.kube.resources import APP_GROUPS, NETWORK_TOPOLOGIES, NODES, PODS, SERVICES, Resource


async def judged(client: ApiClient, namespace: str) -> Evaluation:
    """All applications of a namespace as they are bound."""
    documents: list[Manifest] = []
    everywhere: tuple[Resource[Any], ...] = (NODES, NETWORK_TOPOLOGIES)
    inside: tuple[Resource[Any], ...] = (PODS, SERVICES, APP_GROUPS)
    for resource in (*everywhere, *inside):
        documents += await _objects(client, resource, namespace if resource in inside else None)
    cluster = read_cluster(documents)
    return together([evaluate(cluster, group) for group in cluster.groups])


async def _objects(client: ApiClient, resource: Resource[Any], namespace: str | None) -> list[Manifest]:
    """Objects with their kind, which lists leave out."""
    found = await client.list_all(resource.raw, namespace=namespace)
    return [{**item, "kind": resource.kind} for item in found]
