"""Documents as typed objects; what does not fit becomes a problem that names file, line, object, field and remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, cast

import msgspec

from berth.api.quantity import QuantityError, parse_quantity
from berth.kube.objects import (
    Affinity,
    CSIStorageCapacity,
    CustomObject,
    Node,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
)
from berth.scheduling.cache.pod_templates import PodTemplateCache
from berth.scheduling.simulation.manifests import Document, InputProblem, Path, path_of

T = TypeVar("T")

_MESSAGE = re.compile(r"^(?P<text>.*?)(?: - at `(?P<key>key in )?\$(?P<path>[^`]*)`)?$", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<expected>[^`]+)`, got `(?P<got>[^`]+)`")
_WORDS = {
    "int | float | str": ("an amount", "write one such as 500m, 2 or 1Gi"),
    "str": ("text", "put it in quotes"),
    "int": ("a whole number", "write it without quotes"),
    "bool": ("true or false", "write true or false without quotes"),
    "object": ("a map of fields", "write name: value lines"),
    "array": ("a list", "write its items with a leading -"),
}
_TOLERATION_OPERATORS = ("", "Equal", "Exists", "Lt", "Gt")
_EFFECTS = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
_POLICIES = ("Honor", "Ignore")
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool, "object": dict, "array": list}


class ConversionError(ValueError):
    """A document does not fit its kind; carries the problem."""

    def __init__(self, problem: InputProblem) -> None:
        """Keep the problem."""
        super().__init__(str(problem))
        self.problem = problem


def convert(document: Document, kind: type[T], *, value: Any = None, at: Path = ()) -> T:
    """Read a document, or a part of it, as a struct.

    Args:
        document: the object.
        kind: msgspec struct.
        value: the part; the whole object by default.
        at: where the part is inside the document.

    Raises:
        ConversionError: a field has the wrong type.
    """
    value = document.data if value is None else value
    try:
        return cast("T", CustomObject.of(value)) if kind is CustomObject else msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        path, what = _in_words(str(error), value)
        raise ConversionError(document.problem((*at, *path), what)) from error


def _in_words(message: str, value: Any) -> tuple[Path, str]:
    """Path and sentence for one of msgspec's messages."""
    match = _MESSAGE.match(message)
    text, raw = (match["text"], match["path"] or "") if match else (message, "")
    found = _EXPECTED.search(text)
    expected = found["expected"] if found else ""
    expected = expected if expected in _WORDS else expected.split(" | ")[0]
    path = path_of(raw.partition("[...]")[0])
    inside = _lookup(value, path)
    if "[...]" in raw and isinstance(inside, Mapping):
        # msgspec does not name keys of maps: it is the first entry of a wrong type.
        wanted = tuple(_TYPES.get(name, str) for name in expected.split(" | "))
        wrong = [str(key) for key, item in inside.items() if type(item) not in wanted]
        if found is None:
            # No type was expected instead of another: the number is out of bounds.
            wrong = [key for key in wrong if isinstance(inside[key], int) and not -(2**63) <= inside[key] < 2**63]
        path = (*path, *wrong[:1])
        inside = _lookup(value, path)
    if expected not in _WORDS:
        return path, f"{text[:1].lower()}{text[1:]}; correct the value"
    noun, remedy = _WORDS[expected]
    return path, f"must be {noun}, found {_brief(inside)}; {remedy}"


def _lookup(value: Any, path: Path) -> Any:
    for part in path:
        try:
            value = value[part]
        except (LookupError, TypeError):
            return None
    return value


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def check_name(document: Document) -> Iterator[InputProblem]:
    """An object needs a name."""
    metadata = document.data.get("metadata", {})
    if not isinstance(metadata, dict):
        yield document.problem(("metadata",), "must be a map of fields; write name: and namespace: below it")
    elif not isinstance(metadata.get("name"), str) or not metadata["name"]:
        hint = " (generateName is not supported here)" if "generateName" in metadata else ""
        yield document.problem(("metadata", "name"), f"missing{hint}; give the object a name in quotes or plain text")


def check_node(document: Document, node: Node) -> Iterator[InputProblem]:
    """A node needs readable amounts; those that have none at all take no pod."""
    if not node.status.allocatable:
        yield document.problem(
            ("status", "allocatable"), 'missing; state what pods may use, such as {cpu: "4", memory: 16Gi, pods: "110"}'
        )
    for name in ("allocatable", "capacity"):
        yield from _bad_quantities(document, ("status", name), getattr(node.status, name))
    for number, taint in enumerate(node.spec.taints):
        yield from _bad_word(document, ("spec", "taints", number, "effect"), taint.effect, _EFFECTS)


def check_storage(document: Document, item: Any, *, at: Path = ()) -> Iterator[InputProblem]:
    """Volumes, claims and what is free of a class need readable amounts; other objects have none of these.

    Args:
        document: the object, or one that contains it.
        item: the object.
        at: where it is inside the document.
    """
    if isinstance(item, PersistentVolume):
        yield from _bad_quantities(document, (*at, "spec", "capacity"), item.spec.capacity)
    elif isinstance(item, PersistentVolumeClaim):
        yield from _bad_quantities(document, (*at, "spec", "resources", "requests"), item.spec.resources.requests)
    elif isinstance(item, CSIStorageCapacity):
        stated = {"capacity": item.capacity, "maximumVolumeSize": item.maximum_volume_size}
        amounts = {name: amount for name, amount in stated.items() if amount is not None}
        yield from _bad_quantities(document, at, amounts)


