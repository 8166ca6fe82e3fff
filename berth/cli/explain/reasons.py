"""Which rule a reason belongs to: decisions and Events keep the reasons, in kube-scheduler's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from berth.scheduling.plugins import (
    inter_pod_affinity,
    node_affinity,
    node_declared_features,
    node_name,
    node_ports,
    node_resources_fit,
    node_unschedulable,
    node_volume_limits,
    pod_topology_spread,
    scheduling_gates,
    taint_toleration,
    volume_binding,
    volume_restrictions,
    volume_zone,
)

NETWORK: Final = "Network"
"""Rule about maxNetworkCost and bandwidth of dependency edges."""
CAPACITY: Final = "Capacity"
"""Rule of the joint plan about room, thresholds and the largest unit of a node."""
OTHER: Final = "Planner"
"""A rule of the planner that is no filter."""

_EXACT: Final[dict[str, str]] = {
    scheduling_gates.REASON: scheduling_gates.SchedulingGates.name,
    node_affinity.REASON: node_affinity.NodeAffinity.name,
    node_declared_features.REASON: node_declared_features.NodeDeclaredFeatures.name,
    node_name.REASON: node_name.NodeName.name,
    inter_pod_affinity.REASON_AFFINITY: inter_pod_affinity.InterPodAffinity.name,
    inter_pod_affinity.REASON_ANTI_AFFINITY: inter_pod_affinity.InterPodAffinity.name,
    inter_pod_affinity.REASON_EXISTING: inter_pod_affinity.InterPodAffinity.name,
    node_ports.REASON: node_ports.NodePorts.name,
    node_resources_fit.TOO_MANY_PODS: node_resources_fit.NodeResourcesFit.name,
    taint_toleration.REASON: taint_toleration.TaintToleration.name,
    pod_topology_spread.REASON: pod_topology_spread.PodTopologySpread.name,
    pod_topology_spread.REASON_LABEL: pod_topology_spread.PodTopologySpread.name,
    node_unschedulable.REASON: node_unschedulable.NodeUnschedulable.name,
    volume_binding.REASON_AFFINITY: volume_binding.VolumeBinding.name,
    volume_binding.REASON_NO_VOLUME: volume_binding.VolumeBinding.name,
    volume_binding.REASON_NO_SPACE: volume_binding.VolumeBinding.name,
    volume_binding.REASON_GONE: volume_binding.VolumeBinding.name,
    node_volume_limits.REASON: node_volume_limits.NodeVolumeLimits.name,
    volume_restrictions.REASON_DISK: volume_restrictions.VolumeRestrictions.name,
    volume_restrictions.REASON_ONE_POD: volume_restrictions.VolumeRestrictions.name,
    volume_zone.REASON: volume_zone.VolumeZone.name,
}
_CONTAINED: Final = (
    ("Insufficient ", node_resources_fit.NodeResourcesFit.name),
    ("maxNetworkCost", NETWORK),
    ("bandwidth", NETWORK),
    ("usage threshold", CAPACITY),
    ("as large as", CAPACITY),
    ("largest unit", CAPACITY),
    ("insufficient ", CAPACITY),
    ("not allowed by the pod's rules", "Filters"),
)

_HEAD = re.compile(r"(?:FailedScheduling: )?\d+/\d+ nodes(?: are available)?: ")
_COUNTED = re.compile(r"(\d+) (.+)")


def rule_of(reason: str) -> str:
    """Name of the filter, or of the planner's rule, that rejects nodes for this reason."""
    exact = _EXACT.get(reason)
    if exact is not None:
        return exact
    return next((rule for part, rule in _CONTAINED if part in reason), OTHER)


def rejected_rows(rejected: Mapping[str, int]) -> list[dict[str, object]]:
    """Counts by reason as rows with their rule, most nodes first."""
    rows = sorted(rejected.items(), key=lambda item: (-item[1], item[0]))
    return [{"filter": rule_of(reason), "reason": reason, "nodes": count} for reason, count in rows]


def counts_in(message: str) -> dict[str, int]:
    """Nodes by reason from a FailedScheduling message such as ``0/9 nodes are available: 3 Insufficient cpu.``

    A message that quotes another pod's counts gives none.
    """
    head = _HEAD.match(message)
    if head is None:
        return {}
    counts: dict[str, int] = {}
    for part in message[head.end() :].removesuffix(".").split(", "):
        found = _COUNTED.fullmatch(part)
        if found is not None:
            counts[found[2]] = int(found[1])
    return counts
