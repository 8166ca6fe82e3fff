"""Which hard rules a placement breaks, and how far it goes against the soft ones.

A rule is broken if no order of binding the pods would have passed kube-scheduler's filters. For all rules but required
affinity that shows in the end state; affinity is followed from pod to pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.replicas.cluster import GROUP_LABEL, SAME_ZONE_COST, WORKLOAD_LABEL, Cluster, Edge, Manifest, Pod, amount
from bench.replicas.evaluator import Group, reached, routing
from bench.replicas.selection import admits, same_domain, spread_counts, term_selects, tolerates

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
DEFAULT_SPREAD: Final[tuple[Manifest, ...]] = (
    {"topologyKey": "kubernetes.io/hostname", "maxSkew": 3},
    {"topologyKey": "topology.kubernetes.io/zone", "maxSkew": 5},
)
"""What kube-scheduler spreads by where a pod has no constraint of its own, among replicas of its workload."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A hard rule that is broken."""

    rule: str
    """resources, nodeAffinity, taints, hostPorts, antiAffinity, affinity, topologySpread or maxNetworkCost"""
    subject: str
    """the pod, or the node for resources"""
    detail: str
    """with what"""


def violations(cluster: Cluster, before: Sequence[Pod] = ()) -> list[Violation]:
    """Every hard rule that the pods of a cluster break.

    Args:
        cluster: nodes and pods.
        before: pods of it that were there before the others came.
    """
    found = [*_resources(cluster), *affinity_violations(cluster, before)]
    for pod in cluster.pods:
        found += _alone(cluster, pod)
        found += _spread(cluster, pod)
    for number, pod in enumerate(cluster.pods):
        for other in cluster.pods[number + 1 :]:
            found += _pair(cluster, pod, other)
    for group, edges in cluster.groups.items():
        found += _limits(cluster, group, edges)
    return found


def requests(pod: Pod) -> dict[str, float]:
    """What a pod takes of its node: containers together, or the largest init container."""
    total: dict[str, float] = {"pods": 1.0}
    spec = pod.spec
    for container in spec.get("containers") or ():
        resources = container.get("resources") or {}
        for name, value in ((resources.get("limits") or {}) | (resources.get("requests") or {})).items():
            total[name] = total.get(name, 0.0) + amount(value)
    for container in spec.get("initContainers") or ():
        for name, value in ((container.get("resources") or {}).get("requests") or {}).items():
            total[name] = max(total.get(name, 0.0), amount(value))
    for name, value in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, 0.0) + amount(value)
    return total


def _resources(cluster: Cluster) -> Iterator[Violation]:
    used: dict[str, dict[str, float]] = {name: {} for name in cluster.nodes}
    for pod in cluster.pods:
        for name, value in requests(pod).items():
            used[pod.node][name] = used[pod.node].get(name, 0.0) + value
    for node, amounts in used.items():
        for name, value in amounts.items():
            room = cluster.nodes[node].allocatable.get(name, 0.0)
            if value > room * (1 + 1e-9):
                yield Violation("resources", node, f"{name}: {value:g} of {room:g}")


def _alone(cluster: Cluster, pod: Pod) -> Iterator[Violation]:
    node = cluster.nodes[pod.node]
    if not admits(node, pod):
        yield Violation("nodeAffinity", pod.name, node.name)
    if not tolerates(node, pod):
        yield Violation("taints", pod.name, node.name)


def _pair(cluster: Cluster, pod: Pod, other: Pod) -> Iterator[Violation]:
    if pod.node == other.node and any(ports_clash(one, two) for one in host_ports(pod) for two in host_ports(other)):
        yield Violation("hostPorts", pod.name, other.name)
    for owner, target in ((pod, other), (other, pod)):
        for term in terms_of(owner, "podAntiAffinity", _REQUIRED):
            if same_domain(cluster, term["topologyKey"], owner, target) and term_selects(cluster, term, owner, target):
                yield Violation("antiAffinity", owner.name, target.name)


def host_ports(pod: Pod) -> list[tuple[str, str, int]]:
    """Address, protocol and port of every host port."""
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in pod.spec.get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


