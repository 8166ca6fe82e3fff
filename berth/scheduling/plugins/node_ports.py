"""NodePorts: a host port serves one pod per node, protocol and address."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes
from berth.scheduling.framework.reasons import NODE_PORTS, PORTS_TAKEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.framework.cycle_state import CycleState


class NodePorts(FilterPlugin):
    """Rejects nodes where a wanted host port is taken."""

    name = NODE_PORTS

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Nodes with a pod that uses one of the ports on the same, or on any, address."""
        info, state = cycle.pod, cycle.cluster
        ports = info.template.host_ports
        if not ports:
            return ()
        taken = np.zeros(state.size, dtype=np.bool_)
        for port in ports:
            for users in state.pods.port_conflicts(port):
                taken[list(users)] = True
        return (RejectedNodes(PORTS_TAKEN, taken),)
