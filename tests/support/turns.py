"""What is asked of plans in turns: pods with rules, and whether books and bindings are right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from berth.kube.objects import Node, Pod
from berth.network.bandwidth_allocations import BandwidthAllocations
from berth.network.groups import GroupKey
from berth.network.workload_places import WorkloadPlaces
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.state import ClusterState
from tests.support import builders

HOST = "kubernetes.io/hostname"


def rules(shape: str) -> dict[str, Any]:
    """Part of a pod's spec: what it asks of nodes and of pods with the label rule=SHAPE."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = builders.pod_term(HOST, {"rule": shape})
    if shape == "alone":
        return {"affinity": {"podAntiAffinity": {required: [term]}}}
    if shape == "near":
        return {"affinity": {"podAffinity": {required: [term]}}}
    if shape == "spread":
        return {"topologySpreadConstraints": [builders.spread(HOST, {"rule": shape})]}
    return {"nodeSelector": {"disk": "ssd"}} if shape == "ssd" else {}


def check_binding(pod: Pod, node: Node, here: Iterable[Pod]) -> None:
    """A node that may be bound to: it has no taint, the labels that are asked for, and room beside the pods there."""
    assert not node.spec.taints
    assert pod.spec.node_selector.items() <= node.metadata.labels.items(), "not selected"
    state = ClusterState()
    slot = state.update_node(node)
    for other in here:
        state.update_pod(other)
    own = state.request_vector(state.info(pod).template)
    over = state.used[slot] + own > state.allocatable[slot]
    assert not (over & (own > 0)).any(), "over-committed"


def check_books(cache: Cache, groups: Iterable[GroupKey]) -> None:
    """What is charged equals what its pods sum up to, and members of AppGroups are where their pods are."""
    state = cache.state
    fresh = np.zeros_like(state.used)
    for record in state._records.values():
        slot = state.node_index.get(record.node_name)
        if slot is not None:
            fresh[slot] += state.request_vector(record.template)
    assert (fresh[state.alive] == state.used[state.alive]).all()
    bandwidth = BandwidthAllocations(cache.members, cache.routes)
    for key in groups:
        members, places = cache.members.of(key), cache.members.places(key)
        assert places._replicas == WorkloadPlaces(members)._replicas
        bandwidth.mark(key)
        for one in members:
            kept = state.record(one.uid)
            assert one.node == (kept.node_name if kept is not None else ""), "a member is where its pod is not"
    bandwidth.refresh(cache.groups)
    assert cache.bandwidth().nodes == bandwidth.nodes
