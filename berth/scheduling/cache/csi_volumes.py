"""CSI volumes as the limits of nodes count them: each once a node, whether pods use it or a VolumeAttachment holds it.

In-tree volumes that a cluster migrates to CSI are not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.scheduling.cache.volumes import storage_class_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from berth.scheduling.cache.state import ClusterState

CsiVolumes = dict[str, str]
"""Unique volume name (``driver/handle``) to driver name."""


def csi_volumes(claims: Iterable[str], state: ClusterState) -> CsiVolumes:
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


def used_on(name: str, slot: int, state: ClusterState) -> CsiVolumes:
    """CSI volumes that pods on a node use; remembered until its pods or any storage object change."""
    claims, known = state.pods.claims_on(slot), state.volumes.used_on_nodes.get(name)
    stamp = (state.volumes.version, tuple(claims))
    if known is not None and known[0] == stamp:
        return known[1]
    used = csi_volumes(claims, state)
    state.volumes.used_on_nodes[name] = (stamp, used)
    return used


def attached_to(name: str, slot: int, state: ClusterState) -> CsiVolumes:
    """CSI volumes that pods on a node use, and those that VolumeAttachments hold there."""
    attached = dict(used_on(name, slot, state))
    for attachment in state.volumes.attachments(name):
        volume = state.volumes.volumes.get(attachment.spec.source.persistent_volume_name or "")
        if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
            attached.setdefault(f"{attachment.spec.attacher}/{volume.spec.csi.volume_handle}", attachment.spec.attacher)
    return attached


def near_limit(new: dict[str, int], state: ClusterState) -> Iterator[tuple[str, int, str, int]]:
    """Name and slot of nodes that so many new volumes may bring to the limit of a driver, the driver, and its limit.

    Args:
        new: how many volumes, by driver.
        state: the cluster.
    """
    for name, csi_node in state.volumes.csi_nodes.items():
        slot = state.node_index.get(name)
        if slot is None:
            continue
        # Each claim and each attachment is one volume at the most: few nodes need a closer look.
        most = len(state.pods.claims_on(slot)) + len(tuple(state.volumes.attachments(name)))
        for driver in csi_node.spec.drivers:
            if driver.name not in new or driver.allocatable is None or driver.allocatable.count is None:
                continue
            if most + new[driver.name] > driver.allocatable.count:
                yield name, slot, driver.name, driver.allocatable.count
