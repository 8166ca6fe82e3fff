"""Reads what there is to know about one AppGroup; whoever may only look at its namespace gets what can be told so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from berth.api.labels import LABEL_APPGROUP
from berth.cli.listing import OptionalLists
from berth.kube.client import ApiClient
from berth.kube.objects import CustomObject, Node, Pod, Service
from berth.kube.resources import EVENTS, NETWORK_TOPOLOGIES, NODES, SERVICES
from berth.scheduling.cache.large_pods import BOUNDED_MEMBERS
from berth.scheduling.cache.topologies import TopologyTable
from berth.scheduling.configuration import Profile


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What was read of the cluster about one AppGroup."""

    group: CustomObject
    """the AppGroup"""
    pods: Sequence[Pod]
    """pods with its label, or all of its namespace"""
    profile: Profile
    """by which they are placed"""
    nodes: Sequence[Node] = ()
    """all nodes"""
    topologies: Sequence[CustomObject] = ()
    """NetworkTopologies of which one may serve it"""
    events: Sequence[dict[str, Any]] = ()
    """Events of its namespace"""
    services: Sequence[Service] = ()
    """Services of its namespace"""
    unread: Sequence[str] = ()
    """plural names of what may not be listed"""


async def read_group_facts(client: ApiClient, group: CustomObject, *, profiles: Sequence[Profile]) -> GroupFacts:
    """Read what the explanation of an AppGroup needs.

    Args:
        client: client of the cluster.
        group: the AppGroup.
        profiles: those that there are; the one that most of its pods name counts, or else the first.

    Raises:
        ApiError: the cluster cannot be read, or the namespace's pods may not be listed; other missing rights are noted.
        aiohttp.ClientError, OSError: the cluster cannot be reached.
    """
    namespace, lists = group.metadata.namespace, OptionalLists(client)
    pods = await client.list_all(
        BOUNDED_MEMBERS, namespace=namespace, label_selector=f"{LABEL_APPGROUP}={group.metadata.name}"
    )
    profile = _profile_of(pods, profiles)
    return GroupFacts(
        group,
        pods,
        profile,
        nodes=await lists.read(NODES),
        topologies=await _topologies(lists, namespace, profile),
        events=await lists.read(EVENTS, namespace=namespace),
        services=await lists.read(SERVICES, namespace=namespace),
        unread=lists.unread,
    )


def _profile_of(pods: Sequence[Pod], profiles: Sequence[Profile]) -> Profile:
    named = Counter(pod.spec.scheduler_name for pod in pods)
    return max(profiles, key=lambda profile: named[profile.scheduler_name])


async def _topologies(lists: OptionalLists, namespace: str, profile: Profile) -> list[CustomObject]:
    """Those of the namespaces that count, up to the first with a usable one: none behind it is looked at."""
    reference, table = profile.network_topology, TopologyTable()
    places = (namespace, profile.system_namespace) if reference is None else (reference.namespace,)
    found: list[CustomObject] = []
    for place in dict.fromkeys(places):
        here = await lists.read(NETWORK_TOPOLOGIES, namespace=place)
        found += here
        if any(table.update(item)[0] is None for item in here):
            break
    return found
