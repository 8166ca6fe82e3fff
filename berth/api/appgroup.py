"""AppGroup: the workloads of one application and how they depend on each other.

Group ``appgroup.diktyo.x-k8s.io/v1alpha1``, namespaced. The spec is upstream's; the status is a
superset of upstream's. Rules that a schema cannot state are in :mod:`berth.api.rules`.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from pydantic import ConfigDict, Field

from berth.api import rules
from berth.api.base import ApiModel, ApiObject, Int32, Int64, Timestamp
from berth.api.conditions import Condition
from berth.api.labels import APPGROUP_GROUP, DIKTYO_VERSION
from berth.api.quantity import Quantity

API_VERSION: Final = f"{APPGROUP_GROUP}/{DIKTYO_VERSION}"
"""``apiVersion`` of every AppGroup."""
KIND: Final = "AppGroup"
"""``kind`` of every AppGroup."""
PLURAL: Final = "appgroups"
"""Resource name in API paths."""

MAX_PODS_SCHEDULED: Final = 500
"""Most entries of ``status.podsScheduled``; ``podsScheduledTotal`` counts all of them."""

CONDITION_ORDERED: Final = "Ordered"
"""True when ``status.topologyOrder`` belongs to the current spec."""
CONDITION_PLACED: Final = "Placed"
"""True when every workload has a pod on a node and no pod of the group waits."""


class SortingAlgorithm(StrEnum):
    """Algorithms that order the workloads of an AppGroup."""

    KAHN_SORT = "KahnSort"
    ALTERNATE_KAHN = "AlternateKahn"
    REVERSE_KAHN = "ReverseKahn"
    TARJAN_SORT = "TarjanSort"
    ALTERNATE_TARJAN = "AlternateTarjan"
    REVERSE_TARJAN = "ReverseTarjan"


class WorkloadRef(ApiModel):
    """A workload of the application, identified inside the group by its selector."""

    kind: str = Field(description="Kind of the workload, such as Deployment.")
    name: str = Field(description="Name of the workload.")
    selector: str = Field(
        max_length=rules.MAX_SELECTOR,
        description=(
            "Identity of the workload inside the group: its pods carry this value in the label "
            "appgroup.diktyo.x-k8s.io.workload."
        ),
    )
    api_version: str | None = Field(default=None, description="Group and version of the workload, such as apps/v1.")
    namespace: str | None = Field(
        default=None,
        description="Namespace of the workload. Berth looks for pods in the AppGroup's own namespace only.",
    )


class Dependency(ApiModel):
    """One directed edge: the workload that declares it calls the workload that it names."""

    model_config = ConfigDict(json_schema_extra=rules.schema_rules(rules.DEPENDENCY_RULES))

    workload: WorkloadRef = Field(description="Workload that is depended on; its selector must be one of the group's.")
    min_bandwidth: Quantity | None = Field(
        default=None,
        description="Least bandwidth that the edge needs, in bit/s, such as 100M or 1Gi. Unset: no demand.",
        json_schema_extra={"maxLength": rules.MAX_BANDWIDTH},
    )
    max_network_cost: Int64 | None = Field(
        default=None,
        ge=0,
        le=10000,
        description="Highest network cost allowed between the two workloads' nodes. Unset: no limit.",
    )


class Workload(ApiModel):
    """A member of the group and what it depends on."""

    model_config = ConfigDict(json_schema_extra=rules.schema_rules(rules.WORKLOAD_RULES))

    workload: WorkloadRef = Field(description="The workload itself.")
    dependencies: tuple[Dependency, ...] = Field(
        default=(),
        max_length=rules.MAX_DEPENDENCIES,
        description="Workloads that this one calls, in the order in which the sorting algorithms visit them.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class AppGroupSpec(ApiModel):
    """The application as its owner describes it."""

    model_config = ConfigDict(json_schema_extra=rules.schema_rules(rules.APPGROUP_RULES))

    num_members: Int32 = Field(
        ge=1,
        description="Number of pods of the application: at least one per workload, more when workloads have replicas.",
    )
    topology_sorting_algorithm: SortingAlgorithm = Field(
        description="Algorithm that turns the dependency graph into the order in which pods are scheduled."
    )
    workloads: tuple[Workload, ...] = Field(
        max_length=rules.MAX_WORKLOADS,
        description="Workloads of the application, with their dependencies. The order of declaration breaks ties.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class TopologyOrderEntry(ApiModel):
    """The place of one workload in the order."""

    workload: WorkloadRef = Field(description="The workload.")
    index: Int32 = Field(description="Place in the order, from 1.")


class PodScheduled(ApiModel):
    """Where one pod of the group runs."""

    workload: WorkloadRef = Field(description="Workload that the pod is a replica of.")
    pod: str = Field(description="Name of the pod.")
    replica_id: str = Field(description="UID of the pod.")
    hostname: str = Field(description="Name of the node that the pod is bound to.")


class AppGroupStatus(ApiModel):
    """What the appgroup controller has computed and observed."""

    observed_generation: Int64 | None = Field(
        default=None, ge=0, description="Generation of the spec that this status was computed from."
    )
    running_workloads: Int32 | None = Field(default=None, ge=0, description="Number of running pods of the group.")
    schedule_start_time: Timestamp | None = Field(
        default=None, description="When scheduling of the group began: creation of its first pod."
    )
    topology_calculation_time: Timestamp | None = Field(default=None, description="When topologyOrder last changed.")
    algorithm: str | None = Field(default=None, description="Algorithm that topologyOrder was computed with.")
    topology_order: tuple[TopologyOrderEntry, ...] = Field(
        default=(),
        description="Every workload with its place in the scheduling order; sorted by selector, index has the order.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    order_summary: str | None = Field(
        default=None,
        description="The first few selectors of the order and the number of workloads, for kubectl get.",
    )
    pods_scheduled: tuple[PodScheduled, ...] = Field(
        default=(),
        max_length=MAX_PODS_SCHEDULED,
        description="Pods of the group that are bound to a node; cut at 500 entries, podsScheduledTotal counts all.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    pods_scheduled_total: Int32 | None = Field(
        default=None, ge=0, description="Number of pods of the group that are bound to a node."
    )
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="State of the group. Ordered: the order is of the current spec. Placed: every member has a node.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )


class AppGroup(ApiObject):
    """An application: its workloads, their dependencies and the order in which to schedule them."""

    api_version: str = Field(default=API_VERSION, description=rules.API_VERSION_DESCRIPTION)
    kind: str = Field(default=KIND, description=rules.KIND_DESCRIPTION)
    spec: AppGroupSpec = Field(description="The application as its owner describes it.")
    status: AppGroupStatus = Field(
        default_factory=AppGroupStatus, description="What the appgroup controller has computed and observed."
    )


def sorted_by_selector(order: Iterable[TopologyOrderEntry]) -> tuple[TopologyOrderEntry, ...]:
    """Return the entries as ``status.topologyOrder`` lists them.

    Upstream's TopologicalSort plugin finds a workload there by binary search over the selectors.
    """
    return tuple(sorted(order, key=lambda entry: entry.workload.selector))


def order_summary(order: Iterable[TopologyOrderEntry]) -> str:
    """Return the selectors that come first by index, and the number of workloads when some are left out.

    Four workloads give ``p1,p10,p9,...(4)``.
    """
    selectors = [entry.workload.selector for entry in sorted(order, key=lambda entry: entry.index)]
    head = ",".join(selectors[:3])
    return head if len(selectors) <= 3 else f"{head},...({len(selectors)})"
