"""The kinds as the API server serves them: names, scope, printer columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from berth.api import appgroup, latencypolicy, networktopology, probereport, socketstatus, workloadprofile
from berth.api.labels import APPGROUP_GROUP, BERTH_GROUP, DIKTYO_VERSION, NETWORKTOPOLOGY_GROUP

if TYPE_CHECKING:
    from berth.api.base import ApiObject


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of ``kubectl get``."""

    name: str
    """Heading."""
    path: str
    """JSONPath of the value."""
    type: str
    """``integer``, ``string`` or ``date``; a date is shown as an age."""
    description: str
    """Meaning of the column."""
    wide: bool = False
    """Whether the column is shown by ``-o wide`` only."""

    def to_api(self) -> dict[str, Any]:
        """Return the entry of ``additionalPrinterColumns``."""
        entry: dict[str, Any] = {
            "name": self.name,
            "type": self.type,
            "description": self.description,
            "jsonPath": self.path,
        }
        return entry | ({"priority": 1} if self.wide else {})


@dataclass(frozen=True, kw_only=True)
class KindSpec:
    """One kind: its model and how it is served."""

    model: type[ApiObject]
    """Model that the schema is generated from."""
    group: str
    """API group."""
    version: str
    """The one version served and stored."""
    kind: str
    """Kind, in CamelCase."""
    plural: str
    """Resource name."""
    singular: str
    """Singular resource name."""
    short_names: tuple[str, ...]
    """Short names for kubectl."""
    columns: tuple[Column, ...]
    """Columns of ``kubectl get``."""
    namespaced: bool = True
    """Whether objects live in namespaces."""
    categories: tuple[str, ...] = ("berth",)
    """Categories for kubectl, such as ``kubectl get berth``."""


_AGE: Final = Column(
    name="Age", type="date", path=".metadata.creationTimestamp", description="Time since the object was created."
)


def _reason(condition: str, *, description: str, heading: str | None = None, wide: bool = True) -> Column:
    return Column(
        name=heading or condition,
        type="string",
        path=f'.status.conditions[?(@.type=="{condition}")].reason',
        description=description,
        wide=wide,
    )


def _limit(name: str) -> Column:
    """The limit of the spec, else of the status: of several results the first is shown.

    A path with two dots finds both too, in an order that changes, and goes through all characters of the status.
    """
    field = f"{name.lower()}MaxLatency"
    path = f".*['{field}','annotatedLimits.{field}']"
    return Column(name=name, type="integer", path=path, description=f"{name} limit in milliseconds.")


APPGROUP: Final = KindSpec(
    model=appgroup.AppGroup,
    group=APPGROUP_GROUP,
    version=DIKTYO_VERSION,
    kind=appgroup.KIND,
    plural=appgroup.PLURAL,
    singular="appgroup",
    short_names=("ag",),
    columns=(
        Column(name="Members", type="integer", path=".spec.numMembers", description="Pods that the group consists of."),
        Column(name="Running", type="integer", path=".status.runningWorkloads", description="Pods that run."),
        Column(
            name="Algorithm",
            type="string",
            path=".spec.topologySortingAlgorithm",
            description="Algorithm that orders the workloads.",
        ),
        Column(
            name="Order",
            type="string",
            path=".status.orderSummary",
            description="First few workloads of the order, and how many there are.",
        ),
        _reason(appgroup.CONDITION_ORDERED, description="Why the order is or is not up to date."),
        _reason(appgroup.CONDITION_PLACED, description="Why the group is or is not placed."),
        _AGE,
    ),
)
"""AppGroup as served."""

NETWORKTOPOLOGY: Final = KindSpec(
    model=networktopology.NetworkTopology,
    group=NETWORKTOPOLOGY_GROUP,
    version=DIKTYO_VERSION,
    kind=networktopology.KIND,
    plural=networktopology.PLURAL,
    singular="networktopology",
    short_names=("nt",),
    columns=(
        Column(name="Weight-Sets", type="string", path=".status.weightSets", description="Names of the weight sets."),
        Column(name="Nodes", type="integer", path=".status.nodeCount", description="Nodes of the cluster."),
        Column(name="Regions", type="integer", path=".status.regions", description="Regions of the cluster."),
        Column(name="Zones", type="integer", path=".status.zones", description="Zones of the cluster."),
        Column(name="Data-Age", type="date", path=".status.dataTime", description="Time since the newest measurement."),
        _reason(
            networktopology.CONDITION_SOURCE_AVAILABLE,
            heading="Source",
            description="Why the measurements can or cannot be read.",
        ),
        _reason(
            networktopology.CONDITION_WEIGHTS_COMPUTED,
            heading="Computed",
            description="Why the computed weights are or are not up to date.",
        ),
        _reason(networktopology.CONDITION_COMPLETE, description="Why the costs are or are not complete."),
        _AGE,
    ),
)
"""NetworkTopology as served."""

