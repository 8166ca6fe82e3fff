"""Volumes that pods of one plan compete for, as amounts that nodes have beside their resources.

Claims that wait for their pod get one of the volumes that are there where their class provisions none. Each pod alone
is told by the filters where it finds some; how many there are for all of them on a node, only the plan can say.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from berth.kube.objects import Pod
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.cache.volume_matching import Claim, sort_claims
from berth.scheduling.cache.volume_pool import VolumeKind, VolumePool, kind_of_claim
from berth.scheduling.cache.volumes import NO_PROVISIONER, storage_class_of, storage_request
from berth.scheduling.replica_plan.pod_sets import Alike

Ints = npt.NDArray[np.int64]
_Want = tuple[VolumeKind, int]
"""Kind of a volume, and the index of the smallest that is large enough."""


MOST_SIZES = 8
"""Sizes of claims of one kind that are told apart at the most: the smallest, and the largest."""


@dataclass(frozen=True, slots=True)
class VolumeRoom:
    """Volumes by kind and what they are large enough for, V of them."""

    free: Ints
    """int64[N, V], those that nobody has and that each node reaches"""
    requests: Ints
    """int64[P, V], those that each pod of a set takes"""

    def beside(self, other: VolumeRoom) -> VolumeRoom:
        """Both, for the same nodes and pods."""
        return VolumeRoom(np.hstack([self.free, other.free]), np.hstack([self.requests, other.requests]))


def volume_room(pod_sets: Sequence[Alike], state: ClusterState) -> VolumeRoom:
    """Count volumes that the pods to place will take, and those that there are for them.

    Of those that are large enough for each size of claim there must be as many as claims of that size or more. It
    forbids nothing that the filters allow: a volume counts on every node that reaches it, and a claim that several pods
    share, or that has its volume already, takes none.

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
    taken = [[_taken([claim for claim in each if claim[0] in known], pool) for each in pods] for pods in claims]
    columns = _columns({each for pods in taken for counts in pods for each in counts})
    free = np.zeros((state.size, len(columns)), dtype=np.int64)
    requests = np.zeros((len(pod_sets), len(columns)), dtype=np.int64)
    for column, (kind, first) in enumerate(columns):
        shelf = pool.shelves[kind]
        free[:, column] = shelf.rack.reach.count(shelf.free, first)
        for row, pods in enumerate(taken):
            requests[row, column] = min(
                sum(count for (other, at), count in counts.items() if other == kind and at >= first) for counts in pods
            )
    return VolumeRoom(free, requests)


def _columns(wanted: Collection[_Want]) -> list[_Want]:
    """What is told apart of what claims take."""
    found: list[_Want] = []
    for kind in dict.fromkeys(kind for kind, _ in sorted(wanted)):
        sizes = sorted(first for other, first in wanted if other == kind)
        found += [(kind, first) for first in (*sizes[:1], *sizes[1:][1 - MOST_SIZES :])]
    return found


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


def _taken(claims: Sequence[Claim], pool: VolumePool) -> Counter[_Want]:
    """How many volumes the claims of a pod take of those that nobody has."""
    return Counter(
        (kind, bisect_left(pool.shelves[kind].rack.sizes, storage_request(claim)))
        for key, claim in claims
        if key not in pool.own and (kind := kind_of_claim(claim)) in pool.shelves
    )
