"""Pods of DaemonSets, as kube-controller-manager makes them: one per node, pinned to it, with more tolerations."""

from __future__ import annotations

from berth.kube.objects import (
    Affinity,
    LabelSelectorRequirement,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    Toleration,
)

_NO_EXECUTE = ("not-ready", "unreachable")
_NO_SCHEDULE = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")


def add_daemon_tolerations(pod: Pod) -> None:
    """Tolerate what does not keep a DaemonSet's pod from its node, in place."""
    wanted = [(name, "NoExecute") for name in _NO_EXECUTE] + [(name, "NoSchedule") for name in _NO_SCHEDULE]
    if pod.spec.host_network:
        wanted.append(("network-unavailable", "NoSchedule"))
    pod.spec.tolerations = [
        *pod.spec.tolerations,
        *(Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect=effect) for name, effect in wanted),
    ]


def pin_to_node(pod: Pod, node: str) -> None:
    """Replace the pod's required node affinity by the name of its node, in place."""
    affinity = pod.spec.affinity or Affinity()
    preferred = affinity.node_affinity.preferred if affinity.node_affinity is not None else []
    term = NodeSelectorTerm(match_fields=[LabelSelectorRequirement(key="metadata.name", operator="In", values=[node])])
    pod.spec.affinity = Affinity(
        node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=[term]), preferred=preferred),
        pod_affinity=affinity.pod_affinity,
        pod_anti_affinity=affinity.pod_anti_affinity,
    )
