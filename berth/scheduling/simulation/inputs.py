"""Everything that a plan starts from: live objects and manifests, the latter winning where both state one object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from berth.api.appgroup import AppGroup
from berth.api.base import read_timestamp
from berth.api.checks import appgroup_problems, profile_problems, topology_problems
from berth.api.errors import InvalidObjectError
from berth.api.list_maps import repeated_keys
from berth.api.networktopology import NetworkTopology
from berth.api.socketstatus import SocketStatus
from berth.api.spread import spread_problem
from berth.api.workloadprofile import WorkloadProfile
from berth.kube.custom_object import encoded
from berth.kube.objects import ConfigMap, CustomObject, Node, Pod, StorageClass
from berth.kube.priorities import PRIORITY_CLASSES, PriorityClass
from berth.kube.probe_reports import PROBE_REPORTS, Report, moment_of
from berth.kube.resources import (
    APP_GROUPS,
    CONFIGMAPS,
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    NAMESPACES,
    NETWORK_TOPOLOGIES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SERVICES,
    SOCKET_STATUSES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    WORKLOAD_PROFILES,
    Resource,
)
from berth.scheduling.simulation.convert import (
    ConversionError,
    check_name,
    check_node,
    check_pod,
    check_storage,
    convert,
)
from berth.scheduling.simulation.defaults import default_claim, default_pod
from berth.scheduling.simulation.live_pods import LivePods
from berth.scheduling.simulation.manifests import PROGRESS_EVERY, Document, InputProblem
from berth.scheduling.simulation.workloads import WORKLOAD_KINDS, Workload, read_workload

READ: tuple[Resource[Any], ...] = (
    NODES,
    PODS,
    NAMESPACES,
    SERVICES,
    APP_GROUPS,
    NETWORK_TOPOLOGIES,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
    PRIORITY_CLASSES,
)
"""Kinds that a plan reads from a live cluster."""
MAY_LACK: tuple[Resource[Any], ...] = (PROBE_REPORTS, SOCKET_STATUSES, WORKLOAD_PROFILES)
"""Kinds that it reads where they are there and may be read."""
_BY_KIND: dict[tuple[str, str], Resource[Any]] = {
    (item.group, item.kind): item for item in (*READ, *MAY_LACK, CONFIGMAPS)
}
_OWN_GROUPS = frozenset({APP_GROUPS.group, NETWORK_TOPOLOGIES.group})
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
DEFAULT_MAX_PODS = "110"
"""Pods that a kubelet takes unless told otherwise."""

Live = Mapping[str, Sequence[Any]]
"""Objects of a live cluster by kind."""


class Measured(NamedTuple):
    """What node agents have measured."""

    reports: Sequence[Report] = ()
    """their ProbeReports"""
    now: datetime | None = None
    """when they were read; None without any"""


NOTHING_MEASURED = Measured()
"""No agent anywhere."""

Forecast = Callable[
    [Mapping[str, Any], Mapping[str, Mapping[str, str]], Mapping[str, Mapping[str, str]], Measured], Any
]
"""What a controller would make of a new object: (object, labels by node, data by ConfigMap, what was measured) to the
object with the fields that the controller fills in."""


@dataclass(slots=True)
class Inputs:
    """Typed objects, ready for the cache."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    """by kind, then by ``namespace/name`` (or name)"""
    origins: dict[str, str] = field(default_factory=dict)
    """pod key to the workload it comes from"""
    sources: dict[str, Document] = field(default_factory=dict)
    """``Kind key`` of objects from manifests to their document"""
    per_node: list[Workload] = field(default_factory=list)
    """DaemonSets: their pods depend on the nodes"""
    skipped: Counter[str] = field(default_factory=Counter)
    """kinds in the manifests that a plan does not read"""
    notes: list[str] = field(default_factory=list)
    """what a reader of the plan should know about its input"""
    measured: Measured = NOTHING_MEASURED
    """what node agents have measured"""

    def of(self, kind: str) -> list[Any]:
        """All objects of a kind, live ones first, then in the order of the manifests."""
        return list(self.objects.get(kind, {}).values())

    def put(self, kind: str, item: Any) -> None:
        """Add or replace an object."""
        meta = item.metadata
        self.objects.setdefault(kind, {})[f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name] = item


class _Assembly:
    """Builds :class:`Inputs` and collects what is wrong."""

    def __init__(self, live: Live, *, namespace: str, now: str, forecasts: Mapping[str, Forecast]) -> None:
        self.inputs = Inputs()
        self.problems: list[InputProblem] = []
        self._namespace = namespace
        self._now = now
        self._live = bool(live)
        self._forecasts = forecasts
        self._workloads: list[Workload] = []
        self._satisfied = 0
        self._pods: dict[str, tuple[Document, Pod]] = {}
        self._sound: set[bytes] = set()
        self._reserved: set[str] = set()
        for kind, items in live.items():
            for item in items:
                self.inputs.put(kind, item)
        self._live_pods = LivePods(pod for pod in self.inputs.of("Pod") if not pod.finished)

    def add(self, document: Document) -> None:
        """Read one document."""
        kind = (document.group, document.kind)
        resource = _BY_KIND.get(kind)
        if resource is None and kind not in WORKLOAD_KINDS:
            self.inputs.skipped[document.kind] += 1
            if document.group in _OWN_GROUPS:
                known = f"kinds of this group: {', '.join(r.kind for r in READ if r.group == document.group)}"
                self.problems.append(document.problem(("kind",), f"there is no such kind; {known}"))
            return
        bad = list(check_name(document))
        if bad:
            self.problems += bad
            return
        if resource is None or resource.namespaced:
            document.data.setdefault("metadata", {}).setdefault("namespace", self._namespace)
        else:
            document.data["metadata"].pop("namespace", None)
        self._note_repeated(document)
        if resource is None:
            workload, problems = read_workload(document)
            self.problems += problems
            if workload is not None:
                self._workloads.append(workload)
            return
        try:
            item = convert(document, resource.type)
        except ConversionError as error:
            self.problems.append(error.problem)
            return
        self._put(document, item)
        if document.kind not in _MODELS:
            # The struct has what counts of it; of a large cluster the documents are most of the memory.
            for name in ("spec", "status"):
                document.data.pop(name, None)

    def _note_repeated(self, document: Document) -> None:
        metadata = document.data["metadata"]
        name = f"{document.kind} {metadata.get('namespace', '')}/{metadata['name']}".replace(" /", " ")
        first = self.inputs.sources.get(name)
        if first is not None:
            self.inputs.notes.append(
                f"{name} is stated twice: {document.source}:{document.line()} replaces {first.source}:{first.line()}"
            )
            self._workloads = [item for item in self._workloads if item.document is not first]
        self.inputs.sources[name] = document

    def _put(self, document: Document, item: Any) -> None:
        meta = item.metadata
        meta.creation_timestamp = meta.creation_timestamp or self._now
        meta.uid = meta.uid or f"{document.kind}/{meta.namespace}/{meta.name}"
        if isinstance(item, Node):
            if not item.status.allocatable:
                item.status.allocatable = dict(item.status.capacity)
            if item.status.allocatable:
                item.status.allocatable.setdefault("pods", DEFAULT_MAX_PODS)
            self.problems += check_node(document, item)
        elif isinstance(item, Pod):
            self._check_pod(document, item)
            self._pods.pop(item.key, None)
            self._pods[item.key] = document, item
            return
        elif document.kind == "PersistentVolume" and not item.status.phase:
            item.status.phase = "Bound" if item.spec.claim_ref is not None else "Available"
        self.problems += check_storage(document, item)
        self.inputs.put(document.kind, item)

    def _check_pod(self, document: Document, pod: Pod) -> None:
        """Check a pod, unless one that is equal but for its name, node and volumes was sound."""
        spec = msgspec.structs.replace(pod.spec, node_name="", volumes=[])
        template = msgspec.msgpack.encode((pod.metadata.labels, spec, pod.status))
        digest = blake2b(template, digest_size=16).digest()
        if digest in self._sound:
            return
        problems = list(check_pod(document, pod))
        if not problems:
            self._sound.add(digest)
        self.problems += problems

    def finish(self) -> None:
        """Expand workloads and fill in what the API server and other controllers would."""
        reports = self.inputs.of("ProbeReport")
        if self._live:
            now = read_timestamp(self._now)
        else:  # those of manifests alone are of a moment, which they tell themselves
            nodes = {node.metadata.name for node in self.inputs.of("Node")}
            now = moment_of(report for report in reports if report.metadata.name in nodes)
        self.inputs.measured = Measured(reports, now)
        self._kinds_of_ours()
        priorities: dict[str, PriorityClass] = self.inputs.objects.get("PriorityClass", {})
        classes: list[StorageClass] = self.inputs.of("StorageClass")
        default = next((c.metadata.name for c in classes if c.metadata.annotations.get(_DEFAULT_CLASS) == "true"), None)
        known = {pod.metadata.uid: pod.key for pod in self.inputs.of("Pod")}
        for key, (document, pod) in self._pods.items():
            if key in self._live_pods:
                self.inputs.notes.append(f"Pod {key} is in the cluster and stays as it is there")
                continue
            if (other := known.setdefault(pod.metadata.uid, key)) != key:
                what = f"{pod.metadata.uid!r} is that of Pod {other} as well; leave it out of one of them"
                self.problems.append(document.problem(("metadata", "uid"), what))
            problem = default_pod(pod, priorities)
            if problem is not None:
                self.problems.append(document.problem(("spec", "priorityClassName"), problem))
            self.inputs.put("Pod", pod)
        self._reserved = {
            f"{workload.namespace}/{workload.pod_name(number)}"
            for workload in self._workloads
            if workload.numbered
            for number in range(workload.replicas)
        }
        for workload in self._workloads:
            problem = default_pod(workload.template, priorities)
            if problem is not None:
                self.problems.append(workload.document.problem((*workload.at, "priorityClassName"), problem))
            if workload.per_node:
                self.inputs.per_node.append(workload)
            else:
                self._expand(workload)
        if self._satisfied:
            self.inputs.notes.append(
                f"{self._satisfied} workloads of the manifests have all their pods in the cluster; those stay"
            )
        for claim in self.inputs.of("PersistentVolumeClaim"):
            default_claim(claim, default)

    def _expand(self, workload: Workload) -> None:
        """Put the pods that the workload lacks; live ones that it selects count."""
        own = self._live_pods.of(workload)
        if own and len(own) < workload.replicas:
            self.inputs.notes.append(
                f"{workload.origin} in namespace {workload.namespace} has {len(own)} pods in the cluster, which stay "
                f"as they are; {workload.replicas - len(own)} of {workload.replicas} are new"
            )
        self._satisfied += bool(own) and len(own) >= workload.replicas
        added = number = 0
        while added < workload.replicas - len(own):
            key = f"{workload.namespace}/{workload.pod_name(number)}"
            there: Pod | None = self.inputs.objects.get("Pod", {}).get(key)
            if there is not None and not there.finished:
                # A StatefulSet's pod that is stated beside it is that pod; names of others are made up here.
                stated = workload.numbered and key in self._pods and key not in self._live_pods
                selects = workload.selects
                added += stated and selects is not None and selects.matches(there.metadata.labels)
            elif workload.numbered or key not in self._reserved:
                self.update_pod(workload, workload.pod(number))
                added += 1
            number += 1

    def update_pod(self, workload: Workload, pod: Pod) -> None:
        """Add a pod of a workload with its claims."""
        pod.metadata.uid = f"Pod/{pod.key}"
        pod.metadata.creation_timestamp = self._now
        self.inputs.put("Pod", pod)
        self.inputs.origins[pod.key] = workload.origin
        for claim in workload.claims_of(pod):
            known = self.inputs.objects.get("PersistentVolumeClaim", {})
            if f"{claim.metadata.namespace}/{claim.metadata.name}" not in known:
                claim.metadata.uid = f"PersistentVolumeClaim/{claim.metadata.namespace}/{claim.metadata.name}"
                self.inputs.put("PersistentVolumeClaim", claim)

    def _kinds_of_ours(self) -> None:
        """Check objects of Berth's kinds in the manifests, and complete them as their controllers would."""
        nodes = {node.metadata.name: node.metadata.labels for node in self.inputs.of("Node")}
        maps: dict[str, Mapping[str, str]] = {
            f"{item.metadata.namespace}/{item.metadata.name}": item.data
            for item in self.inputs.of("ConfigMap")
            if isinstance(item, ConfigMap)
        }
        for document in list(self.inputs.sources.values()):
            model = _MODELS.get(document.kind)
            metadata = document.data["metadata"]
            namespace, key = metadata.get("namespace"), str(metadata["name"])
            key = f"{namespace}/{key}" if namespace else key
            item: CustomObject | None = self.inputs.objects.get(document.kind, {}).get(key)
            if model is None or item is None:
                continue
            try:
                # What a plan knows of a node's sockets is the status: it is not dropped for a field of it.
                parsed = model.parse(document.data, whole=model is SocketStatus)
            except InvalidObjectError as error:
                self.problems += (document.problem(problem.path, problem.text) for problem in error.problems)
                continue
            wrong = topology_problems(parsed.spec) if isinstance(parsed, NetworkTopology) else []
            if isinstance(parsed, AppGroup):
                spread = spread_problem(item.metadata.annotations)
                wrong = [*appgroup_problems(parsed.spec), *([] if spread is None else [spread])]
            if isinstance(parsed, WorkloadProfile):
                wrong = profile_problems(parsed.spec)
            wrong += repeated_keys(parsed)
            self.problems += (document.problem(problem.path, problem.text) for problem in wrong)
            if wrong:
                continue
            forecast = self._forecasts.get(document.kind)
            if forecast is not None:
                completed = forecast(document.data, nodes, maps, self.inputs.measured)
                item.spec, item.status = encoded(completed.get("spec", {})), encoded(completed.get("status", {}))


