"""Reads what there is to know about one node: by name and by selector, so that little of a large cluster is listed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args

import msgspec

from berth.api.labels import LABEL_APPGROUP, membership
from berth.cli.explain.node import NodeFacts
from berth.cli.listing import OptionalLists
from berth.kube.client import ApiClient
from berth.kube.decoding import without_null_fields
from berth.kube.objects import Node, Pod, Service
from berth.kube.probe_reports import LINK_REPORTS
from berth.kube.resources import (
    APP_GROUPS,
    NAMESPACES,
    NETWORK_TOPOLOGIES,
    NODES,
    PODS,
    SERVICES,
    Resource,
)
from berth.scheduling.cache.large_pods import BOUNDED_PODS, cut_down
from berth.scheduling.cache.pod_templates import PodTemplateCache
from berth.scheduling.cache.volumes import StorageObject, claim_keys
from berth.scheduling.simulation.inputs import READ

MAX_NAMED = 20
"""Groups or namespaces that are asked for by name; of more, all are listed at once."""
_RAW_PODS: Resource[dict[str, Any]] = Resource(PODS.group, PODS.version, PODS.plural, PODS.kind, dict)
_STORAGE = frozenset(kind.__name__ for kind in get_args(StorageObject))


async def read_node_facts(
    client: ApiClient,
    node: Node,
    *,
    schedulers: Sequence[str],
    namespace: str | None,
    stated: Pod | None,
    links: bool,
) -> NodeFacts:
    """Read a node and what its explanation needs.

    Args:
        client: client of the cluster.
        node: the node.
        schedulers: scheduler names that are Berth's.
        namespace: judge waiting pods of this namespace alone; None for all.
        stated: judge this pod and no other.
        links: whether links are judged by how busy they are.

    Raises:
        ApiError: the cluster cannot be read, or its pods may not be listed; other missing rights are noted.
        aiohttp.ClientError, OSError: the cluster cannot be reached.
    """
    raw = await client.list_all(_RAW_PODS, field_selector=f"spec.nodeName={node.metadata.name}")
    here = [pod for item in raw if not (pod := _pod(item)).finished]
    bound = {str(item["metadata"].get("uid", "")): _bound(item) for item in raw}
    waiting = [_as_waiting(stated)] if stated is not None else await _waiting(client, schedulers, namespace)
    names = _group_names((*here, *waiting))
    if not names and not waiting:
        return NodeFacts(node, here, bound)
    elsewhere = await _members(client, names)
    if waiting:
        elsewhere += await _neighbours(client, waiting)
    moved = {pod.metadata.uid for pod in waiting}
    lists = OptionalLists(client)
    return NodeFacts(
        node,
        here,
        bound,
        waiting,
        stated=stated is not None,
        elsewhere=[pod for pod in elsewhere if pod.metadata.uid not in moved],
        nodes=await lists.read(NODES),
        groups=await lists.read(APP_GROUPS) if names else (),
        topologies=await lists.read(NETWORK_TOPOLOGIES),
        services=await _services(lists, (*here, *waiting)),
        namespaces=await lists.read(NAMESPACES) if waiting else (),
        reports=await lists.read(LINK_REPORTS, field_selector=f"metadata.name={node.metadata.name}")
        if waiting and links
        else (),
        storage=await _storage(lists) if any(claim_keys(pod) for pod in waiting) else (),
        unread=lists.unread,
    )


def _pod(item: dict[str, Any]) -> Pod:
    pod = msgspec.convert(without_null_fields(item, Pod), Pod)
    cut_down(pod)  # and not as it is followed: its decision is told of, which is an annotation
    return pod


def _bound(item: dict[str, Any]) -> str:
    """When a pod got its node, as its condition says."""
    for condition in (item.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return str(condition.get("lastTransitionTime") or "")
    return ""


def _as_waiting(pod: Pod) -> Pod:
    """A pod as if it had no node yet, as the scheduler has it."""
    cut_down(pod)
    pod.spec.node_name = ""
    return pod


async def _waiting(client: ApiClient, schedulers: Iterable[str], namespace: str | None) -> list[Pod]:
    found: list[Pod] = []
    for scheduler in schedulers:
        selector = f"spec.nodeName=,status.phase=Pending,spec.schedulerName={scheduler}"
        found += await client.list_all(BOUNDED_PODS, namespace=namespace, field_selector=selector)
    return [pod for pod in found if pod.metadata.deletion_timestamp is None]


def _group_names(pods: Iterable[Pod]) -> list[str]:
    places = (membership(pod.metadata.labels) for pod in pods)
    return sorted({place.appgroup for place in places if place is not None})


async def _members(client: ApiClient, names: Sequence[str]) -> list[Pod]:
    """Pods of these AppGroups, wherever they are."""
    if not names:
        return []
    selector = f"{LABEL_APPGROUP} in ({','.join(names)})" if len(names) <= MAX_NAMED else LABEL_APPGROUP
    return await client.list_all(BOUNDED_PODS, label_selector=selector)


async def _services(lists: OptionalLists, pods: Iterable[Pod]) -> list[Service]:
    """Services of the namespaces of these pods' AppGroups."""
    namespaces = sorted({pod.metadata.namespace for pod in pods if membership(pod.metadata.labels) is not None})
    if len(namespaces) > MAX_NAMED:
        return await lists.read(SERVICES)
    return [service for namespace in namespaces for service in await lists.read(SERVICES, namespace=namespace)]


async def _neighbours(client: ApiClient, waiting: Sequence[Pod]) -> list[Pod]:
    """Placed pods that rules of waiting pods may look at, and whose rules may look at these.

    Rules speak of the pods of their own namespace unless they name others.
    """
    templates = PodTemplateCache()
    namespaces: set[str] = set()
    everywhere = False
    for pod in waiting:
        namespaces.add(pod.metadata.namespace)
        for terms in templates.template(pod).terms.values():
            for term in terms:
                namespaces |= term.namespaces
                everywhere = everywhere or not term.namespace_selector.nothing
    selector = "spec.nodeName!="
    if everywhere or len(namespaces) > MAX_NAMED:
        return await client.list_all(BOUNDED_PODS, field_selector=selector)
    found: list[Pod] = []
    for namespace in sorted(namespaces):
        found += await client.list_all(BOUNDED_PODS, namespace=namespace, field_selector=selector)
    return found


async def _storage(lists: OptionalLists) -> list[StorageObject]:
    found: list[StorageObject] = []
    for resource in READ:
        if resource.type.__name__ in _STORAGE:
            found += await lists.read(resource)
    return found