PROBEREPORT: Final = KindSpec(
    model=probereport.ProbeReport,
    group=BERTH_GROUP,
    version="v1alpha1",
    kind=probereport.KIND,
    plural=probereport.PLURAL,
    singular="probereport",
    short_names=(),
    namespaced=False,
    columns=(
        Column(name="Zone", type="string", path=".status.zone", description="Zone of the node."),
        Column(name="Peers", type="integer", path=".status.peerCount", description="Nodes that it probes."),
        Column(
            name="P90-Nearest",
            type="string",
            path=".status.nearestZone",
            description="Least median of p90 to another zone, and which zone that is.",
        ),
        Column(
            name="P90-Farthest",
            type="string",
            path=".status.farthestZone",
            description="Greatest median of p90 to another zone, and which zone that is.",
        ),
        Column(name="Loss", type="string", path=".status.loss", description="Mean loss of all peers."),
        Column(
            name="Dropped",
            type="integer",
            path=".status.roundsDropped",
            description="Rounds that the node was too busy to measure in.",
            wide=True,
        ),
        Column(name="Age", type="date", path=".status.time", description="Time since the report was written."),
    ),
)
"""ProbeReport as served."""

SOCKETSTATUS: Final = KindSpec(
    model=socketstatus.SocketStatus,
    group=BERTH_GROUP,
    version="v1alpha1",
    kind=socketstatus.KIND,
    plural=socketstatus.PLURAL,
    singular="socketstatus",
    short_names=("sst",),
    namespaced=False,
    columns=(
        Column(name="Sockets", type="integer", path=".status.socketCount", description="Sockets of the node."),
        Column(
            name="Pinned",
            type="string",
            path=".status.pinned",
            description="Pods with the CPUs of their socket, of those with a class.",
        ),
        Column(
            name="Violations",
            type="integer",
            path=".status.violations",
            description="Pairs of pods on one socket whose classes do not fit together.",
        ),
        _reason(
            socketstatus.CONDITION_PINNED,
            heading="Reason",
            description="Why assigned pods have or have not the CPUs of their socket.",
        ),
        _reason(
            socketstatus.CONDITION_PAIRED,
            heading="Pairing",
            description="Whether pods on one socket disturb each other, and what becomes of it.",
        ),
        Column(name="Age", type="date", path=".status.time", description="Time since the status was written."),
    ),
)
"""SocketStatus as served."""

WORKLOADPROFILE: Final = KindSpec(
    model=workloadprofile.WorkloadProfile,
    group=BERTH_GROUP,
    version="v1alpha1",
    kind=workloadprofile.KIND,
    plural=workloadprofile.PLURAL,
    singular="workloadprofile",
    short_names=("wp",),
    columns=(
        Column(name="Target", type="string", path=".spec.targetRef.name", description="Workload that it is about."),
        Column(name="Class", type="string", path=".spec.interferenceClass", description="Interference class."),
        Column(
            name="Sensitivity",
            type="string",
            path=".spec.sensitivity",
            description="Slowdown beside others, outliers left out.",
        ),
        Column(
            name="Contentiousness",
            type="string",
            path=".spec.contentiousness",
            description="Slowdown of others beside it, outliers left out.",
        ),
        Column(
            name="Limit",
            type="string",
            path=".spec.qosLimit",
            description="Slowdown from which on a workload suffers.",
            wide=True,
        ),
        Column(name="Method", type="string", path=".spec.method", description="How it was learnt.", wide=True),
        Column(name="Samples", type="integer", path=".spec.samples", description="Slowdowns behind it.", wide=True),
        Column(name="Measured", type="date", path=".spec.measuredTime", description="Time since it was measured."),
        _AGE,
    ),
)
"""WorkloadProfile as served."""

LATENCYPOLICY: Final = KindSpec(
    model=latencypolicy.LatencyPolicy,
    group=BERTH_GROUP,
    version="v1alpha1",
    kind=latencypolicy.KIND,
    plural=latencypolicy.PLURAL,
    singular="latencypolicy",
    short_names=("lp",),
    columns=(
        Column(name="Target", type="string", path=".spec.targetRef.name", description="Workload that it is about."),
        Column(name="Objective", type="string", path=".spec.objective", description="What pods move for.", wide=True),
        _limit("Hard"),
        _limit("Soft"),
        Column(name="State", type="string", path=".status.state", description="States of the nodes that pods are on."),
        Column(
            name="P50", type="string", path=".status.p50", description="Median round trip of the farthest of these."
        ),
        Column(
            name="Moves",
            type="integer",
            path=".status.movesLastHour",
            description="Moves that began within the last hour.",
        ),
        _reason(
            latencypolicy.CONDITION_WORKING,
            description="Why the policy can or cannot be carried out.",
            wide=False,
        ),
        _reason(
            latencypolicy.CONDITION_WITHIN_LIMITS,
            heading="Limits",
            description="Why users have or have not what the policy asks for.",
        ),
        _reason(latencypolicy.CONDITION_MOVING, description="Whether pods move, and what keeps them."),
        _AGE,
    ),
)
"""LatencyPolicy as served."""

KINDS: Final[tuple[KindSpec, ...]] = (
    APPGROUP,
    NETWORKTOPOLOGY,
    PROBEREPORT,
    SOCKETSTATUS,
    WORKLOADPROFILE,
    LATENCYPOLICY,
)
"""Every kind, in the order of the documentation."""
