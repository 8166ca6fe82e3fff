"""Pods of one plan that a claim brings together: its volume is provisioned or taken for the first of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berth.scheduling.cache.volume_matching import sort_claims
from berth.scheduling.cache.volume_pool import VolumePool, kind_of_claim
from berth.scheduling.cache.volumes import NO_PROVISIONER, storage_class_of

if TYPE_CHECKING:
    from berth.kube.objects import PersistentVolumeClaim
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.cache.volume_matching import Claim
    from berth.scheduling.replica_plan.pod_sets import Alike

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Together:
    """Pods that are in one part of the cluster."""

    pod_sets: tuple[int, ...]
    """by number"""
    part: Ints
    """int64[N], the part that each node is in; those in none have -1"""


def held_together(pod_sets: Sequence[Alike], state: ClusterState) -> list[Together]:
    """Pod sets that share a claim which gets its volume with whoever comes first; each once.

    One that is provisioned holds them on one node. One that takes a volume that is there, where its class provisions
    none, holds them on nodes that volumes have in common. Where it may do either, they are not named.

    Args:
        pod_sets: waiting pods by what they have in common.
        state: the cluster.
    """
    users: defaultdict[str, Counter[int]] = defaultdict(Counter)
    claims: dict[str, PersistentVolumeClaim] = {}
    for number, pods in enumerate(pod_sets):
        for candidate in pods.candidates:
            pod = candidate.info.pod
            for key, claim in sort_claims(pod, state).delayed if pod.spec.volumes else ():
                users[key][number] += 1
                claims[key] = claim
    shared = [(key, claims[key]) for key, counts in users.items() if counts.total() > 1]
    together: dict[tuple[tuple[int, ...], bytes], Together] = {}
    for key, part in _parts(shared, state):
        all_of = tuple(number for number, count in users[key].items() if count == len(pod_sets[number].candidates))
        if all_of:
            together.setdefault((all_of, part.tobytes()), Together(all_of, part))
    return list(together.values())


def _parts(claims: Iterable[Claim], state: ClusterState) -> Iterator[tuple[str, Ints]]:
    """Keys of claims that hold their pods together, each with the part of the cluster that each node is in."""
    nodes = np.arange(state.size, dtype=np.int64)
    from_stock: dict[str, PersistentVolumeClaim] = {}
    for key, claim in claims:
        found = state.volumes.classes.get(storage_class_of(claim))
        if found is None or state.volumes.selected_node(claim) is not None:
            continue
        if found.provisioner in ("", NO_PROVISIONER):
            from_stock[key] = claim
        elif state.volume_stock.rack(kind_of_claim(claim)) is None and not state.volume_stock.named.get(key):
            yield key, nodes
    if not from_stock:
        return
    pool = VolumePool.of(from_stock, state)
    known: dict[tuple[int, int], Ints | None] = {}
    for key, claim in from_stock.items():
        want = pool.want(key, claim)
        if want.shelf is None:  # it has its volume, or there is none
            continue
        alike = id(want.admitted), want.first
        if alike not in known:
            known[alike] = want.shelf.rack.reach.apart(want.admitted, want.first)
        if (part := known[alike]) is not None:
            yield key, part
