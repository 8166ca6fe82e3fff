"""NodeDeclaredFeatures: features of the kubelet that a pod cannot run without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.node_changes import NodePart
from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.kube.objects import Pod
    from berth.scheduling.framework.cycle_state import CycleState

REASON = "node(s) didn't match Pod's required features"


def required_features(pod: Pod) -> frozenset[str]:
    """Features that a node must declare in status.declaredFeatures to run the pod (Kubernetes 1.36)."""
    spec = pod.spec
    found = set()
    if any(
        rule.action == "RestartAllContainers"
        for container in (*spec.containers, *spec.init_containers)
        for rule in container.restart_policy_rules
    ):
        found.add("RestartAllContainersOnContainerExits")
    if spec.host_network and spec.host_users is False:
        found.add("UserNamespacesHostNetworkSupport")
    return frozenset(found)


class NodeDeclaredFeatures(FilterPlugin):
    """Rejects nodes that do not declare a feature that the pod needs."""

    name = "NodeDeclaredFeatures"
    reads = NodePart.FEATURES

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Nodes that lack a feature; none for pods that need none."""
        info, state = cycle.pod, cycle.cluster
        needed = required_features(info.pod)
        if not needed:
            return ()
        lacking = np.fromiter(
            (node is None or not needed.issubset(node.status.declared_features) for node in state.nodes.nodes),
            dtype=np.bool_,
            count=state.size,
        )
        return (RejectedNodes(REASON, lacking),)
