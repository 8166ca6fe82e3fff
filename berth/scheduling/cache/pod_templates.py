"""What placement needs to know of a pod, compiled once per template.

The replicas of a workload differ in name and uid only, so everything that filters and scores read
is compiled into one ``PodTemplateInfo`` that they share. Templates are found by the encoded bytes of the
fields they depend on, which takes a few microseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import msgspec

from berth.api.errors import FieldPath, FieldProblem, InvalidFieldError
from berth.api.interference import InterferenceClass, stated_class
from berth.api.labels import LABEL_INTERFERENCE_CLASS, RESOURCE_BANDWIDTH
from berth.scheduling.cache.bandwidth_annotations import annotated_bandwidth
from berth.scheduling.cache.memo import Memo, digest
from berth.scheduling.cache.terms import (
    AffinityTerm,
    SpreadConstraint,
    compile_affinity_term,
    compile_spread_constraint,
)
from berth.scheduling.requests import SCORING_DEFAULTS, pod_requests, resize_infeasible
from berth.scheduling.units import CPU, LIMIT

if TYPE_CHECKING:
    from berth.kube.objects import NodeSelector, Pod, PodAffinityTerm, PreferredSchedulingTerm, Toleration

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (a value to compare with, nothing is bound to it)
HostPort = tuple[str, str, int]
"""(address, protocol, port); the address is ANY_ADDRESS where the pod names none."""
TermKind = str
"""affinity, anti_affinity, preferred_affinity or preferred_anti_affinity."""

T = TypeVar("T")
Part: TypeAlias = tuple[T, tuple[FieldProblem, ...]]
"""A compiled part of a template and the problems found in it."""
Requests: TypeAlias = tuple[tuple[tuple[str, int], ...], tuple[int, int]]
Spread: TypeAlias = tuple[tuple[SpreadConstraint, ...], tuple[SpreadConstraint, ...]]
NO_TERMS: Part[Mapping[TermKind, tuple[AffinityTerm, ...]]] = ({}, ())
NO_SPREAD: Part[Spread] = (((), ()), ())
TEMPLATE_BYTES = 8 * 2**20
"""Encoded fields of pods whose templates are remembered: some thousand templates, or a few very large ones."""
PART_BYTES = 2 * 2**20
"""The same for each part that templates share."""
LARGE = 2048
"""Encoded bytes from which on a template is not compiled again while somebody holds it: a plan of a thousand pods with
as many terms does not find them among those that are remembered."""
_WHEN = "DuringSchedulingIgnoredDuringExecution"
TERM_KINDS: tuple[TermKind, ...] = ("affinity", "anti_affinity", "preferred_affinity", "preferred_anti_affinity")


@dataclass(frozen=True, slots=True, eq=False)
class PodTemplateInfo:
    """The compiled template of a pod. Compared by identity: equal templates share one template."""

    key: bytes
    """Digest of the fields the template was compiled from; names the template in caches."""
    selection_key: bytes
    """Digest of nodeSelector and required node affinity; names the node selection in caches."""
    tolerations_key: bytes
    """Digest of the tolerations."""
    namespace: str
    """Namespace of the pods."""
    labels: Mapping[str, str]
    """Labels of the pods."""
    group_key: tuple[str, tuple[tuple[str, str], ...]]
    """Namespace and sorted labels: pods alike for every selector."""
    requests: tuple[tuple[str, int], ...]
    """Effective requests above zero, in scheduler units, without ``pods``."""
    scoring_requests: tuple[int, int]
    """(milli-cpu, bytes) with kube-scheduler's defaults for containers that request none."""
    host_ports: tuple[HostPort, ...]
    """Ports wanted on the node's own addresses."""
    node_selector: Mapping[str, str]
    """spec.nodeSelector."""
    required_affinity: NodeSelector | None
    """Required node affinity; None when the pod has none."""
    preferred_affinity: tuple[PreferredSchedulingTerm, ...]
    """Preferred node affinity terms."""
    tolerations: tuple[Toleration, ...]
    """spec.tolerations."""
    terms: Mapping[TermKind, tuple[AffinityTerm, ...]]
    """Pod affinity terms by kind; kinds without terms are absent."""
    hard_spread: tuple[SpreadConstraint, ...]
    """Topology spread constraints with DoNotSchedule."""
    soft_spread: tuple[SpreadConstraint, ...]
    """Topology spread constraints with ScheduleAnyway."""
    problems: tuple[FieldProblem, ...]
    """Fields that cannot be understood; such a pod is never placed."""
    annotated_bandwidth: int = 0
    """bit/s that annotations of the CNI bandwidth plugin add to its request of the node's link, where these count."""
    interference_class: InterferenceClass | None = None
    """Class that its labels state; None without, and where they cannot be read."""
    cpu: int = 0
    """Thousandths of a CPU that it requests."""

    def terms_of(self, kind: TermKind) -> tuple[AffinityTerm, ...]:
        """The terms of one kind, possibly none."""
        return self.terms.get(kind, ())

    def amounts(self, columns: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
        """(column, amount) of its requests, of resources that have a column."""
        # A resource named "pods" in a pod's requests is no request for more pod slots.
        return tuple((columns[name], amount) for name, amount in self.requests if name in columns and name != "pods")

    def charges(self, columns: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
        """What a pod takes of its node: its requests and, of the node's link, what its annotations add."""
        column = columns.get(RESOURCE_BANDWIDTH)
        if not self.annotated_bandwidth or column is None:
            return self.amounts(columns)
        return (*self.amounts(columns), (column, self.annotated_bandwidth))

    def takes_any(self, resources: Collection[str]) -> bool:
        """Whether a pod takes of any of these resources where a node has it."""
        asked = any(name in resources for name, _ in self.requests)
        return asked or (self.annotated_bandwidth > 0 and RESOURCE_BANDWIDTH in resources)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class PodInfo:
    """A pod with its template: what filters and scores are called with."""

    pod: Pod
    """The pod itself."""
    template: PodTemplateInfo
    """Its compiled template."""


class PodTemplateCache:
    """Compiles pods, remembering the templates used last."""

    def __init__(self, *, count_annotations: bool = False, class_label: str = LABEL_INTERFERENCE_CLASS) -> None:
        """Begin without templates.

        Args:
            count_annotations: whether those of the CNI bandwidth plugin count as requests.
            class_label: label that states the interference class.
        """
        self._count_annotations = count_annotations
        self._class_label = class_label
        self._templates: Memo[PodTemplateInfo] = Memo(TEMPLATE_BYTES)
        # Pods with labels of their own have a template each, but share these parts of it.
        self._requests: Memo[Part[Requests]] = Memo(PART_BYTES)
        self._terms: Memo[Part[Mapping[TermKind, tuple[AffinityTerm, ...]]]] = Memo(PART_BYTES)
        self._spread: Memo[Part[Spread]] = Memo(PART_BYTES)
        self._held: WeakValueDictionary[int, PodInfo] = WeakValueDictionary()
        """Pods with large templates that somebody holds, by identity."""
        self._encoder = msgspec.msgpack.Encoder()

    def info(self, pod: Pod) -> PodInfo:
        """The pod with its template."""
        held = self._held.get(id(pod))
        if held is not None:
            return held
        fields = self._fields(pod)
        info = PodInfo(pod, self._of(pod, *fields))
        if len(fields[0]) + len(fields[1]) >= LARGE:
            self._held[id(pod)] = info
        return info

    def template(self, pod: Pod) -> PodTemplateInfo:
        """The template of a pod's template, compiled on first sight."""
        held = self._held.get(id(pod))
        return self._of(pod, *self._fields(pod)) if held is None else held.template

    def _fields(self, pod: Pod) -> tuple[bytes, bytes]:
        """What the template is compiled from, encoded: what amounts depend on, and the rest."""
        spec, status = pod.spec, pod.status
        amounts = self._encoder.encode(
            (
                spec.containers,
                spec.init_containers,
                spec.overhead,
                spec.resources,
                status.container_statuses,
                status.init_container_statuses,
                status.resources,
                status.allocated_resources,
                resize_infeasible(pod),
            )
        )
        rest = self._encoder.encode(
            (
                pod.metadata.namespace,
                pod.metadata.labels,
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                spec.host_network,
            )
        )
        return amounts, rest

    def _of(self, pod: Pod, amounts: bytes, rest: bytes) -> PodTemplateInfo:
        annotated = annotated_bandwidth(pod.metadata.annotations)[0] if self._count_annotations else 0
        fields = amounts + rest + (self._encoder.encode(annotated) if annotated else b"")
        return self._templates.get(fields, lambda key: self._compile(pod, key, amounts, annotated))

    def _compile(self, pod: Pod, key: bytes, amounts: bytes, annotated: int) -> PodTemplateInfo:
        spec, namespace, labels = pod.spec, pod.metadata.namespace, pod.metadata.labels
        affinity = spec.affinity
        node_affinity = affinity.node_affinity if affinity is not None else None
        required = node_affinity.required if node_affinity is not None else None
        (requests, scoring), no_requests = self._requests.get(amounts, lambda _: _requests(pod))
        terms, no_terms = NO_TERMS
        if affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None):
            fields = (namespace, affinity.pod_affinity, affinity.pod_anti_affinity, _own_labels(pod))
            terms, no_terms = self._terms.get(self._encoder.encode(fields), lambda _: _terms(pod))
        (hard, soft), no_spread = NO_SPREAD
        if spec.topology_spread_constraints:
            constraints = (spec.topology_spread_constraints, _own_labels(pod))
            (hard, soft), no_spread = self._spread.get(self._encoder.encode(constraints), lambda _: _spread(pod))
        return PodTemplateInfo(
            key=key,
            selection_key=digest(self._encoder.encode((spec.node_selector, required))),
            tolerations_key=digest(self._encoder.encode(spec.tolerations)),
            namespace=namespace,
            labels=labels,
            group_key=(namespace, tuple(sorted(labels.items()))),
            requests=requests,
            scoring_requests=scoring,
            host_ports=tuple(_host_ports(pod)),
            node_selector=spec.node_selector,
            required_affinity=required,
            preferred_affinity=tuple(node_affinity.preferred) if node_affinity is not None else (),
            tolerations=tuple(spec.tolerations),
            terms=terms,
            hard_spread=hard,
            soft_spread=soft,
            problems=(*no_requests, *no_terms, *no_spread),
            annotated_bandwidth=max(0, annotated - dict(requests).get(RESOURCE_BANDWIDTH, 0)),
            interference_class=stated_class(labels, self._class_label).interference_class,
            cpu=dict(requests).get(CPU, 0),
        )


def _own_labels(pod: Pod) -> list[tuple[str, str | None]]:
    """The pod's labels that its own terms and constraints refer to by matchLabelKeys and mismatchLabelKeys."""
    keys: set[str] = set()
    for constraint in pod.spec.topology_spread_constraints:
        keys.update(constraint.match_label_keys)
    affinity = pod.spec.affinity
    for group in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ():
        if group is not None:
            for term in (*group.required, *(weighted.pod_affinity_term for weighted in group.preferred)):
                keys.update(term.match_label_keys, term.mismatch_label_keys)
    return [(key, pod.metadata.labels.get(key)) for key in sorted(keys)]


def _requests(pod: Pod) -> Part[Requests]:
    try:
        amounts = pod_requests(pod)
        scoring = pod_requests(pod, missing=SCORING_DEFAULTS)
    except ValueError as error:
        return ((), (0, 0)), (FieldProblem(("spec", "containers", "*", "resources"), str(error)),)
    requests = tuple(sorted((name, min(amount, LIMIT)) for name, amount in amounts.items() if amount > 0))
    return (requests, (min(scoring.get("cpu", 0), LIMIT), min(scoring.get("memory", 0), LIMIT))), ()


def _host_ports(pod: Pod) -> Iterable[HostPort]:
    """Ports with a hostPort of all containers that run together, sidecars included."""
    sidecars = (container for container in pod.spec.init_containers if container.restart_policy == "Always")
    for container in (*pod.spec.containers, *sidecars):
        for port in container.ports:
            # The API server fills in the hostPort of hostNetwork pods; plain manifests lack it.
            number = port.host_port or (port.container_port if pod.spec.host_network else 0)
            if number > 0:
                yield (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", number)


def _terms(pod: Pod) -> Part[Mapping[TermKind, tuple[AffinityTerm, ...]]]:
    affinity = pod.spec.affinity
    problems: list[FieldProblem] = []
    if affinity is None:
        return NO_TERMS
    found: dict[TermKind, tuple[AffinityTerm, ...]] = {}
    for field, group, kind in (
        ("podAffinity", affinity.pod_affinity, "affinity"),
        ("podAntiAffinity", affinity.pod_anti_affinity, "anti_affinity"),
    ):
        if group is None:
            continue
        path: FieldPath = ("spec", "affinity", field)
        required = [(term, 0, (*path, f"required{_WHEN}", n)) for n, term in enumerate(group.required)]
        preferred = [
            (term.pod_affinity_term, term.weight, (*path, f"preferred{_WHEN}", n, "podAffinityTerm"))
            for n, term in enumerate(group.preferred)
        ]
        found[kind] = _compile_terms(pod, required, problems)
        found[f"preferred_{kind}"] = _compile_terms(pod, preferred, problems)
    return {kind: terms for kind, terms in found.items() if terms}, tuple(problems)


def _compile_terms(
    pod: Pod, terms: list[tuple[PodAffinityTerm, int, FieldPath]], problems: list[FieldProblem]
) -> tuple[AffinityTerm, ...]:
    compiled = []
    for term, weight, where in terms:
        try:
            compiled.append(
                compile_affinity_term(
                    term, namespace=pod.metadata.namespace, labels=pod.metadata.labels, weight=weight, where=where
                )
            )
        except InvalidFieldError as error:
            problems.append(error.problem)
    return tuple(compiled)


def _spread(pod: Pod) -> Part[Spread]:
    problems: list[FieldProblem] = []
    hard: list[SpreadConstraint] = []
    soft: list[SpreadConstraint] = []
    for number, constraint in enumerate(pod.spec.topology_spread_constraints):
        where = ("spec", "topologySpreadConstraints", number)
        try:
            compiled = compile_spread_constraint(constraint, labels=pod.metadata.labels, where=where)
        except InvalidFieldError as error:
            problems.append(error.problem)
            continue
        if constraint.when_unsatisfiable == "ScheduleAnyway":
            soft.append(compiled)
        elif constraint.when_unsatisfiable == "DoNotSchedule":
            hard.append(compiled)
        else:
            found = constraint.when_unsatisfiable
            what = f"{found!r} is neither DoNotSchedule nor ScheduleAnyway"
            problems.append(FieldProblem((*where, "whenUnsatisfiable"), what))
    return (tuple(hard), tuple(soft)), tuple(problems)
