"""Which volumes the claims of a pod would get on a node.

Claims whose class waits for its first consumer are matched, smallest first, with the smallest
available volume that the node can reach; what is left over is provisioned for the node. This is
kube-scheduler's volume binder, evaluated for all nodes at once where the question allows it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.selectors import compile_selector
from berth.scheduling.cache.volume_pool import NodeMasks, VolumePool, any_large_enough
from berth.scheduling.cache.volumes import (
    NO_PROVISIONER,
    SELECTED_NODE,
    claims_of,
    fully_bound,
    storage_class_of,
    storage_request,
)
from berth.scheduling.units import whole_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.kube.objects import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.cache.volume_pool import Shelf, Want
    from berth.scheduling.cache.volume_reach import Indices

Claim = tuple[str, "PersistentVolumeClaim"]
"""(``namespace/name``, the claim)."""


@dataclass(frozen=True, slots=True)
class ClaimSort:
    """The claims of a pod by what has to happen to them."""

    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    """Have their volume."""
    immediate: list[PersistentVolumeClaim] = field(default_factory=list)
    """Will get their volume whatever the pod does; the pod has to wait."""
    delayed: list[Claim] = field(default_factory=list)
    """Wait for the pod to be placed."""


@dataclass(frozen=True, slots=True)
class VolumePlan:
    """What has to be written before a pod may be bound to a node."""

    reserve: dict[str, str] = field(default_factory=dict)
    """Volume name to claim key: set the volume's spec.claimRef to the claim."""
    provision: list[str] = field(default_factory=list)
    """Keys of claims to annotate with volume.kubernetes.io/selected-node."""

    @property
    def empty(self) -> bool:
        """True when the pod can be bound at once."""
        return not self.reserve and not self.provision


def sort_claims(pod: Pod, state: ClusterState) -> ClaimSort:
    """The pod's claims by state; claims that are not known are left out (filters report them)."""
    found = ClaimSort()
    seen: set[str] = set()
    for _, name in claims_of(pod):
        key = f"{pod.metadata.namespace}/{name}"
        claim = state.volumes.claims.get(key)
        if claim is None or key in seen:
            continue
        seen.add(key)
        if fully_bound(claim):
            found.bound.append(claim)
        elif state.volumes.waits_for_consumer(claim) and not claim.spec.volume_name:
            found.delayed.append((key, claim))
        else:
            found.immediate.append(claim)
    return found


