"""Which replicas a ReplicaSet deletes first when it shrinks: said by their annotation ``pod-deletion-cost``.

A plan knows which of its nodes an application of fewer replicas would have, and decides about its pods in that order.
Left to itself a ReplicaSet goes by shared nodes, age in powers of two, and UID, workload by workload: what is left of
the callers is near nothing that is left of the callees. So each pod is bound with a cost by which it goes before those
that were decided about earlier, and after those that share a node with more of their like, since no failure of a node
is to take more of them than need be.

Source of what a ReplicaSet goes by: kubernetes, pkg/controller/controller_utils.go, ActivePodsWithRanks. Pods without a
node, and those that are not ready, go before all others whatever they cost.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import accumulate, count
from typing import Final

from berth.api.labels import ANNOTATION_DELETION_COST, LABEL_APPGROUP
from berth.kube.objects import Pod

BAND: Final = 1_000_000
"""Costs of pods that share their node with as many that go later: from minus that many times this on, downwards."""
LOWEST: Final = -(2**31)
"""The least that the annotation may say."""
_COST: Final = re.compile("0|[1-9][0-9]{0,9}|-[0-9]{1,10}", re.ASCII)


@dataclass(slots=True)
class _Replicas:
    """Pods of one ReplicaSet that have a node and are to stay."""

    pods: dict[str, tuple[str, int]] = field(default_factory=dict)
    """node and band of each, by uid"""
    on_node: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    """how many of each band a node has"""
    in_band: Counter[int] = field(default_factory=Counter)
    lowest: dict[int, int] = field(default_factory=dict)
    """cost below which the next one of a band is; no higher than the least of those that are there"""


class ScaleDownOrder:
    """The members of AppGroups by their ReplicaSets, and what each next one is bound with."""

    def __init__(self) -> None:
        """Begin without pods."""
        self._sets: dict[str, _Replicas] = {}

    def seen(self, old: Pod | None, new: Pod | None) -> None:
        """A watch shows that a pod has come, has changed, or is gone."""
        before, owner = (_replica_set(pod) if pod is not None else "" for pod in (old, new))
        stays = new is not None and not new.finished and new.metadata.deletion_timestamp is None
        # One that had a node has none where etcd was restored, and is decided about again, after others maybe.
        lost = old is not None and new is not None and bool(old.spec.node_name) and not new.spec.node_name
        if old is not None and before and (not stays or lost or before != owner):
            self._take_out(before, old.metadata.uid)
        if new is not None and stays and owner and new.spec.node_name:
            self._put(owner, new.metadata.uid, new.spec.node_name, stated_cost(new) or 0)

    def bind(self, pod: Pod, node: str) -> int | None:
        """Return what a pod is to be bound with, and count it on that node.

        Args:
            pod: as it was decided about.
            node: its name.

        Returns:
            The cost, 0 or less; None for pods that are no ReplicaSet's or of no AppGroup, and where somebody else has
            said it.
        """
        owner = _replica_set(pod)
        if not owner:
            return None
        if ANNOTATION_DELETION_COST in pod.metadata.annotations:
            self._put(owner, pod.metadata.uid, node, stated_cost(pod) or 0)
            return None
        self._take_out(owner, pod.metadata.uid)
        there = self._sets.setdefault(owner, _Replicas())
        # Where the first on a node is gone and others stay, the next one takes its place.
        bands = there.on_node.get(node, Counter())
        up_to = accumulate(bands[band] for band in count())
        band = next(band for band, pods in enumerate(up_to) if pods <= band)
        first = -band * BAND
        cost = max(there.lowest.get(band, first + 1) - 1, first - BAND + 1, LOWEST)
        self._put(owner, pod.metadata.uid, node, cost)
        return cost

    def unbound(self, pod: Pod) -> None:
        """A pod does not get the node that it was to be bound to."""
        self._take_out(_replica_set(pod), pod.metadata.uid)

    def _put(self, owner: str, uid: str, node: str, cost: int) -> None:
        self._take_out(owner, uid)
        there = self._sets.setdefault(owner, _Replicas())
        band = max(0, -cost) // BAND
        there.pods[uid] = node, band
        there.on_node[node][band] += 1
        there.in_band[band] += 1
        there.lowest[band] = min(there.lowest.get(band, 0), cost)

    def _take_out(self, owner: str, uid: str) -> None:
        there = self._sets.get(owner)
        if there is None or uid not in there.pods:
            return
        node, band = there.pods.pop(uid)
        if not there.pods:
            del self._sets[owner]
            return
        there.on_node[node] -= Counter((band,))
        if not there.on_node[node]:
            del there.on_node[node]
        there.in_band[band] -= 1
        if not there.in_band[band]:
            del there.in_band[band], there.lowest[band]


def stated_cost(pod: Pod) -> int | None:
    """Return what a pod's annotation says, as a ReplicaSet reads it; None where it says nothing that counts."""
    text = pod.metadata.annotations.get(ANNOTATION_DELETION_COST, "")
    if not _COST.fullmatch(text):
        return None
    cost = int(text)
    return cost if LOWEST <= cost < -LOWEST else None


def _replica_set(pod: Pod) -> str:
    """UID of the ReplicaSet that a member of an AppGroup is of; empty for any other pod."""
    if LABEL_APPGROUP not in pod.metadata.labels:
        return ""
    owners = (owner for owner in pod.metadata.owner_references or () if owner.controller)
    return next((owner.uid for owner in owners if owner.kind == "ReplicaSet"), "")
