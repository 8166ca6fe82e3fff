"""Pods of one plan that a claim brings to one node: its volume is provisioned for the first of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from berth.scheduling.cache.volume_matching import sort_claims
from berth.scheduling.cache.volume_pool import kind_of_claim
from berth.scheduling.cache.volumes import NO_PROVISIONER, storage_class_of

if TYPE_CHECKING:
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.replica_plan.pod_sets import Alike


def held_together(pod_sets: Sequence[Alike], state: ClusterState) -> list[tuple[int, ...]]:
    """Pod sets, by number, that share a claim which is provisioned for whoever comes first; each once.

    Where a volume that is there may be taken instead, any of the nodes that reach it will do, and they are not named.

    Args:
        pod_sets: waiting pods by what they have in common.
        state: the cluster.
    """
    users: defaultdict[str, Counter[int]] = defaultdict(Counter)
    provisioned: dict[str, bool] = {}
    for number, pods in enumerate(pod_sets):
        for candidate in pods.candidates:
            pod = candidate.info.pod
            for key, claim in sort_claims(pod, state).delayed if pod.spec.volumes else ():
                users[key][number] += 1
                if key not in provisioned:
                    found = state.volumes.classes.get(storage_class_of(claim))
                    provisioned[key] = (
                        state.volumes.selected_node(claim) is None
                        and found is not None
                        and found.provisioner not in ("", NO_PROVISIONER)
                        and state.volume_stock.rack(kind_of_claim(claim)) is None
                        and not state.volume_stock.named.get(key)
                    )
    together: dict[tuple[int, ...], None] = {}
    for key, counts in users.items():
        if provisioned[key] and counts.total() > 1:
            all_of = tuple(number for number, count in counts.items() if count == len(pod_sets[number].candidates))
            together[all_of] = None
    return [numbers for numbers in together if numbers]
