"""How many more CSI volumes nodes attach, as amounts that nodes have beside their resources.

Each pod alone is told by the filters where its volumes can be attached; for how many pods that is true, only the plan
can say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.csi_volumes import csi_volumes
from berth.scheduling.cache.volumes import claim_keys
from berth.scheduling.replica_plan.volume_room import VolumeRoom

if TYPE_CHECKING:
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.replica_plan.pod_sets import Alike


def attach_room(pod_sets: Sequence[Alike], state: ClusterState) -> VolumeRoom:
    """Count volumes that the pods to place will have attached, by driver, and those that each node still attaches.

    It forbids nothing that the filters allow: a volume of several pods takes none, for it is attached once a node.

    Args:
        pod_sets: waiting pods by what they have in common.
        state: the cluster.
    """
    claims = [[claim_keys(candidate.info.pod) for candidate in pods.candidates] for pods in pod_sets]
    users = Counter(key for pods in claims for keys in pods for key in keys)
    new: list[Counter[str]] = []
    needed: Counter[str] = Counter()
    for pods in claims if users and state.volumes.csi_nodes else ():
        taken = [_new(keys, users, state) for keys in pods]
        new.append(Counter({driver: min(each[driver] for each in taken) for driver in taken[0]}))
        needed.update({driver: number * len(pods) for driver, number in new[-1].items()})
    usable = np.logical_or.reduce([each.mask for each in pod_sets]) if needed else False
    short = {
        driver: np.minimum(left, number)
        for driver, number in needed.items()
        if number and (left := state.attached.left(driver)) is not None and ((left < number) & usable).any()
    }
    free, requests = np.zeros((state.size, len(short)), np.int64), np.zeros((len(pod_sets), len(short)), np.int64)
    for column, (driver, left) in enumerate(short.items()):
        free[:, column] = left
        requests[:, column] = [each[driver] for each in new]
    return VolumeRoom(free, requests)


def _new(keys: Sequence[str], users: Counter[str], state: ClusterState) -> Counter[str]:
    """Volumes that are attached for a pod alone, by driver."""
    own = [key for key in keys if users[key] == 1 and not state.pods.claim_users(key)]
    return Counter(csi_volumes(own, state.volumes).values())
