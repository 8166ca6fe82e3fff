"""How often nodes and locations hold the pods that are asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from berth.scheduling.replicas.problem import Bools, Floats, Ints, PodSet, Problem


def requested_resources(problem: Problem) -> Bools:
    """bool[R], resources that some pod requests: of others, a node may have none, or less than none."""
    asked = np.zeros(problem.nodes.free.shape[1], dtype=np.bool_)
    for pod_set in problem.pod_sets:
        asked |= pod_set.request > 0
    return asked


def rooms_of(problem: Problem) -> list[Floats]:
    """float64[N], how many times each node holds all pods, as far as half of them ask for a resource.

    Then, for those who ask for more, float64[N] each, how many times it holds all that ask for the same: the emptiest
    nodes are few of those that have it.
    """
    sets = [pod_set for pod_set in problem.pod_sets if pod_set.replicas]
    asking = sum((one.replicas * (one.request > 0) for one in sets), np.zeros(problem.nodes.free.shape[1]))
    usual: Bools = 2 * asking >= max(1, problem.pods)
    special: dict[bytes, list[PodSet]] = {}
    for one in sets:
        more = (one.request > 0) & ~usual
        if more.any():
            special.setdefault(more.tobytes(), []).append(one)
    free = problem.nodes.free
    return [room_of(free, sets, usual), *(room_of(free, each) for each in special.values())]


def room_of(free: Ints, pod_sets: Sequence[PodSet], counted: Bools | None = None) -> Floats:
    """float64[N], how many times each node holds some pods, as far as resources are counted; 0 where none may go.

    Args:
        free: int64[N, R], what is left of the nodes.
        pod_sets: the pods.
        counted: bool[R]; None: what they request.
    """
    need = sum((one.replicas * one.request for one in pod_sets), np.zeros(free.shape[1]))
    asked = need > 0 if counted is None else counted
    room: Floats = (np.maximum(free[:, asked], 0) / np.maximum(need[asked], 1)).min(axis=1, initial=np.inf)
    room[~_open(len(free), pod_sets)] = 0.0
    return room


def _open(size: int, pod_sets: Sequence[PodSet]) -> Bools:
    """bool[N], nodes that some of these pods may use."""
    masks = {id(pod_set.mask): pod_set.mask for pod_set in pod_sets}
    usable = np.zeros(size, dtype=np.bool_)
    for mask in masks.values():
        usable |= True if mask is None else mask
    return usable
