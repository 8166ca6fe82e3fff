"""VolumeZone: zone and region labels on bound volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.nodes import REGION, ZONE
from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Afterwards

REASON = "node(s) had no available volume zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"
TOPOLOGY_LABELS = (OLD_ZONE, OLD_REGION, ZONE, REGION)
_CURRENT = {OLD_ZONE: ZONE, OLD_REGION: REGION, ZONE: ZONE, REGION: REGION}


class VolumeZone(FilterPlugin):
    """Rejects nodes outside the zones and regions that a bound volume's labels name.

    Several values are separated by two underscores. Nodes without any zone or region label pass:
    their cluster has no zones.
    """

    name = "VolumeZone"

    def concerned(self, after: Afterwards) -> bool:
        """Zone and region, for pods with volumes."""
        return bool(after.pod.pod.spec.volumes) and not after.change.labels.isdisjoint(TOPOLOGY_LABELS)

    def pre_filter(self, cycle: CycleState) -> str | None:
        """A claim's volume that does not exist."""
        info, state = cycle.pod, cycle.cluster
        for volume_name in self._bound(info, state):
            if volume_name not in state.volumes.volumes:
                return f'persistentvolume "{volume_name}" not found'
        return None

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Zoned nodes in other zones than the volumes; none for pods without labelled volumes."""
        info, state = cycle.pod, cycle.cluster
        wrong: Mask = np.zeros(state.size, dtype=np.bool_)
        constrained = False
        for volume_name in self._bound(info, state):
            labels = state.volumes.volumes[volume_name].metadata.labels
            for key in TOPOLOGY_LABELS:
                if key in labels:
                    constrained = True
                    wrong |= ~_nodes_in(key, set(labels[key].split("__")), state)
        if not constrained:
            return ()
        zoned: Mask = np.zeros(state.size, dtype=np.bool_)
        for key in TOPOLOGY_LABELS:
            zoned |= state.domains(key) >= 0
        return (RejectedNodes(REASON, wrong & zoned),)

    @staticmethod
    def _bound(info: PodInfo, state: ClusterState) -> Iterator[str]:
        for volume in info.pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            key = f"{info.template.namespace}/{volume.persistent_volume_claim.claim_name}"
            claim = state.volumes.claims.get(key)
            if claim is not None and claim.spec.volume_name:
                yield claim.spec.volume_name


def _nodes_in(key: str, values: set[str], state: ClusterState) -> Mask:
    """Nodes with one of the values under the key, or under its present-day name where they lack it."""
    mask = state.nodes.column(key).among(values, state.size)
    if _CURRENT[key] != key:
        lacking = state.domains(key) < 0
        mask = mask | (lacking & state.nodes.column(_CURRENT[key]).among(values, state.size))
    return mask
