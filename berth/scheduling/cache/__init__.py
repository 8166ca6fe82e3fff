"""The cluster as the placement controller sees it: arrays of nodes, indices of pods.

Contract
    Reads: the watch events of Nodes, Pods, Namespaces, PersistentVolumes,
    PersistentVolumeClaims, StorageClasses, CSINodes and (where the cluster has them)
    CSIDrivers, CSIStorageCapacities and VolumeAttachments, handed in one at a time.
    Writes: nothing; everything here is pure and in memory.
    Missing input: a kind that is never handed in counts as empty. Namespaces without
    labels match no namespaceSelector but the empty one; claims that are not known keep
    their pods waiting.

``ClusterState`` (cluster.py) is the only class other rooms need; the modules beside it are its
parts: units and requests (quantities), selectors and terms (compiled matching), template (a pod's
template, compiled once), nodes, pods and volumes (the tables).
"""

from berth.scheduling.cache.pod_templates import PodInfo, PodTemplateInfo
from berth.scheduling.cache.state import ClusterState

__all__ = ["ClusterState", "PodInfo", "PodTemplateInfo"]
