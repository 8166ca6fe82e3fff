"""Which volumes the claims of a pod would get on a node.

Claims whose class waits for its first consumer are matched, smallest first, with the smallest
available volume that the node can reach; what is left over is provisioned for the node. This is
kube-scheduler's volume binder, evaluated for all nodes at once where the question allows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.selectors import compile_selector
from berth.scheduling.cache.units import whole_units
from berth.scheduling.cache.volumes import (
    NO_PROVISIONER,
    SELECTED_NODE,
    claimed_by,
    claims_of,
    fully_bound,
    storage_class_of,
    storage_request,
)

if TYPE_CHECKING:
    from berth.kube.objects import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.state import ClusterState

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
        self._candidates = [self._candidate_volumes(key, claim) for key, claim in self._matchable]
        self._provisionable = {key: self._provision_masks(claim) for key, claim in claims}

    def failures(self) -> tuple[Mask, Mask]:
        """(nodes without a volume for some claim, nodes without the space to provision one)."""
        unmatched: Mask = self._elsewhere.copy()
        no_space: Mask = np.zeros(self._state.size, dtype=np.bool_)
        for key, _ in self._to_provision:
            self._require_provision(key, np.ones(self._state.size, dtype=np.bool_), unmatched, no_space)
        reachable = [self._reach(candidates) for candidates in self._candidates]
        for (key, _), reach in zip(self._matchable, reachable, strict=True):
            self._require_provision(key, ~reach, unmatched, no_space)
        if sum(bool(candidates) for candidates in self._candidates) > 1:
            self._check_contended(reachable, unmatched, no_space)
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

    def _check_contended(self, reachable: list[Mask], unmatched: Mask, no_space: Mask) -> None:
        """Two claims may reach for the same volume: settle these nodes one by one."""
        contended = np.flatnonzero(np.sum(reachable, axis=0) > 1)
        for slot in contended.tolist():
            for key, volume in self._match(slot).items():
                if volume is None:
                    possible, space = self._provisionable[key]
                    unmatched[slot] |= not possible[slot]
                    no_space[slot] |= possible[slot] and not space[slot]

    def _require_provision(self, key: str, nodes: Mask, unmatched: Mask, no_space: Mask) -> None:
        possible, space = self._provisionable[key]
        unmatched |= nodes & ~possible
        no_space |= nodes & possible & ~space

    def _match(self, slot: int) -> dict[str, str | None]:
        """Claim key to the volume it would take on this node, None where it must be provisioned."""
        taken: set[str] = set()
        chosen: dict[str, str | None] = {}
        for (key, _), candidates in zip(self._matchable, self._candidates, strict=True):
            chosen[key] = None
            for volume, mask in candidates:
                name = volume.metadata.name
                if name not in taken and mask[slot]:
                    taken.add(name)
                    chosen[key] = name
                    break
        return chosen

    def _reach(self, candidates: list[tuple[PersistentVolume, Mask]]) -> Mask:
        reach: Mask = np.zeros(self._state.size, dtype=np.bool_)
        for _, mask in candidates:
            reach |= mask
        return reach

    def _candidate_volumes(self, key: str, claim: PersistentVolumeClaim) -> list[tuple[PersistentVolume, Mask]]:
        """Volumes the claim could take, best first, each with the nodes that reach it.

        A volume reserved for the claim beats all others; on nodes that do not reach it, the claim
        gets none.
        """
        wanted = storage_request(claim)
        class_name = storage_class_of(claim)
        selector = compile_selector(claim.spec.selector) if claim.spec.selector is not None else None
        free: list[PersistentVolume] = []
        for volume in self._state.volumes.volumes.values():
            spec = volume.spec
            if (
                spec.storage_class_name != class_name
                or spec.volume_mode != claim.spec.volume_mode
                or (spec.volume_attributes_class_name or "") != (claim.spec.volume_attributes_class_name or "")
                or volume.metadata.deletion_timestamp is not None
                or whole_units(spec.capacity.get("storage", 0)) < wanted
            ):
                continue
            reserved = self._state.volumes.reserved_for(volume.metadata.name)
            if claimed_by(volume, claim) or reserved == key:
                return [(volume, volume_nodes(volume, self._state))]
            if (
                spec.claim_ref is None
                and reserved is None
                and volume.status.phase == "Available"
                and (selector is None or selector.matches(volume.metadata.labels))
                and set(claim.spec.access_modes) <= set(spec.access_modes)
            ):
                free.append(volume)
        free.sort(key=lambda volume: whole_units(volume.spec.capacity.get("storage", 0)))
        return [(volume, volume_nodes(volume, self._state)) for volume in free]

    def _provision_masks(self, claim: PersistentVolumeClaim) -> tuple[Mask, Mask]:
        """(nodes the class can provision for, nodes with enough capacity for the claim)."""
        state = self._state
        storage_class = state.volumes.classes.get(storage_class_of(claim))
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
            nowhere = np.zeros(state.size, dtype=np.bool_)
            return nowhere, nowhere
        return allowed_nodes(storage_class, state), self._space(claim, storage_class)

    def _space(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> Mask:
        state = self._state
        driver = state.volumes.drivers.get(storage_class.provisioner)
        everywhere = np.ones(state.size, dtype=np.bool_)
        if driver is None or not driver.spec.storage_capacity or "storage" not in claim.spec.resources.requests:
            return everywhere
        wanted = storage_request(claim)
        space: Mask = ~everywhere
        for capacity in state.volumes.capacities.values():
            limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
            if capacity.storage_class_name != storage_class.metadata.name or limit is None:
                continue
            if whole_units(limit) >= wanted:
                space |= state.selection.label_selector(compile_selector(capacity.node_topology))
        return space


def volume_nodes(volume: PersistentVolume, state: ClusterState) -> Mask:
    """bool[N]: nodes that can reach a volume, by its node affinity."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return state.alive.copy()
    return state.selection.node_selector(affinity.required)


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
