"""The scheduling plugins: one concern a file, registered by one line here.

Left out: ImageLocality (kubelets' image lists are not kept); see docs/reference/plugins.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.scheduling.plugins.bandwidth import Bandwidth
from berth.scheduling.plugins.check_risk_node_bandwidth import CheckRiskNodeBandwidth
from berth.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from berth.scheduling.plugins.interference_greedy import InterferenceGreedy
from berth.scheduling.plugins.interference_least_slowdown import InterferenceLeastSlowdown
from berth.scheduling.plugins.interference_socket_based import InterferenceSocketBased
from berth.scheduling.plugins.interference_sparing import InterferenceSparing
from berth.scheduling.plugins.max_unit import MaxUnit
from berth.scheduling.plugins.network_overhead import NetworkOverhead
from berth.scheduling.plugins.node_affinity import NodeAffinity
from berth.scheduling.plugins.node_bandwidth import NodeBandwidth
from berth.scheduling.plugins.node_declared_features import NodeDeclaredFeatures
from berth.scheduling.plugins.node_name import NodeName
from berth.scheduling.plugins.node_ports import NodePorts
from berth.scheduling.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from berth.scheduling.plugins.node_resources_fit import NodeResourcesFit
from berth.scheduling.plugins.node_unschedulable import NodeUnschedulable
from berth.scheduling.plugins.node_volume_limits import NodeVolumeLimits
from berth.scheduling.plugins.pod_topology_spread import PodTopologySpread
from berth.scheduling.plugins.recently_rejected import RecentlyRejected
from berth.scheduling.plugins.resource_cost import ResourceCost
from berth.scheduling.plugins.scheduling_gates import SchedulingGates
from berth.scheduling.plugins.taint_toleration import TaintToleration
from berth.scheduling.plugins.unsupported_features import UnsupportedFeatures
from berth.scheduling.plugins.usage_threshold import UsageThreshold
from berth.scheduling.plugins.user_latency import UserLatency
from berth.scheduling.plugins.volume_binding import VolumeBinding
from berth.scheduling.plugins.volume_restrictions import VolumeRestrictions
from berth.scheduling.plugins.volume_zone import VolumeZone

if TYPE_CHECKING:
    from berth.scheduling.framework.plugin import Plugin

PLUGINS: list[type[Plugin]] = [
    UnsupportedFeatures,
    SchedulingGates,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    NodeDeclaredFeatures,
    NodeResourcesBalancedAllocation,
    RecentlyRejected,
    NodeBandwidth,
    CheckRiskNodeBandwidth,
    NetworkOverhead,
    MaxUnit,
    UsageThreshold,
    Bandwidth,
    ResourceCost,
    UserLatency,
    InterferenceLeastSlowdown,
    InterferenceGreedy,
    InterferenceSparing,
    InterferenceSocketBased,
]
"""Every plugin, in the order in which they run: kube-scheduler's default profile, then Berth's own rules and costs."""
