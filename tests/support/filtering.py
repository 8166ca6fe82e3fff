"""What the filters' unit tests share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from berth.kube.objects import Namespace, Node, Pod
from berth.scheduling.cache import ClusterState
from berth.scheduling.plugins import Filter


def cluster(nodes: Iterable[Node], pods: Iterable[Pod] = (), namespaces: Iterable[Namespace] = ()) -> ClusterState:
    """A state of these nodes, pods and namespaces."""
    state = ClusterState()
    for namespace in namespaces:
        state.upsert_namespace(namespace)
    for node in nodes:
        state.upsert_node(node)
    for pod in pods:
        state.upsert_pod(pod)
    return state


def rejected(rule: Filter, pod: Pod, state: ClusterState) -> dict[str, list[str]]:
    """Reasons per node that the filter rejects."""
    info = state.info(pod)
    found: dict[str, list[str]] = {}
    for reason, nodes in rule.rejections(info, state):
        for slot in np.flatnonzero(nodes & state.alive):
            found.setdefault(state.node_name(int(slot)), []).append(reason)
    return found


def passing(rule: Filter, pod: Pod, state: ClusterState) -> set[str]:
    """Nodes that the filter alone admits."""
    return {state.node_name(int(slot)) for slot in np.flatnonzero(rule.mask(state.info(pod), state))}
