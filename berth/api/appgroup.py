"""AppGroup: the workloads of one application and how they depend on each other.

Group ``appgroup.diktyo.x-k8s.io/v1alpha1``, namespaced. The spec is upstream's; the status is a
superset of upstream's. The schema refuses nothing that upstream's accepts; what makes no sense is told
by the policy of :mod:`berth.api.rules` and by :mod:`berth.api.checks`, and is read as documented here.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Final, Self

from pydantic import BeforeValidator, ConfigDict, Field

from berth.api import rules
from berth.api.base import ApiModel, ApiObject, Int32, Int64, Timestamp
from berth.api.conditions import Condition
from berth.api.labels import APPGROUP_GROUP, DIKTYO_VERSION
from berth.api.quantity import QuantityText, read_quantity
from berth.api.text import shortened

API_VERSION: Final = f"{APPGROUP_GROUP}/{DIKTYO_VERSION}"
"""``apiVersion`` of every AppGroup."""
KIND: Final = "AppGroup"
"""``kind`` of every AppGroup."""
PLURAL: Final = "appgroups"
"""Resource name in API paths."""

PRESERVED: Final = ConfigDict(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
"""For objects in which upstream's controllers keep statistics that Berth does not read."""
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

    @classmethod
    def read(cls, name: str) -> Self:
        """Return the algorithm of that name; KahnSort for any other name."""
        return cls(name) if name in set(cls) else cls.KAHN_SORT


class WorkloadRef(ApiModel):
    """A workload of the application, identified inside the group by its selector."""

    kind: str = Field(description="Kind of the workload, such as Deployment.")
    name: str = Field(description="Name of the workload.")
    selector: str = Field(
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

    workload: WorkloadRef = Field(description="Workload that is depended on; its selector must be one of the group's.")
    min_bandwidth: QuantityText | None = Field(
        default=None,
        description=(
            "Least bandwidth that the edge needs, in bit/s, such as 100M or 1Gi. Unset, negative or no quantity: "
            "no demand."
        ),
    )
    max_network_cost: Int64 | None = Field(
        default=None,
        ge=0,
        le=10000,
        description="Highest network cost allowed between the two workloads' nodes. Unset: no limit.",
    )

    @property
    def bandwidth(self) -> int:
        """Demand in whole bit/s; 0 when minBandwidth is unset, negative or no quantity."""
        quantity = read_quantity(self.min_bandwidth)
        return max(0, quantity.value()) if quantity is not None else 0


class Workload(ApiModel):
    """A member of the group and what it depends on."""

    workload: WorkloadRef = Field(description="The workload itself.")
    dependencies: tuple[Dependency, ...] = Field(
        default=(),
        description="Workloads that this one calls, in the order in which the sorting algorithms visit them.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class AppGroupSpec(ApiModel):
    """The application as its owner describes it."""

    num_members: Int32 = Field(
        ge=1,
        description=(
            "Number of pods of the application: more than workloads when these have replicas. Read as the number of "
            "workloads when it is smaller."
        ),
    )
    topology_sorting_algorithm: str = Field(
        description=(
            "Algorithm that turns the dependency graph into the order in which pods are scheduled: "
            f"{', '.join(SortingAlgorithm)}. Any other name is read as KahnSort."
        )
    )
    workloads: tuple[Workload, ...] = Field(
        description=(
            "Workloads of the application, with their dependencies. The order of declaration breaks ties. Entries "
            "with the same selector are read as one workload, with the dependencies of all."
        ),
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )

    @property
    def members(self) -> int:
        """Number of pods: numMembers, but at least one for each workload."""
        return max(self.num_members, len(self.by_selector()))

    def by_selector(self) -> dict[str, WorkloadRef]:
        """Return the workloads in declaration order; of entries with one selector the first."""
        found: dict[str, WorkloadRef] = {}
        for item in self.workloads:
            found.setdefault(item.workload.selector, item.workload)
        return found

    def edges(self) -> list[tuple[str, Dependency]]:
        """Return (selector of the workload that calls, dependency) between two different workloads of the group."""
        known = {item.workload.selector for item in self.workloads}
        return [
            (item.workload.selector, dependency)
            for item in self.workloads
            for dependency in item.dependencies
            if dependency.workload.selector in known and dependency.workload.selector != item.workload.selector
        ]


def _as_lenient_as_upstream(schema: dict[str, Any]) -> None:
    # Upstream's schema requires neither field, and its controller may write the status of the same object.
    schema.pop("required", None)
    schema["x-kubernetes-preserve-unknown-fields"] = True


class TopologyOrderEntry(ApiModel):
    """The place of one workload in the order."""

    model_config = ConfigDict(json_schema_extra=_as_lenient_as_upstream)

    workload: WorkloadRef = Field(description="The workload.")
    index: Int32 = Field(description="Place in the order, from 1.")


def _places(order: Any) -> Any:
    """Leave out entries without a workload or an index: they give no workload a place in the order."""
    if not isinstance(order, list | tuple):
        return order
    return [entry for entry in order if not (isinstance(entry, dict) and not {"workload", "index"} <= entry.keys())]


class PodScheduled(ApiModel):
    """Where one pod of the group runs."""

    workload: WorkloadRef = Field(description="Workload that the pod is a replica of.")
    pod: str = Field(description="Name of the pod.")
    replica_id: str = Field(description="UID of the pod.")
    hostname: str = Field(description="Name of the node that the pod is bound to.")


class AppGroupStatus(ApiModel):
    """What the appgroup controller has computed and observed."""

    model_config = PRESERVED

    observed_generation: Int64 | None = Field(
        default=None, ge=0, description="Generation of the spec that this status was computed from."
    )
    running_workloads: Int32 | None = Field(default=None, ge=0, description="Number of running pods of the group.")
    schedule_start_time: Timestamp | None = Field(
        default=None, description="When scheduling of the group began: creation of its first pod."
    )
    topology_calculation_time: Timestamp | None = Field(default=None, description="When topologyOrder last changed.")
    algorithm: str | None = Field(default=None, description="Algorithm that topologyOrder was computed with.")
    topology_order: Annotated[tuple[TopologyOrderEntry, ...], BeforeValidator(_places)] = Field(
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
    # A status has room for the order, and not for long names once more.
    head = ",".join(shortened(selector, rules.MAX_SELECTOR) for selector in selectors[:3])
    return head if len(selectors) <= 3 else f"{head},...({len(selectors)})"
