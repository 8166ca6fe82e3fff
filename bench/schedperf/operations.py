"""The operations of a workload, with their parameters filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar

Labels = Mapping[str, str]


class LeftOutError(Exception):
    """A case cannot be run here; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateNodes:
    """Create nodes, prepared by at most one of the strategies."""

    opcode: ClassVar[str] = "createNodes"
    count: int
    node_template_path: str | None = None
    label_node_prepare_strategy: Mapping[str, Any] | None = None
    """labelKey and labelValues, which the nodes get in turn"""
    node_allocatable_strategy: Mapping[str, Any] | None = None
    """nodeAllocatable, csiNodeAllocatable by driver, migratedPlugins"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateNamespaces:
    """Create namespaces <prefix>-0, <prefix>-1 and so on."""

    opcode: ClassVar[str] = "createNamespaces"
    prefix: str
    count: int
    namespace_template_path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePods:
    """Create pods and wait until all are bound."""

    opcode: ClassVar[str] = "createPods"
    count: int
    namespace: str | None = None
    """None: namespace-<number of the operation>"""
    pod_template_path: str | None = None
    collect_metrics: bool = False
    """measure these pods"""
    skip_wait_to_completion: bool = False
    persistent_volume_template_path: str | None = None
    persistent_volume_claim_template_path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePodSets:
    """Create the same pods in namespaces <prefix>-0, <prefix>-1 and so on."""

    opcode: ClassVar[str] = "createPodSets"
    count: int
    namespace_prefix: str
    create_pods_op: CreatePods


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePods:
    """Delete the pods of a namespace that have the labels."""

    opcode: ClassVar[str] = "deletePods"
    namespace: str
    label_selector: Labels = field(default_factory=dict)
    skip_wait_to_completion: bool = False
    delete_pods_per_second: int = 0
    """0: as fast as can be"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    """Create objects at intervals until the workload ends; in mode recreate, delete them every other time."""

    opcode: ClassVar[str] = "churn"
    mode: str
    template_paths: Sequence[str]
    number: int = 0
    """create: rounds, 0 for no limit; recreate: rounds of creation before as many of deletion"""
    interval_milliseconds: int = 500
    namespace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier:
    """Wait for all pods that were not waited for."""

    opcode: ClassVar[str] = "barrier"
    namespaces: Sequence[str] = ()
    """empty: all"""
    label_selector: Labels = field(default_factory=dict)
    stage_requirement: str = "Scheduled"
    """Scheduled, or Attempted: the pod has a condition PodScheduled"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """Do nothing for a while."""

    opcode: ClassVar[str] = "sleep"
    duration: str

    @property
    def seconds(self) -> float:
        """Go's notation, such as 500ms or 1m30s, in seconds."""
        units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
        parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", self.duration)
        return sum(float(number) * units[unit] for number, unit in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAny:
    """Create objects of any kind."""

    opcode: ClassVar[str] = "createAny"
    template_path: str
    namespace: str | None = None
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAny:
    """Replace objects of any kind, or a subresource of them."""

    opcode: ClassVar[str] = "updateAny"
    template_path: str
    namespace: str | None = None
    count: int = 1
    update_per_second: int = 0
    """0: as fast as can be"""
    subresources: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCollectingMetrics:
    """Measure the pods that are created from now on in the namespaces and have the labels."""

    opcode: ClassVar[str] = "startCollectingMetrics"
    namespaces: Sequence[str]
    label_selector: Labels = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCollectingMetrics:
    """Measure no more."""

    opcode: ClassVar[str] = "stopCollectingMetrics"


Operation = (
    CreateNodes | CreateNamespaces | CreatePods | CreatePodSets | DeletePods | Churn | Barrier | Sleep | CreateAny
    | UpdateAny | StartCollectingMetrics | StopCollectingMetrics
)  # fmt: skip
_KINDS: Mapping[str, type[Operation]] = {
    kind.opcode: kind
    for kind in (
        CreateNodes, CreateNamespaces, CreatePods, CreatePodSets, DeletePods, Churn, Barrier, Sleep, CreateAny,
        UpdateAny, StartCollectingMetrics, StopCollectingMetrics,
    )
}  # fmt: skip


def interpret(document: Mapping[str, Any], params: Mapping[str, Any]) -> Operation:
    """An operation as it is configured, with the workload's parameters in place of those that it refers to.

    Raises:
        LeftOutError: the operation or a field is not understood, or it refers to a parameter that there is not.
    """
    opcode = document.get("opcode")
    kind = _KINDS.get(str(opcode))
    if kind is None:
        raise LeftOutError(f"operation {opcode} is not understood")
    given: dict[str, Any] = {}
    for key, value in document.items():
        if key == "opcode":
            continue
        name = _snake(key)
        if name.endswith("_param"):
            parameter = str(value).removeprefix("$")
            if parameter not in params:
                raise LeftOutError(f"operation {opcode} refers to {value}, a parameter that the workload does not have")
            given[name.removesuffix("_param")] = params[parameter]
        else:
            given[name] = interpret(value, params) if name == "create_pods_op" else value
    known = {item.name: item for item in fields(kind)}
    for name in given:
        if name not in known:
            raise LeftOutError(f"field {name} of operation {opcode} is not understood")
    for name, item in known.items():
        if name not in given and item.default is MISSING and item.default_factory is MISSING:
            raise LeftOutError(f"operation {opcode} lacks {name}")
    return kind(**given)


def _snake(text: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", text).lower()
