"""Which nodes and pods the rules of a pod mean: node selectors, taints, label selectors, topology domains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bench.replicas.cluster import Cluster, Manifest, Node, Pod


def matches(selector: Manifest | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects these labels; none selects nothing, an empty one everything."""
    if selector is None:
        return False
    pairs = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in pairs.items()):
        return False
    return all(_holds(item, labels.get(item["key"])) for item in selector.get("matchExpressions") or ())


def _holds(requirement: Manifest, value: str | None) -> bool:
    operator, values = requirement["operator"], list(requirement.get("values") or ())
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if value is None or not value.lstrip("-").isdigit():
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])


def admits(node: Node, pod: Pod) -> bool:
    """Whether the pod's nodeSelector and required node affinity admit the node."""
    if any(node.labels.get(key) != value for key, value in (pod.spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(_term_admits(node, term) for term in required.get("nodeSelectorTerms") or ())


def _term_admits(node: Node, term: Manifest) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_holds(item, node.labels.get(item["key"])) for item in expressions) and all(
        _holds(item, node.name) for item in fields
    )


def tolerates(node: Node, pod: Pod) -> bool:
    """Whether the pod tolerates the node's taints that keep pods away."""
    taints = [taint for taint in node.taints if taint.get("effect") in ("NoSchedule", "NoExecute")]
    tolerations: Iterable[Any] = pod.spec.get("tolerations") or ()
    return all(any(_tolerated(taint, toleration) for toleration in tolerations) for taint in taints)


def soft_taints(node: Node, pod: Pod) -> int:
    """How many ``PreferNoSchedule`` taints of the node the pod does not tolerate."""
    taints = [taint for taint in node.taints if taint.get("effect") == "PreferNoSchedule"]
    tolerations: Iterable[Any] = pod.spec.get("tolerations") or ()
    return sum(not any(_tolerated(taint, toleration) for toleration in tolerations) for taint in taints)


def unmet_preferences(node: Node, pod: Pod) -> float:
    """Sum of weight / 100 over the pod's preferred node affinity terms that the node does not match."""
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    preferred: Iterable[Any] = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return sum(float(item["weight"]) / 100 for item in preferred if not _term_admits(node, item["preference"]))


def _tolerated(taint: Manifest, toleration: Manifest) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    if operator == "Exists":
        return key in ("", taint["key"])
    return bool(key == taint["key"]) and (toleration.get("value") or "") == (taint.get("value") or "")


def with_label_keys(selector: Manifest | None, item: Manifest, labels: Mapping[str, str]) -> Manifest | None:
    """A term's or constraint's selector, with what its matchLabelKeys and mismatchLabelKeys add for a pod."""
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in item.get(field) or ()
        if key in labels
    ]
    if selector is None or not added:
        return selector
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *added]}


def term_selects(cluster: Cluster, term: Manifest, owner: Pod, other: Pod) -> bool:
    """Whether a pod affinity term of `owner` means the pod `other`."""
    names, selector = term.get("namespaces") or (), term.get("namespaceSelector")
    within = other.namespace in names if names or selector is not None else other.namespace == owner.namespace
    if selector is not None and not within:
        labels = {"kubernetes.io/metadata.name": other.namespace, **cluster.namespaces.get(other.namespace, {})}
        within = matches(selector, labels)
    return within and matches(with_label_keys(term.get("labelSelector"), term, owner.labels), other.labels)


def same_domain(cluster: Cluster, key: str, one: Pod, other: Pod) -> bool:
    """Whether two pods are on nodes with the same value of a topology key."""
    value = cluster.nodes[one.node].labels.get(key)
    return value is not None and value == cluster.nodes[other.node].labels.get(key)


def spread_counts(cluster: Cluster, constraint: Manifest, keys: Iterable[str], pod: Pod) -> dict[str, int]:
    """Pods that a topology spread constraint of `pod` counts, by domain, on the nodes that its policies let count.

    Args:
        cluster: nodes and pods.
        constraint: the constraint.
        keys: topology keys of all constraints of the same kind: a node that lacks one does not count.
        pod: whose constraint it is.
    """
    keys, key = list(keys), constraint["topologyKey"]
    selector = with_label_keys(constraint.get("labelSelector"), constraint, pod.labels)
    counts: dict[str, int] = {}
    counted: set[str] = set()
    for node in cluster.nodes.values():
        if any(name not in node.labels for name in keys):
            continue
        if (constraint.get("nodeAffinityPolicy") or "Honor") == "Honor" and not admits(node, pod):
            continue
        if constraint.get("nodeTaintsPolicy") == "Honor" and not tolerates(node, pod):
            continue
        counts.setdefault(node.labels[key], 0)
        counted.add(node.name)
    for other in cluster.pods:
        if other.node in counted and other.namespace == pod.namespace and matches(selector, other.labels):
            counts[cluster.nodes[other.node].labels[key]] += 1
    return counts
