"""What a filter is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState


class Rejection(NamedTuple):
    """Nodes that one reason rules out."""

    reason: str
    """In kube-scheduler's words, e.g. ``Insufficient cpu``."""
    nodes: Mask
    """bool[N]: the nodes ruled out; slots without a node may have any value."""


class Filter(ABC):
    """One rule that a node must satisfy to take a pod."""

    name: ClassVar[str]
    """Name of the kube-scheduler plugin whose rule this is."""

    def blocker(self, info: PodInfo, state: ClusterState) -> str | None:  # noqa: ARG002 (most rules have none)
        """Why the pod cannot be placed anywhere whatever the nodes, or None."""
        return None

    @abstractmethod
    def rejections(self, info: PodInfo, state: ClusterState) -> Sequence[Rejection]:
        """The nodes that are ruled out, by reason; empty when the rule does not concern the pod.

        A node may be ruled out for several reasons; each of them is reported, as in kube-scheduler.
        """

    def mask(self, info: PodInfo, state: ClusterState) -> Mask:
        """bool[N]: live nodes that satisfy this rule alone."""
        mask: Mask = state.alive.copy()
        if self.blocker(info, state) is not None:
            return np.zeros_like(mask)
        for rejection in self.rejections(info, state):
            mask &= ~rejection.nodes
        return mask
