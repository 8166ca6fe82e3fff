"""NodeVolumeLimits: how many CSI volumes a node can attach."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from cachetools import LRUCache

from berth.scheduling.cache.volumes import claim_keys, storage_class_of
from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.framework.cycle_state import CycleState

REASON = "node(s) exceed max volume count"
CsiVolumes = dict[str, str]
"""Unique volume name (``driver/handle``) to driver name."""


class NodeVolumeLimits(FilterPlugin):
    """Rejects nodes whose CSINode allows fewer volumes of a driver than the pod would bring it to.

    Volumes are counted once per node, whether pods use them or VolumeAttachments hold them. In-tree
    volumes that a cluster migrates to CSI are not counted.
    """

    name = "NodeVolumeLimits"

    def __init__(self) -> None:
        """Remember the volumes of nodes until their pods or any storage object change."""
        self._attached: LRUCache[str, tuple[object, CsiVolumes]] = LRUCache(maxsize=8192)

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Nodes at their limit; none for pods without claims."""
        info, state = cycle.pod, cycle.cluster
        wanted = _csi_volumes(claim_keys(info.pod), state)
        if not wanted or not state.volumes.csi_nodes:
            return ()
        new = Counter(wanted.values())
        full = np.zeros(state.size, dtype=np.bool_)
        for name, csi_node in state.volumes.csi_nodes.items():
            slot = state.node_index.get(name)
            if slot is None:
                continue
            # Each claim and each attachment is one volume at the most: few nodes need a closer look.
            most = len(state.pods.claims_on(slot)) + len(tuple(state.volumes.attachments(name)))
            for driver in csi_node.spec.drivers:
                if driver.name not in new or driver.allocatable is None or driver.allocatable.count is None:
                    continue
                limit = driver.allocatable.count
                if most + new[driver.name] > limit and self._exceeds(wanted, driver.name, limit, name, slot, state):
                    full[slot] = True
        return (RejectedNodes(REASON, full),)

    def _exceeds(
        self, wanted: Mapping[str, str], driver: str, limit: int, name: str, slot: int, state: ClusterState
    ) -> bool:
        used = self._used(name, slot, state)
        attached = dict(used)
        for volume, owner in _attachments(name, state).items():
            attached.setdefault(volume, owner)
        # A volume that a pod on the node uses already is not new; one that is only attached still is.
        new = sum(1 for volume, owner in wanted.items() if owner == driver and volume not in used)
        return new > 0 and Counter(attached.values())[driver] + new > limit

    def _used(self, name: str, slot: int, state: ClusterState) -> CsiVolumes:
        claims = state.pods.claims_on(slot)
        stamp = (state.volumes.version, tuple(claims))
        known = self._attached.get(name)
        if known is not None and known[0] == stamp:
            return known[1]
        used = _csi_volumes(claims, state)
        self._attached[name] = (stamp, used)
        return used


def _csi_volumes(claims: Iterable[str], state: ClusterState) -> CsiVolumes:
    """CSI volumes behind claims; a claim without volume counts as one of its class's provisioner."""
    found: CsiVolumes = {}
    for key in claims:
        claim = state.volumes.claims.get(key)
        if claim is None:
            continue
        volume = state.volumes.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            if volume.spec.csi is not None and volume.spec.csi.driver and volume.spec.csi.volume_handle:
                found[f"{volume.spec.csi.driver}/{volume.spec.csi.volume_handle}"] = volume.spec.csi.driver
            continue
        storage_class = state.volumes.classes.get(storage_class_of(claim))
        if storage_class is not None and storage_class.provisioner:
            # No volume handle contains a newline, so a claim's place holder never meets a real volume.
            found[f"{storage_class.provisioner}/\n{key}"] = storage_class.provisioner
    return found


def _attachments(node_name: str, state: ClusterState) -> CsiVolumes:
    found: CsiVolumes = {}
    for attachment in state.volumes.attachments(node_name):
        volume = state.volumes.volumes.get(attachment.spec.source.persistent_volume_name or "")
        if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
            found[f"{attachment.spec.attacher}/{volume.spec.csi.volume_handle}"] = attachment.spec.attacher
    return found