_MODELS: dict[str, type[AppGroup] | type[NetworkTopology] | type[SocketStatus] | type[WorkloadProfile]] = {
    "AppGroup": AppGroup,
    "NetworkTopology": NetworkTopology,
    "SocketStatus": SocketStatus,
    "WorkloadProfile": WorkloadProfile,
}


def assemble(
    documents: Iterable[Document],
    *,
    live: Live | None = None,
    namespace: str = "default",
    now: str = "",
    forecasts: Mapping[str, Forecast] | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[Inputs, list[InputProblem]]:
    """Read all documents on top of a live cluster.

    Args:
        documents: manifests in the order of the command line.
        live: objects of the cluster by kind, empty without one.
        namespace: for objects that name none.
        now: RFC 3339 creation time of objects that state none.
        forecasts: by kind, what its controller would fill in.
        progress: told now and then how many documents have been checked.

    Returns:
        The inputs, and every problem; inputs with problems are incomplete.
    """
    assembly = _Assembly(live or {}, namespace=namespace, now=now, forecasts=forecasts or {})
    for number, document in enumerate(documents):
        if progress is not None and number % PROGRESS_EVERY == 0:
            progress(number)
        if not isinstance(document.data.get("metadata", {}), dict):
            assembly.problems.append(document.problem(("metadata",), "must be a map of fields; write name: below it"))
            continue
        assembly.add(document)
    assembly.finish()
    return assembly.inputs, assembly.problems
