"""Volumes that pods of one plan compete for, as amounts that nodes have beside their resources.

Claims that wait for their pod get one of the volumes that are there where their class provisions none. Each pod alone
is told by the filters where it finds some; how many there are for all of them on a node, only the plan can say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from berth.kube.objects import Pod
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.cache.volume_matching import Claim, sort_claims
from berth.scheduling.cache.volume_pool import VolumeKind, VolumePool, kind_of_claim
from berth.scheduling.cache.volumes import NO_PROVISIONER, storage_class_of
from berth.scheduling.replica_plan.pod_sets import Alike

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class VolumeRoom:
    """Volumes by kind, V of them."""

    free: Ints
    """int64[N, V], those that nobody has and that each node reaches"""
    requests: Ints
    """int64[P, V], those that each pod of a set takes"""

    def beside(self, other: VolumeRoom) -> VolumeRoom:
        """Both, for the same nodes and pods."""
        return VolumeRoom(np.hstack([self.free, other.free]), np.hstack([self.requests, other.requests]))


def volume_room(pod_sets: Sequence[Alike], state: ClusterState) -> VolumeRoom:
    """Count volumes that the pods to place will take, and those that there are for them.

    It forbids nothing that the filters allow: a volume counts on every node that reaches it, whatever its size, and a
    claim that several pods share, or that has its volume already, takes none.

    Args:
        pod_sets: waiting pods by what they have in common.
        state: the cluster.
    """
    claims = [[_claims(candidate.info.pod, state) for candidate in pods.candidates] for pods in pod_sets]
    users = Counter(key for pods in claims for each in pods for key, _ in each)
    known = {key: claim for pods in claims for each in pods for key, claim in each if users[key] == 1}
    if not known:
        return VolumeRoom(np.zeros((state.size, 0), dtype=np.int64), np.zeros((len(pod_sets), 0), dtype=np.int64))
    pool = VolumePool.of(known, state)
    number = {kind: column for column, kind in enumerate(pool.shelves)}
    free = np.zeros((state.size, len(number)), dtype=np.int64)
    for kind, column in number.items():
        shelf = pool.shelves[kind]
        free[:, column] = shelf.rack.reach.count(shelf.free, 0)
    requests = np.zeros((len(pod_sets), len(number)), dtype=np.int64)
    for row, pods in enumerate(claims):
        taken = [_taken([claim for claim in each if claim[0] in known], pool) for each in pods]
        for kind, column in number.items():
            requests[row, column] = min(counts[kind] for counts in taken)
    return VolumeRoom(free, requests)


def _claims(pod: Pod, state: ClusterState) -> list[Claim]:
    """Claims of a pod that take a volume that is there, once it has a node."""
    if not pod.spec.volumes:
        return []
    volumes = state.volumes
    return [
        (key, claim)
        for key, claim in sort_claims(pod, state).delayed
        if volumes.selected_node(claim) is None
        and (found := volumes.classes.get(storage_class_of(claim))) is not None
        and found.provisioner in ("", NO_PROVISIONER)
    ]


def _taken(claims: Sequence[Claim], pool: VolumePool) -> Counter[VolumeKind]:
    """Volumes by kind that the claims of a pod take of those that nobody has."""
    return Counter(kind_of_claim(claim) for key, claim in claims if key not in pool.own)
