"""VolumeRestrictions: disks and claims that only one pod may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.volumes import disk_uses
from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.framework.cycle_state import CycleState

REASON_DISK = "node(s) had no available disk"
REASON_ONE_POD = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


class VolumeRestrictions(FilterPlugin):
    """Rejects nodes where an in-tree disk is in use, and all nodes while a ReadWriteOncePod claim is.

    In-tree disks (GCE, AWS, iSCSI, RBD) may be shared on a node by readers only, AWS disks not at all.
    """

    name = "VolumeRestrictions"

    def pre_filter(self, cycle: CycleState) -> str | None:
        """A claim that the pod names and that does not exist."""
        info, state = cycle.pod, cycle.cluster
        for volume in info.pod.spec.volumes:
            claim = volume.persistent_volume_claim
            if claim is not None and f"{info.template.namespace}/{claim.claim_name}" not in state.volumes.claims:
                return f'persistentvolumeclaim "{claim.claim_name}" not found'
        return None

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Nodes with conflicting disk users; every node when a ReadWriteOncePod claim is taken."""
        info, state = cycle.pod, cycle.cluster
        if not info.pod.spec.volumes:
            return ()
        found = []
        taken = np.zeros(state.size, dtype=np.bool_)
        for disk in disk_uses(info.pod):
            for users in state.pods.disk_conflicts(disk):
                taken[list(users)] = True
        if taken.any():
            found.append(RejectedNodes(REASON_DISK, taken))
        if self._one_pod_claim_taken(info, state):
            found.append(RejectedNodes(REASON_ONE_POD, state.alive & ~taken))
        return found

    @staticmethod
    def _one_pod_claim_taken(info: PodInfo, state: ClusterState) -> bool:
        for volume in info.pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            key = f"{info.template.namespace}/{volume.persistent_volume_claim.claim_name}"
            claim = state.volumes.claims.get(key)
            if claim is not None and "ReadWriteOncePod" in claim.spec.access_modes and state.pods.claim_users(key):
                return True
        return False
