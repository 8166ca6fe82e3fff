"""Names on the wire that more than one part of Berth has to agree on.

API groups and versions, label and annotation keys, names of weight sets, the scheduler's name.
A name of the ``diktyo.x-k8s.io`` groups, ``topology.kubernetes.io`` or ``kubernetes.io`` belongs
to its upstream and never changes here; ``berth.dev`` is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

APPGROUP_GROUP: Final = "appgroup.diktyo.x-k8s.io"
"""API group of AppGroup."""
NETWORKTOPOLOGY_GROUP: Final = "networktopology.diktyo.x-k8s.io"
"""API group of NetworkTopology."""
DIKTYO_VERSION: Final = "v1alpha1"
"""Version of both Diktyo groups."""
BERTH_GROUP: Final = "berth.dev"
"""API group of Berth's own kinds."""
BERTH_PREFIX: Final = "berth.dev/"
"""Prefix of Berth's own labels and annotations."""

SCHEDULER_NAME: Final = "berth-scheduler"
"""``spec.schedulerName`` of the pods that Berth places."""

LABEL_APPGROUP: Final = "appgroup.diktyo.x-k8s.io"
"""Pod label: name of the AppGroup (of the pod's own namespace) that the pod belongs to."""
LABEL_WORKLOAD: Final = "appgroup.diktyo.x-k8s.io.workload"
"""Pod label: selector of the AppGroup's workload that the pod is a replica of."""

LABEL_INTERFERENCE_CLASS: Final = "berth.dev/interference-class"
"""Pod label: how the pod gets on with others on its socket (:class:`berth.api.interference.InterferenceClass`)."""
LABEL_CATEGORY: Final = "category"
"""Pod label: the same with values such as ``catA``; other values of it belong to others."""

LABEL_METER: Final = "berth.dev/latency-meter"
"""Label: of a pod, whether it gets a latency meter; of a namespace, the second of these values keeps it out there."""
METER_ENABLED: Final = "enabled"
"""Value of that label: a meter is put into the pod when it is created."""
METER_DISABLED: Final = "disabled"
"""Value of that label: none is."""

LABEL_HOSTNAME: Final = "kubernetes.io/hostname"
"""Node label and topology key: the node itself."""
LABEL_OS: Final = "kubernetes.io/os"
"""Node label: its operating system."""
LABEL_REGION: Final = "topology.kubernetes.io/region"
"""Node label and topology key: region."""
LABEL_ZONE: Final = "topology.kubernetes.io/zone"
"""Node label and topology key: zone."""
LABEL_SEGMENT: Final = "topology.kubernetes.io/segment"
"""Node label and topology key: part of a zone whose nodes are near each other, such as those of a rack."""
TOPOLOGY_LEVELS: Final = (LABEL_REGION, LABEL_ZONE, LABEL_SEGMENT)
"""Topology keys that costs and capacities are read for, each inside the one before it."""

ANNOTATION_DECISION: Final = "berth.dev/decision"
"""Pod annotation: why the pod is where it is, as JSON, written with the binding."""
ANNOTATION_ADMITTED_BANDWIDTH: Final = "berth.dev/admitted-bandwidth"
"""Pod annotation: bandwidth that the pod's calls were admitted with, as JSON, written with the binding."""
ANNOTATION_SOCKET: Final = "berth.dev/socket"
"""Pod annotation: number of the socket that the pod was bound with; a SocketStatus may assign it another later."""
ANNOTATION_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
"""Pod annotation: of its pods a ReplicaSet deletes those first that cost less, before age and shared nodes count."""
ANNOTATION_SPREAD: Final = "berth.dev/spread"
"""AppGroup annotation: which failure its workloads must survive (:class:`berth.api.spread.SpreadLevel`)."""
ANNOTATION_METER_PORT: Final = "berth.dev/latency-meter-application-port"
"""Pod annotation: port that the application listens on, for a latency meter that is put into the pod."""
ANNOTATION_HARD_MAX_LATENCY: Final = "hard_max_latency"
"""Annotation of a pod template: hard limit in milliseconds, where a LatencyPolicy states none."""
ANNOTATION_SOFT_MAX_LATENCY: Final = "soft_max_latency"
"""The same for the soft limit."""
ANNOTATION_REJECTIONS: Final = "berth.dev/rejections"
"""Annotation of Events about pods without a node: why no node takes the pod, as JSON."""

RESOURCE_BANDWIDTH: Final = "network.aware.com/bandwidth"
"""Extended resource of a node: physical bandwidth in bit/s."""

WEIGHTS_USER_DEFINED: Final = "UserDefined"
"""Weight set written by people; Berth reads it and never writes it."""
WEIGHTS_NETPERF: Final = "NetperfCosts"
"""Weight set computed from the measurements in the ConfigMap that ``spec.configmapName`` names."""
WEIGHTS_DIJKSTRA: Final = "Dijkstra"
"""Weight set of shortest-path costs."""
WEIGHTS_ALLOCATED: Final = "BandwidthAllocated"
"""Weight set of what placed calls take of links; it holds no costs."""


class Membership(NamedTuple):
    """The place of a pod in an application, as its labels state it."""

    appgroup: str
    """Name of the AppGroup; its namespace is the pod's."""
    workload: str
    """Selector of the workload inside the AppGroup; empty when the pod carries no such label."""


def membership(labels: Mapping[str, str]) -> Membership | None:
    """Return the application and workload that ``labels`` name, or None for a pod outside any AppGroup."""
    appgroup = labels.get(LABEL_APPGROUP, "")
    return Membership(appgroup, labels.get(LABEL_WORKLOAD, "")) if appgroup else None
