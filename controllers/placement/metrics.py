"""Everything the placement controller measures."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

PENDING = Gauge("berth_placement_pending_pods", "Pods that wait for a node.")
UNBOUND = Gauge("berth_placement_unbound_decisions", "Decisions that wait for their binding to be written.")
ATTEMPTS = Counter(
    "berth_placement_attempts_total",
    "Attempts to schedule a queue entry, by kind of entry (group, pod) and result.",
    ["entry", "result"],
)
DECISION_SECONDS = Histogram(
    "berth_placement_decision_duration_seconds",
    "Time to plan one queue entry (an AppGroup's waiting pods, or one pod), by kind.",
    ["entry"],
    buckets=(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1),
)
DECISION_SECONDS_PER_POD = Histogram(
    "berth_placement_decision_per_pod_seconds",
    "Planning time of a queue entry divided by its pods.",
    buckets=(0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1),
)
PLANS_CUT_SHORT = Counter(
    "berth_placement_plans_cut_short_total", "Plans that the time budget ended, by kind of entry.", ["entry"]
)
BIND_SECONDS = Histogram(
    "berth_placement_bind_duration_seconds",
    "Time from a decision to its confirmed binding.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
ALLOCATION_WRITES = Counter(
    "berth_placement_allocation_writes_total", "Writes of bandwidthAllocated into NetworkTopologies.", ["outcome"]
)
SOCKET_WRITES = Counter(
    "berth_placement_socket_writes_total", "Writes of assignments into SocketStatuses.", ["outcome"]
)
BINDINGS = Counter("berth_placement_bindings_total", "Bindings by outcome.", ["outcome"])
EDGE_COST = Histogram(
    "berth_placement_edge_cost",
    "Mean network cost of a pod's dependency edges when it was placed.",
    buckets=(0, 1, 2, 5, 10, 20, 50, 100, 200),
)
_GROUP = ["namespace", "appgroup"]
REPLICATED_WORKLOADS = Gauge(
    "berth_placement_appgroup_replicated_workloads",
    "Workloads of the AppGroup with two placed replicas or more.",
    _GROUP,
)
SURVIVE_NODE = Gauge(
    "berth_placement_appgroup_workloads_surviving_node",
    "Of the replicated workloads, those that have a replica left whichever node fails.",
    _GROUP,
)
SURVIVE_ZONE = Gauge(
    "berth_placement_appgroup_workloads_surviving_zone",
    "Of the replicated workloads, those that have a replica left whichever zone fails.",
    _GROUP,
)
MEAN_EDGE_COST = Gauge(
    "berth_placement_appgroup_mean_edge_cost",
    "Mean over the AppGroup's dependency edges of what a call costs, as Services route calls.",
    _GROUP,
)
CROSS_ZONE_CALLS = Gauge(
    "berth_placement_appgroup_cross_zone_calls_ratio",
    "Share of the AppGroup's calls that leave the caller's zone.",
    _GROUP,
)
NODE_REJECTIONS = Counter(
    "berth_placement_node_rejections_total", "Pods that a kubelet refused, by reason.", ["reason"]
)
