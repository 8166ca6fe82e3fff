"""Workloads as the pods that their controllers would create."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from berth.api.errors import InvalidFieldError
from berth.kube.objects import LabelSelector, ObjectMeta, OwnerReference, PersistentVolumeClaim, Pod, Volume
from berth.kube.objects import PersistentVolumeClaimVolumeSource as ClaimSource
from berth.scheduling.cache.selectors import Selector, compile_selector
from berth.scheduling.simulation.convert import ConversionError, check_pod, check_storage, convert
from berth.scheduling.simulation.manifests import Document, InputProblem, Path

MAX_REPLICAS = 100_000
"""Pods of one workload that a plan accepts: more is a slip of the pen."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A template and how many pods it stands for."""

    document: Document
    """where it was stated"""
    namespace: str
    """namespace of its pods"""
    origin: str
    """``Kind/name``"""
    template: Pod
    """one of its pods, without name"""
    at: Path
    """where the template's PodSpec is"""
    replicas: int
    """pods wanted; meaningless for one pod per node"""
    ordinal: int = 1
    """number of the first pod"""
    numbered: bool = False
    """StatefulSet: its pods have these names in a cluster as well"""
    per_node: bool = False
    """DaemonSet: a pod for every node that its template admits"""
    selects: Selector | None = None
    """which live pods are its own; None when none can be"""
    claims: tuple[PersistentVolumeClaim, ...] = ()
    """volumeClaimTemplates of a StatefulSet"""

    def pod_name(self, number: int) -> str:
        """Name of pod number `number`, from 0."""
        return f"{self.document.data['metadata']['name']}-{self.ordinal + number}"

    def pod(self, number: int, *, name: str | None = None) -> Pod:
        """Pod number `number` of the workload, from 0."""
        name = name or self.pod_name(number)
        pod = msgspec.convert(msgspec.to_builtins(self.template), Pod)
        kind, _, owner = self.origin.partition("/")
        uid = f"{self.namespace}/{self.origin}"
        pod.metadata = ObjectMeta(
            name=name,
            namespace=self.namespace,
            labels=dict(self.template.metadata.labels),
            annotations=dict(self.template.metadata.annotations),
            owner_references=[OwnerReference(kind=kind, name=owner, uid=uid, controller=True)],
        )
        for claim in self.claims:
            source = ClaimSource(claim_name=f"{claim.metadata.name}-{name}")
            others = [volume for volume in pod.spec.volumes if volume.name != claim.metadata.name]
            pod.spec.volumes = [*others, Volume(name=claim.metadata.name, persistent_volume_claim=source)]
        return pod

    def claims_of(self, pod: Pod) -> Iterator[PersistentVolumeClaim]:
        """The claims that a StatefulSet creates for one of its pods."""
        for template in self.claims:
            claim = msgspec.convert(msgspec.to_builtins(template), PersistentVolumeClaim)
            name = f"{template.metadata.name}-{pod.metadata.name}"
            claim.metadata = ObjectMeta(name=name, namespace=self.namespace, labels=template.metadata.labels)
            yield claim