class DelayedClaims:
    """Feasibility of a pod's delayed claims over all nodes, and the plan for one node."""

    def __init__(self, claims: list[Claim], state: ClusterState) -> None:
        """``claims`` wait for their pod to be placed."""
        self._state = state
        self._matchable: list[Claim] = []
        self._to_provision: list[Claim] = []
        self._elsewhere: Mask = np.zeros(state.size, dtype=np.bool_)
        for key, claim in claims:
            node_name = state.volumes.selected_node(claim)
            if node_name is None:
                self._matchable.append((key, claim))
                continue
            self._to_provision.append((key, claim))
            others = np.ones(state.size, dtype=np.bool_)
            slot = state.node_index.get(node_name)
            if slot is not None:
                others[slot] = False
            self._elsewhere |= others
        self._matchable.sort(key=lambda item: storage_request(item[1]))
        self._nodes = NodeMasks(state)
        self._pool = VolumePool.of(dict(self._matchable), state)
        self._wants = [self._pool.want(key, claim) for key, claim in self._matchable]
        self._provisionable = self._provision_masks(claims)

    def failures(self) -> tuple[Mask, Mask]:
        """(nodes without a volume for some claim, nodes without the space to provision one).

        Of a node that is ruled out it need not say everything.
        """
        unmatched: Mask = self._elsewhere.copy()
        no_space: Mask = np.zeros(self._state.size, dtype=np.bool_)
        everywhere = np.ones(self._state.size, dtype=np.bool_)
        for key, _ in self._to_provision:
            self._require_provision(key, everywhere, unmatched, no_space)
        by_shelf: defaultdict[int, list[Want]] = defaultdict(list)
        for want in self._wants:
            if want.shelf is not None:
                by_shelf[id(want.shelf)].append(want)
            else:
                alone = everywhere if want.own is None else ~self._nodes.of(want.own)
                self._require_provision(want.key, alone, unmatched, no_space)
        for shelf in self._pool.shelves.values():
            wants = by_shelf[id(shelf)]
            contended = np.flatnonzero(self._short(shelf, wants, unmatched, no_space) & ~unmatched & ~no_space)
            self._check_contended(shelf, wants, contended, unmatched, no_space)
        return unmatched, no_space

    def plan(self, slot: int) -> VolumePlan:
        """What to write for a node that ``failures`` did not rule out."""
        chosen = self._match(slot)
        return VolumePlan(
            reserve={volume: key for key, volume in chosen.items() if volume is not None},
            provision=[
                *(key for key, claim in self._to_provision if SELECTED_NODE not in claim.metadata.annotations),
                *(key for key, volume in chosen.items() if volume is None),
            ],
        )

    def _short(self, shelf: Shelf, wants: Sequence[Want], unmatched: Mask, no_space: Mask) -> Mask:
        """Rule out nodes that reach no volume for a claim; returns those where others may take all it could take."""
        short: Mask = np.zeros(self._state.size, dtype=np.bool_)
        counts: dict[tuple[int, int], Indices] = {}
        for before, want in enumerate(wants):
            alike = id(want.admitted), want.first
            if alike not in counts:
                counts[alike] = shelf.rack.reach.count(want.admitted, want.first)
            count = counts[alike]
            self._require_provision(want.key, count == 0, unmatched, no_space)
            possible, space = self._provisionable[want.key]
            short |= (count <= before) & ~(possible & space)
        return short

    def _check_contended(
        self, shelf: Shelf, wants: Sequence[Want], slots: Indices, unmatched: Mask, no_space: Mask
    ) -> None:
        """Match claims on nodes where one may find none left, once for all nodes that reach the same volumes."""
        alike = shelf.rack.reach.alike(slots)
        for portion in shelf.rack.reach.portions(slots[np.unique(alike)]):
            taking = shelf.rack.reach.taking(portion)
            here = np.isin(slots[alike], portion)
            nodes, like = slots[here], np.searchsorted(portion, slots[alike][here])
            for want in wants:
                missing: Mask = np.zeros(self._state.size, dtype=np.bool_)
                missing[nodes] = taking.take(want.admitted, want.first)[like] < 0
                if missing.any():
                    self._require_provision(want.key, missing, unmatched, no_space)
                    left = ~(unmatched | no_space)[nodes]
                    if not left.any():
                        break
                    taking.leave(np.bincount(like[left], minlength=len(portion)) == 0)

    def _require_provision(self, key: str, nodes: Mask, unmatched: Mask, no_space: Mask) -> None:
        possible, space = self._provisionable[key]
        unmatched |= nodes & ~possible
        no_space |= nodes & possible & ~space

    def _match(self, slot: int) -> dict[str, str | None]:
        """Claim key to the volume it would take on this node, None where it must be provisioned."""
        node = np.array([slot], dtype=np.intp)
        taking = {id(shelf): shelf.rack.reach.taking(node) for shelf in self._pool.shelves.values()}
        chosen: dict[str, str | None] = {}
        for want in self._wants:
            chosen[want.key] = None
            if want.own is not None:
                if self._nodes.of(want.own)[slot]:
                    chosen[want.key] = want.own.metadata.name
            elif want.shelf is not None:
                index = int(taking[id(want.shelf)].take(want.admitted, want.first)[0])
                if index >= 0:
                    chosen[want.key] = want.shelf.rack.volumes[index].metadata.name
        return chosen

    def _provision_masks(self, claims: list[Claim]) -> dict[str, tuple[Mask, Mask]]:
        """By key: (nodes the claim's class can provision for, nodes with enough capacity for the claim)."""
        state = self._state
        nowhere = np.zeros(state.size, dtype=np.bool_)
        by_class: defaultdict[str, list[Claim]] = defaultdict(list)
        for key, claim in claims:
            by_class[storage_class_of(claim)].append((key, claim))
        found: dict[str, tuple[Mask, Mask]] = {}
        for name, theirs in by_class.items():
            storage_class = state.volumes.classes.get(name)
            if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
                found.update((key, (nowhere, nowhere)) for key, _ in theirs)
                continue
            allowed, space = allowed_nodes(storage_class, state), self._space(theirs, storage_class)
            found.update((key, (allowed, space[key])) for key, _ in theirs)
        return found

    def _space(self, claims: list[Claim], storage_class: StorageClass) -> dict[str, Mask]:
        """By key: nodes with enough capacity for each claim of a class."""
        state = self._state
        everywhere = np.ones(state.size, dtype=np.bool_)
        found = dict.fromkeys((key for key, _ in claims), everywhere)
        driver = state.volumes.drivers.get(storage_class.provisioner)
        if driver is None or not driver.spec.storage_capacity:
            return found
        wanted = {key: storage_request(claim) for key, claim in claims if "storage" in claim.spec.resources.requests}
        capacities: list[tuple[int, Mask]] = []
        for capacity in state.volumes.capacities.values() if wanted else ():
            limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
            if capacity.storage_class_name == storage_class.metadata.name and limit is not None:
                nodes = state.selection.label_selector(compile_selector(capacity.node_topology))
                capacities.append((whole_units(limit), nodes))
        enough = any_large_enough(capacities, wanted.values(), state.size)
        return found | {key: enough[amount] for key, amount in wanted.items()}


def volume_nodes(volume: PersistentVolume, state: ClusterState) -> Mask:
    """bool[N]: nodes that can reach a volume, by its node affinity."""
    return NodeMasks(state).of(volume)


def allowed_nodes(storage_class: StorageClass, state: ClusterState) -> Mask:
    """bool[N]: nodes in the class's allowedTopologies; all nodes when it has none."""
    if not storage_class.allowed_topologies:
        return state.alive.copy()
    allowed: Mask = np.zeros(state.size, dtype=np.bool_)
    for term in storage_class.allowed_topologies:
        if not term.match_label_expressions:
            continue
        here: Mask = state.alive.copy()
        for expression in term.match_label_expressions:
            here &= state.nodes.column(expression.key).among(expression.values, state.size)
        allowed |= here
    return allowed


def volume_plan(pod: Pod, state: ClusterState, node_name: str) -> VolumePlan:
    """What to write before the pod may be bound to a node that the filters admit.

    The writes are conditional updates: spec.claimRef of the volumes to reserve and the annotation
    of the claims to provision. The pod waits until its claims are bound and is filtered again
    then; nodes other than the selected one are rejected meanwhile. Raises LookupError for a node
    that is not known.
    """
    slot = state.node_index.get(node_name)
    if slot is None:
        raise LookupError(f"node {node_name} is not known")
    if not pod.spec.volumes:
        return VolumePlan()
    delayed = sort_claims(pod, state).delayed
    return DelayedClaims(delayed, state).plan(slot) if delayed else VolumePlan()


def unbound_claims(pod: Pod, state: ClusterState) -> list[str]:
    """Keys of the pod's claims that do not have their volume yet; the pod may be bound when empty."""
    return sorted(
        key
        for _, name in claims_of(pod)
        if (claim := state.volumes.claims.get(key := f"{pod.metadata.namespace}/{name}")) is None
        or not fully_bound(claim)
    )
