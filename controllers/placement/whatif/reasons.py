"""Which rule a reason belongs to: decisions and Events keep the reasons, in kube-scheduler's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from controllers.placement.filters import (
    gates,
    node_affinity,
    node_features,
    node_name,
    pod_affinity,
    ports,
    resources,
    taints,
    topology_spread,
    unschedulable,
    volume_binding,
    volume_limits,
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
    gates.REASON: gates.SchedulingGates.name,
    node_affinity.REASON: node_affinity.NodeAffinity.name,
    node_features.REASON: node_features.NodeDeclaredFeatures.name,
    node_name.REASON: node_name.NodeName.name,
    pod_affinity.REASON_AFFINITY: pod_affinity.InterPodAffinity.name,
    pod_affinity.REASON_ANTI_AFFINITY: pod_affinity.InterPodAffinity.name,
    pod_affinity.REASON_EXISTING: pod_affinity.InterPodAffinity.name,
    ports.REASON: ports.NodePorts.name,
    resources.TOO_MANY_PODS: resources.NodeResourcesFit.name,
    taints.REASON: taints.TaintToleration.name,
    topology_spread.REASON: topology_spread.PodTopologySpread.name,
    topology_spread.REASON_LABEL: topology_spread.PodTopologySpread.name,
    unschedulable.REASON: unschedulable.NodeUnschedulable.name,
    volume_binding.REASON_AFFINITY: volume_binding.VolumeBinding.name,
    volume_binding.REASON_NO_VOLUME: volume_binding.VolumeBinding.name,
    volume_binding.REASON_NO_SPACE: volume_binding.VolumeBinding.name,
    volume_binding.REASON_GONE: volume_binding.VolumeBinding.name,
    volume_limits.REASON: volume_limits.NodeVolumeLimits.name,
    volume_restrictions.REASON_DISK: volume_restrictions.VolumeRestrictions.name,
    volume_restrictions.REASON_ONE_POD: volume_restrictions.VolumeRestrictions.name,
    volume_zone.REASON: volume_zone.VolumeZone.name,
}
_CONTAINED: Final = (
    ("Insufficient ", resources.NodeResourcesFit.name),
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