@dataclass(slots=True)
class _Reader:
    """Reads one workload, keeping every problem."""

    document: Document
    problems: list[InputProblem] = field(default_factory=list)

    def get(self, path: Path, kind: type | tuple[type, ...], words: str) -> Any:
        """The value at a path; None when absent. A value of another type is a problem."""
        value: Any = self.document.data
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is int)):
            self.problems.append(self.document.problem(path, f"must be {words}, found {str(value)[:40]!r}; correct it"))
            return None
        return value

    def count(self, path: Path, default: int) -> int:
        """A number of pods."""
        value = self.get(path, int, "a whole number without quotes")
        if value is None:
            return default
        if not 0 <= value <= MAX_REPLICAS:
            what = f"{value} is not between 0 and {MAX_REPLICAS}; correct the number"
            self.problems.append(self.document.problem(path, what))
            return 0
        return int(value)

    def workload(self, *, template: Path, replicas: int, **more: Any) -> Workload | None:
        raw = self.get(template, dict, "a map with metadata and spec")
        if raw is None:
            if not self.problems:
                self.problems.append(self.document.problem(template, "missing; a workload has a pod template"))
            return None
        try:
            pod = convert(self.document, Pod, value={"metadata": {}, "spec": {}, **raw}, at=template)
        except ConversionError as error:
            self.problems.append(error.problem)
            return None
        self.problems += check_pod(self.document, pod, at=(*template, "spec"))
        metadata = self.document.data["metadata"]
        return Workload(
            document=self.document,
            namespace=metadata["namespace"],
            origin=f"{self.document.kind}/{metadata['name']}",
            template=pod,
            at=(*template, "spec"),
            replicas=replicas,
            selects=self.selector(pod),
            **more,
        )

    def selector(self, template: Pod) -> Selector | None:
        """spec.selector, which must match the template's own labels."""
        raw = self.get(("spec", "selector"), dict, "a label selector")
        if not raw:
            return None
        if self.document.kind == "ReplicationController":
            raw = {"matchLabels": raw}
        try:
            selector = convert(self.document, LabelSelector, value=raw, at=("spec", "selector"))
            query = compile_selector(selector, where=("spec", "selector"))
        except ConversionError as error:
            self.problems.append(error.problem)
            return None
        except InvalidFieldError as error:
            self.problems.append(self.document.problem(error.problem.path, error.problem.text))
            return None
        if not query.matches(template.metadata.labels):
            what = "does not match the labels of the pod template; the API server refuses that, make them agree"
            self.problems.append(self.document.problem(("spec", "selector"), what))
        return query


def _replicated(reader: _Reader) -> Workload | None:
    return reader.workload(template=("spec", "template"), replicas=reader.count(("spec", "replicas"), 1))


def _stateful(reader: _Reader) -> Workload | None:
    claims: list[PersistentVolumeClaim] = []
    path: Path = ("spec", "volumeClaimTemplates")
    for number, raw in enumerate(reader.get(path, list, "a list of claims") or ()):
        try:
            claims.append(convert(reader.document, PersistentVolumeClaim, value=raw, at=(*path, number)))
        except ConversionError as error:
            reader.problems.append(error.problem)
        else:
            reader.problems += check_storage(reader.document, claims[-1], at=(*path, number))
    return reader.workload(
        template=("spec", "template"),
        replicas=reader.count(("spec", "replicas"), 1),
        ordinal=reader.count(("spec", "ordinals", "start"), 0),
        numbered=True,
        claims=tuple(claims),
    )


def _per_node(reader: _Reader) -> Workload | None:
    return reader.workload(template=("spec", "template"), replicas=0, per_node=True)


def _job(reader: _Reader, at: Path = ("spec",)) -> Workload | None:
    """The pods of a Job that run at the same time."""
    parallel = reader.count((*at, "parallelism"), 1)
    at_once = min(parallel, reader.count((*at, "completions"), parallel))
    if reader.get((*at, "suspend"), bool, "true or false"):
        at_once = 0
    found = reader.workload(template=(*at, "template"), replicas=at_once)
    if found is None or at != ("spec",):
        return found
    # The selector of a Job is made by the API server; this label is what its controller gives to the pods.
    labels = {"job-name": found.origin.partition("/")[2]}
    return replace(found, selects=compile_selector(LabelSelector(match_labels=labels)))


def _cron_job(reader: _Reader) -> Workload | None:
    """One run of the CronJob."""
    if reader.get(("spec", "suspend"), bool, "true or false"):
        return reader.workload(template=("spec", "jobTemplate", "spec", "template"), replicas=0)
    return _job(reader, ("spec", "jobTemplate", "spec"))


_READERS: dict[tuple[str, str], Callable[[_Reader], Workload | None]] = {
    ("", "ReplicationController"): _replicated,
    ("apps", "Deployment"): _replicated,
    ("apps", "ReplicaSet"): _replicated,
    ("apps", "StatefulSet"): _stateful,
    ("apps", "DaemonSet"): _per_node,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _cron_job,
}

WORKLOAD_KINDS = frozenset(_READERS)
"""(API group, kind) of what has a pod template."""


def read_workload(document: Document) -> tuple[Workload | None, list[InputProblem]]:
    """Read a document of one of :data:`WORKLOAD_KINDS`; its metadata has a name and a namespace."""
    reader = _Reader(document)
    workload = _READERS[document.group, document.kind](reader)
    return workload, reader.problems
