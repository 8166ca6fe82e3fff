"""What plans that could not be carried out have shown about volumes, as amounts that nodes have beside their resources.

Plans in counts do not know which volumes several nodes reach, or what their labels and access modes are. A pod whose
node turns out to have none left shows how many claims that node, and others like it, can serve. That is by how much
was taken then, in the order that it happened: it may forbid what would do, and is for a plan alone without which
nobody of a group would get a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.volumes import claim_keys, storage_class_of
from berth.scheduling.replica_plan.volume_room import VolumeRoom

if TYPE_CHECKING:
    from berth.kube.objects import Pod
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.decision import Decision
    from berth.scheduling.replica_plan.pod_sets import Alike


MOST_CUTS = 4
"""Bounds that one plan is made with at the most: each looks at all claims of its pods."""


@dataclass(frozen=True, slots=True)
class VolumeCut:
    """A bound on the claims of one plan."""

    classes: frozenset[str]
    """their storage classes"""
    most: Mapping[str, int]
    """by node name, how many of them pods on the node may have; nodes that are not named have no bound"""


def cut_of(pod: Pod, nodes: Iterable[str], settled: Iterable[Decision], state: ClusterState) -> VolumeCut | None:
    """Nodes that a pod cannot have any more take no more claims like its own; None where that bounds nothing.

    Args:
        pod: a pod of the plan.
        nodes: those where it found volumes before anything of the plan was assumed, and finds none now.
        settled: what is assumed of the plan.
        state: the cluster.
    """
    volumes = state.volumes
    known = (volumes.claims.get(key) for key in claim_keys(pod))
    classes = frozenset(storage_class_of(claim) for claim in known if claim is not None)
    bounded = list(nodes)
    if not classes or not bounded:
        return None
    taken: Counter[str] = Counter()
    for decision in settled:
        taken[decision.node] += _claims(decision.pod, classes, state)
    spare = _claims(pod, classes, state) - 1
    return VolumeCut(classes, {node: taken[node] + spare for node in bounded})


def cut_room(cuts: Collection[VolumeCut], pod_sets: Sequence[Alike], state: ClusterState) -> VolumeRoom:
    """Return a column for each cut.

    Args:
        cuts: what was learned.
        pod_sets: waiting pods by what they have in common.
        state: the cluster.
    """
    free, requests = np.zeros((state.size, len(cuts)), np.int64), np.zeros((len(pod_sets), len(cuts)), np.int64)
    for column, cut in enumerate(cuts):
        claims = [[_claims(each.info.pod, cut.classes, state) for each in pods.candidates] for pods in pod_sets]
        requests[:, column] = [min(counts) for counts in claims]
        free[:, column] = sum(map(sum, claims))
        for node, most in cut.most.items():
            if (slot := state.node_index.get(node)) is not None:
                free[slot, column] = most
    return VolumeRoom(free, requests)


def _claims(pod: Pod, classes: Collection[str], state: ClusterState) -> int:
    """How many claims of these classes a pod has."""
    known = (state.volumes.claims.get(key) for key in claim_keys(pod))
    return sum(claim is not None and storage_class_of(claim) in classes for claim in known)
