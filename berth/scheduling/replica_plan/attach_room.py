"""How many more CSI volumes nodes attach, as amounts that nodes have beside their resources.

Each pod alone is told by the filters where its volumes can be attached; for how many pods that is true, only the plan
can say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berth.scheduling.cache.csi_volumes import attached_to, csi_volumes, near_limit
from berth.scheduling.cache.volumes import claim_keys
from berth.scheduling.replica_plan.volume_room import VolumeRoom

if TYPE_CHECKING:
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.replica_plan.pod_sets import Alike
    from berth.scheduling.replica_plan.same_nodes import SameNodes

Ints = npt.NDArray[np.int64]


def attach_room(pod_sets: Sequence[Alike], state: ClusterState, turns: SameNodes) -> Generator[None, None, VolumeRoom]:
    """Count volumes that the pods to place will have attached, by driver, and those that each node still attaches.

    It forbids nothing that the filters allow: a volume of several pods takes none, for it is attached once a node.

    Args:
        pod_sets: waiting pods by what they have in common.
        state: the cluster.
        turns: when others have theirs.

    Raises:
        NodesChangedError: while others had their turn.
    """
    nothing = VolumeRoom(np.zeros((state.size, 0), dtype=np.int64), np.zeros((len(pod_sets), 0), dtype=np.int64))
    claims = [[claim_keys(candidate.info.pod) for candidate in pods.candidates] for pods in pod_sets]
    users = Counter(key for pods in claims for keys in pods for key in keys)
    if not users or not state.volumes.csi_nodes:
        return nothing
    new: list[Counter[str]] = []
    needed: Counter[str] = Counter()
    for pods in claims:
        taken = [_new(keys, users, state) for keys in pods]
        new.append(Counter({driver: min(each[driver] for each in taken) for driver in taken[0]}))
        needed.update({driver: number * len(pods) for driver, number in new[-1].items()})
    usable = np.logical_or.reduce([each.mask for each in pod_sets])
    short: dict[str, dict[int, int]] = {}
    for name, slot, driver, limit in list(near_limit(+needed, state)):
        if usable[slot]:
            yield from turns.pause()
            left = limit - Counter(attached_to(name, slot, state).values())[driver]
            if left < needed[driver]:
                short.setdefault(driver, {})[slot] = left
    if not short:
        return nothing
    free = np.tile(np.array([needed[driver] for driver in short], dtype=np.int64), (state.size, 1))
    for column, there in enumerate(short.values()):
        free[list(there), column] = list(there.values())
    return VolumeRoom(free, np.array([[each[driver] for driver in short] for each in new], dtype=np.int64))


def _new(keys: Sequence[str], users: Counter[str], state: ClusterState) -> Counter[str]:
    """Volumes that are attached for a pod alone, by driver."""
    own = [key for key in keys if users[key] == 1 and not state.pods.claim_users(key)]
    return Counter(csi_volumes(own, state).values())
