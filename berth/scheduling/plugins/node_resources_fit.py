"""NodeResourcesFit: requests must fit into what the node has left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.scheduling.plugins.base import Filter, Rejection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState

TOO_MANY_PODS = "Too many pods"


class NodeResourcesFit(Filter):
    """Rejects nodes that lack any requested resource or have no pod slot left."""

    name = "NodeResourcesFit"

    def rejections(self, info: PodInfo, state: ClusterState) -> Sequence[Rejection]:
        """One rejection per resource that is short somewhere; a request of zero always fits.

        A node that is over-committed in a resource still takes pods that do not request it.
        """
        allocatable, used = state.allocatable, state.used
        pods = state.resources["pods"]
        found = [Rejection(TOO_MANY_PODS, used[:, pods] + 1 > allocatable[:, pods])]
        for name, amount in info.template.requests:
            if name == "pods":
                continue
            column = state.resources.get(name)
            if column is None:
                found.append(Rejection(f"Insufficient {name}", state.alive))
            else:
                found.append(Rejection(f"Insufficient {name}", amount > allocatable[:, column] - used[:, column]))
        return found
