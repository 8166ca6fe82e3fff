"""CSI volumes as the limits of nodes count them: each once a node, whether pods use it or a VolumeAttachment holds it.

In-tree volumes that a cluster migrates to CSI are not counted. What nodes still attach is kept, and worked out anew for
nodes of which something has changed: there may be dozens of volumes on each of thousands, and storage objects change
with every pod that comes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from cachetools import LRUCache

from berth.scheduling.cache.volumes import storage_class_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from berth.scheduling.cache.nodes import Amount, NodeTable
    from berth.scheduling.cache.pods import PodIndex
    from berth.scheduling.cache.volumes import VolumeTable

CsiVolumes = dict[str, str]
"""Unique volume name (``driver/handle``) to driver name."""
UNLIMITED = 2**62
"""What a node attaches that states no limit."""
REMEMBERED_NODES = 8192
"""Nodes whose volumes in use are remembered; those of others are looked up each time."""


def csi_volumes(claims: Iterable[str], volumes: VolumeTable) -> CsiVolumes:
    """CSI volumes behind claims; a claim without volume counts as one of its class's provisioner."""
    found: CsiVolumes = {}
    for key in claims:
        claim = volumes.claims.get(key)
        if claim is None:
            continue
        volume = volumes.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            if volume.spec.csi is not None and volume.spec.csi.driver and volume.spec.csi.volume_handle:
                found[f"{volume.spec.csi.driver}/{volume.spec.csi.volume_handle}"] = volume.spec.csi.driver
            continue
        storage_class = volumes.classes.get(storage_class_of(claim))
        if storage_class is not None and storage_class.provisioner:
            # No volume handle contains a newline, so a claim's place holder never meets a real volume.
            found[f"{storage_class.provisioner}/\n{key}"] = storage_class.provisioner
    return found


class AttachedVolumes:
    """What each node still attaches, in step with nodes, pods and storage objects."""

    def __init__(self, nodes: NodeTable, pods: PodIndex, volumes: VolumeTable) -> None:
        """Begin with nothing known."""
        self._nodes, self._pods, self._volumes = nodes, pods, volumes
        self._version = -1
        self._left: dict[str, Amount] = {}
        """by driver, int64[N]"""
        self._in_use: LRUCache[int, CsiVolumes] = LRUCache(maxsize=REMEMBERED_NODES)

    def left(self, driver: str) -> Amount | None:
        """int64[N], how many volumes of a driver each node still attaches, perhaps below 0; None without any limit."""
        self._catch_up()
        return self._left.get(driver)

    def used(self, slot: int) -> CsiVolumes:
        """CSI volumes that pods on a node use, as of the last :meth:`left`."""
        used = self._in_use.get(slot)
        if used is None:
            used = self._in_use[slot] = csi_volumes(self._pods.claims_on(slot), self._volumes)
        return used

    def _catch_up(self) -> None:
        """Count anew where something has changed."""
        touched = self._volumes.touched
        slots = self._pods.take_claims_changed()
        if touched.everything or self._version < 0:
            self._left.clear()
            self._in_use.clear()
            slots = {self._nodes.index[name] for name in self._volumes.csi_nodes if name in self._nodes.index}
        else:
            for claim in touched.claims:
                slots.update(self._pods.claim_users(claim))
            slots.update(self._nodes.index[name] for name in touched.nodes if name in self._nodes.index)
            if self._version != self._nodes.version:
                slots.update(np.flatnonzero(self._nodes.changed_since(self._version)).tolist())
        self._version = self._nodes.version
        touched.forget()
        for driver, left in self._left.items():
            if len(left) < self._nodes.count:
                self._left[driver] = np.pad(left, (0, self._nodes.count - len(left)), constant_values=UNLIMITED)
        for slot in slots:
            self._count(slot)

    def _count(self, slot: int) -> None:
        self._in_use.pop(slot, None)
        for left in self._left.values():
            left[slot] = UNLIMITED
        node = self._nodes.nodes[slot]
        csi_node = self._volumes.csi_nodes.get(node.metadata.name) if node is not None else None
        limits = {
            driver.name: driver.allocatable.count
            for driver in (csi_node.spec.drivers if csi_node is not None else ())
            if driver.allocatable is not None and driver.allocatable.count is not None
        }
        if node is None or not limits:
            return
        attached = dict(self.used(slot))
        for attachment in self._volumes.attachments(node.metadata.name):
            volume = self._volumes.volumes.get(attachment.spec.source.persistent_volume_name or "")
            if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
                name = f"{attachment.spec.attacher}/{volume.spec.csi.volume_handle}"
                attached.setdefault(name, attachment.spec.attacher)
        counts = Counter(attached.values())
        for driver_name, limit in limits.items():
            if driver_name not in self._left:
                self._left[driver_name] = np.full(self._nodes.count, UNLIMITED, dtype=np.int64)
            self._left[driver_name][slot] = min(limit, UNLIMITED) - counts[driver_name]