def check_pod(document: Document, pod: Pod, *, at: Path = ("spec",)) -> Iterator[InputProblem]:
    """A pod needs containers and readable amounts.

    Args:
        document: the object the pod comes from.
        pod: the pod.
        at: where its PodSpec is inside the document.
    """
    if not pod.spec.containers:
        yield document.problem((*at, "containers"), "missing; a pod has at least one container")
    for field in ("containers", "initContainers"):
        containers = pod.spec.containers if field == "containers" else pod.spec.init_containers
        for number, container in enumerate(containers):
            here = (*at, field, number, "resources")
            yield from _bad_quantities(document, (*here, "requests"), container.resources.requests)
            yield from _bad_quantities(document, (*here, "limits"), container.resources.limits)
    if pod.spec.resources is not None:
        yield from _bad_quantities(document, (*at, "resources", "requests"), pod.spec.resources.requests)
        yield from _bad_quantities(document, (*at, "resources", "limits"), pod.spec.resources.limits)
    yield from _bad_quantities(document, (*at, "overhead"), pod.spec.overhead)
    yield from _bad_words(document, pod, at)
    yield from _bad_numbers(document, pod, at)
    for problem in PodTemplateCache().template(pod).problems:
        if "*" not in problem.path:  # amounts are told above, each with its own field
            yield document.problem((*at, *problem.path[1:]), f"{problem.text}; correct it")


def _bad_words(document: Document, pod: Pod, at: Path) -> Iterator[InputProblem]:
    """Words that the API server refuses and that a scheduler would otherwise quietly match with nothing."""

    def check(value: str, known: tuple[str, ...], *path: str | int) -> Iterator[InputProblem]:
        return _bad_word(document, (*at, *path), value, known)

    for number, toleration in enumerate(pod.spec.tolerations):
        yield from check(toleration.operator, _TOLERATION_OPERATORS, "tolerations", number, "operator")
        yield from check(toleration.effect, _EFFECTS, "tolerations", number, "effect")
    for number, constraint in enumerate(pod.spec.topology_spread_constraints):
        here = ("topologySpreadConstraints", number)
        yield from check(constraint.node_affinity_policy, _POLICIES, *here, "nodeAffinityPolicy")
        yield from check(constraint.node_taints_policy, _POLICIES, *here, "nodeTaintsPolicy")
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is None:
        return
    required = affinity.required.node_selector_terms if affinity.required is not None else []
    terms: list[tuple[Path, NodeSelectorTerm]] = [
        *(((_REQUIRED, "nodeSelectorTerms", number), term) for number, term in enumerate(required)),
        *(((_PREFERRED, number, "preference"), item.preference) for number, item in enumerate(affinity.preferred)),
    ]
    for path, term in terms:
        for name, requirements in (("matchExpressions", term.match_expressions), ("matchFields", term.match_fields)):
            for number, requirement in enumerate(requirements):
                place = ("affinity", "nodeAffinity", *path, name, number, "operator")
                yield from check(requirement.operator, _NODE_OPERATORS, *place)


def _bad_numbers(document: Document, pod: Pod, at: Path) -> Iterator[InputProblem]:
    """Numbers that the API server refuses and that a scheduler would otherwise reckon with."""
    for number, constraint in enumerate(pod.spec.topology_spread_constraints):
        here = (*at, "topologySpreadConstraints", number)
        if constraint.max_skew < 1:
            yield document.problem((*here, "maxSkew"), f"{constraint.max_skew} is below 1; write 1 or more")
        if constraint.min_domains is not None and constraint.min_domains < 1:
            what = f"{constraint.min_domains} is below 1; write 1 or more, or leave it out"
            yield document.problem((*here, "minDomains"), what)
        elif constraint.min_domains is not None and constraint.when_unsatisfiable == "ScheduleAnyway":
            what = "counts with DoNotSchedule alone; leave it out, or set whenUnsatisfiable to that"
            yield document.problem((*here, "minDomains"), what)
    affinity = pod.spec.affinity or Affinity()
    near, away, nodes = affinity.pod_affinity, affinity.pod_anti_affinity, affinity.node_affinity
    weights = {
        "nodeAffinity": [term.weight for term in nodes.preferred] if nodes is not None else [],
        "podAffinity": [term.weight for term in near.preferred] if near is not None else [],
        "podAntiAffinity": [term.weight for term in away.preferred] if away is not None else [],
    }
    for field, stated in weights.items():
        for number, weight in enumerate(stated):
            if not 1 <= weight <= 100:
                what = f"{weight} is not between 1 and 100; write such a number"
                yield document.problem((*at, "affinity", field, _PREFERRED, number, "weight"), what)


def _bad_word(document: Document, at: Path, value: str, known: tuple[str, ...]) -> Iterator[InputProblem]:
    if value not in known:
        wanted = ", ".join(word for word in known if word)
        yield document.problem(at, f"{value!r} is none of {wanted}; write one of them")


def _bad_quantities(document: Document, at: Path, amounts: Mapping[str, str | int | float]) -> Iterator[InputProblem]:
    for name, amount in amounts.items():
        try:
            low = parse_quantity(str(amount)) < 0
        except QuantityError:
            yield document.problem((*at, name), f"{amount!r} is not a valid quantity; write one such as 500m, 2 or 1Gi")
        else:
            if low:
                yield document.problem((*at, name), f"{amount!r} is below 0; write 0 or more")
