"""NodePorts: a host port serves one pod per node, protocol and address."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.plugins.base import Filter, Rejection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState

REASON = "node(s) didn't have free ports for the requested pod ports"


class NodePorts(Filter):
    """Rejects nodes where a wanted host port is taken."""

    name = "NodePorts"

    def rejections(self, info: PodInfo, state: ClusterState) -> Sequence[Rejection]:
        """Nodes with a pod that uses one of the ports on the same, or on any, address."""
        ports = info.template.host_ports
        if not ports:
            return ()
        taken = np.zeros(state.size, dtype=np.bool_)
        for port in ports:
            for users in state.pods.port_conflicts(port):
                taken[list(users)] = True
        return (Rejection(REASON, taken),)