def ports_clash(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    """Whether two host ports cannot be on one node."""
    return one[1:] == other[1:] and (one[0] == other[0] or "0.0.0.0" in (one[0], other[0]))


def terms_of(pod: Pod, kind: str, strength: str) -> Sequence[Any]:
    """Terms of a pod's podAffinity or podAntiAffinity, required or preferred."""
    return ((pod.spec.get("affinity") or {}).get(kind) or {}).get(strength) or ()


def affinity_violations(cluster: Cluster, before: Sequence[Pod] = ()) -> Iterator[Violation]:
    """Pods whose required affinity no order of coming meets, once those of `before` are there."""
    for pod in _unmet(cluster, before, []):
        yield Violation("affinity", pod.name, pod.node)


def _unmet(cluster: Cluster, before: Sequence[Pod], first: Sequence[Pod]) -> list[Pod]:
    """The fewest pods that find nobody to be near to, when these come first, one after another.

    A pod may come anywhere while nobody is there whom its terms mean, if they mean itself. So it can help one to come
    before others that it would have to be near to afterwards.
    """
    fewest = _follow(cluster, before, first)
    tried: set[tuple[str, str]] = set()
    for pod in list(fewest):
        rule = str(terms_of(pod, "podAffinity", _REQUIRED))
        if (rule, pod.node) in tried or rule in {str(terms_of(other, "podAffinity", _REQUIRED)) for other in first}:
            continue
        tried.add((rule, pod.node))
        if all(str(terms_of(other, "podAffinity", _REQUIRED)) == rule for other in _meant(cluster, pod, cluster.pods)):
            continue
        for order in ([pod, *first], [*first, pod]):
            if all(_near(cluster, one, [*before, *order[:at]]) for at, one in enumerate(order)):
                left = _unmet(cluster, before, order)
                if not left:
                    return []
                fewest = min(fewest, left, key=len)
    return fewest


def _follow(cluster: Cluster, before: Sequence[Pod], first: Sequence[Pod]) -> list[Pod]:
    """Pods that find nobody to be near to, when all others have come in the best order after these."""
    come = [*before, *first]
    known = {(pod.namespace, pod.name) for pod in come}
    rest = [pod for pod in cluster.pods if (pod.namespace, pod.name) not in known]
    there = [*come, *(pod for pod in rest if not terms_of(pod, "podAffinity", _REQUIRED))]
    waiting = [pod for pod in rest if terms_of(pod, "podAffinity", _REQUIRED)]
    while (ready := next((pod for pod in waiting if _near(cluster, pod, there)), None)) is not None:
        waiting.remove(ready)
        there.append(ready)
    return waiting


def _meant(cluster: Cluster, pod: Pod, others: Sequence[Pod]) -> list[Pod]:
    """Pods that all required affinity terms of a pod mean."""
    terms = terms_of(pod, "podAffinity", _REQUIRED)
    return [other for other in others if all(term_selects(cluster, term, pod, other) for term in terms)]


def _near(cluster: Cluster, pod: Pod, there: Sequence[Pod]) -> bool:
    """Whether required affinity lets the pod come when these are there; the first of its kind may come anywhere."""
    terms = terms_of(pod, "podAffinity", _REQUIRED)
    labels = cluster.nodes[pod.node].labels
    if any(term["topologyKey"] not in labels for term in terms):
        return False
    meant = _meant(cluster, pod, there)
    if all(any(same_domain(cluster, term["topologyKey"], pod, other) for other in meant) for term in terms):
        return True
    known = any(term["topologyKey"] in cluster.nodes[other.node].labels for other in meant for term in terms)
    return not known and all(term_selects(cluster, term, pod, pod) for term in terms)


def _spread(cluster: Cluster, pod: Pod) -> Iterator[Violation]:
    hard = constraints_of(pod, "DoNotSchedule")
    for constraint in hard:
        counts = spread_counts(cluster, constraint, [item["topologyKey"] for item in hard], pod)
        labels = cluster.nodes[pod.node].labels
        if any(item["topologyKey"] not in labels for item in hard):
            yield Violation("topologySpread", pod.name, f"node without {constraint['topologyKey']}")
            continue
        least = min(counts.values(), default=0)
        if len(counts) < (constraint.get("minDomains") or 1):
            least = 0
        skew = counts.get(labels[constraint["topologyKey"]], 0) - least
        if skew > constraint["maxSkew"]:
            yield Violation("topologySpread", pod.name, f"{constraint['topologyKey']}: skew {skew}")


def constraints_of(pod: Pod, when: str, default_spread: Sequence[Manifest] = ()) -> list[Any]:
    """Topology spread constraints of a pod, DoNotSchedule or ScheduleAnyway; default ones if it states none."""
    found = pod.spec.get("topologySpreadConstraints") or ()
    if found or when == "DoNotSchedule":
        return [item for item in found if (item.get("whenUnsatisfiable") or "DoNotSchedule") == when]
    labels = {key: value for key, value in pod.labels.items() if key in (GROUP_LABEL, WORKLOAD_LABEL)}
    return [{**item, "labelSelector": {"matchLabels": labels}} for item in default_spread]


def _limits(cluster: Cluster, group: Group, edges: Sequence[Edge]) -> Iterator[Violation]:
    if not (cluster.zone_costs or cluster.region_costs):
        return
    members = cluster.members(group)
    for edge in edges:
        endpoints = members.get(edge.callee, ())
        if edge.limit is None or not endpoints:
            continue
        mode, limit = routing(cluster, edge.callee, endpoints), max(edge.limit, SAME_ZONE_COST)
        for caller in members.get(edge.caller, ()):
            for pod in reached(cluster, caller, endpoints, mode):
                if cluster.cost(caller.node, pod.node) > limit:
                    yield Violation("maxNetworkCost", caller.name, pod.name)


@dataclass(frozen=True, slots=True)
class SoftRules:
    """How far a placement goes against what pods would like."""

    anti_affinity: float = 0.0
    """preferred anti-affinity: sum of weight / 100 over (pod, term, other pod that it means in the domain)"""
    affinity: float = 0.0
    """preferred affinity: sum of weight / 100 over (pod, term) without another pod that it means in the domain"""
    skew: float = 0.0
    """ScheduleAnyway and default spreading: pods of each domain beyond the least and maxSkew, once a workload"""


def soft_rules(cluster: Cluster, group: Group, *, default_spread: Sequence[Manifest] = DEFAULT_SPREAD) -> SoftRules:
    """Sum up what soft rules say of an AppGroup's pods: their own, and terms of others that mean one of them.

    Args:
        cluster: nodes and all pods.
        group: the AppGroup.
        default_spread: constraints of pods that state none.
    """
    apart = near = skew = 0.0
    members = cluster.members(group)
    ours = [pod for replicas in members.values() for pod in replicas]
    for pod in cluster.pods:
        own = pod.group == group
        for item in terms_of(pod, "podAntiAffinity", _PREFERRED):
            apart += item["weight"] / 100 * len(_together(cluster, pod, item["podAffinityTerm"], None if own else ours))
        for item in terms_of(pod, "podAffinity", _PREFERRED):
            term = item["podAffinityTerm"]
            counts = own or any(term_selects(cluster, term, pod, other) for other in ours)
            if counts and not _together(cluster, pod, term):
                near += item["weight"] / 100
    for replicas in members.values():
        skew += _excess(cluster, replicas, default_spread)
    return SoftRules(apart, near, skew)


def _together(cluster: Cluster, pod: Pod, term: Manifest, among: Sequence[Pod] | None = None) -> list[Pod]:
    """Other pods that a term of a pod means, in its domain; among all, or some."""
    return [
        other
        for other in (cluster.pods if among is None else among)
        if other is not pod
        and same_domain(cluster, term["topologyKey"], pod, other)
        and term_selects(cluster, term, pod, other)
    ]


def _excess(cluster: Cluster, replicas: Sequence[Pod], default_spread: Sequence[Manifest]) -> float:
    pod = replicas[0]
    constraints = constraints_of(pod, "ScheduleAnyway", default_spread)
    keys = [item["topologyKey"] for item in constraints]
    excess = 0.0
    for constraint in constraints:
        counts = spread_counts(cluster, constraint, keys, pod)
        least = min(counts.values(), default=0)
        excess += sum(max(0, count - least - constraint["maxSkew"]) for count in counts.values())
    return excess
