"""Available volumes, looked up by many claims at once.

A pod may have a hundred claims and a cluster ten thousand volumes: what depends on the volumes alone is worked out once
for all claims of the pod. Nothing here is kept beyond one look at the cluster.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berth.scheduling.cache.selectors import compile_selector
from berth.scheduling.cache.units import whole_units
from berth.scheduling.cache.volumes import claimed_by, storage_class_of, storage_request

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from berth.kube.objects import NodeSelector, PersistentVolume, PersistentVolumeClaim
    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.cache.volumes import VolumeTable

VolumeKind = tuple[str, str, str]
"""Storage class, volume mode and volume attributes class."""


def kind_of_claim(claim: PersistentVolumeClaim) -> VolumeKind:
    """What volumes of a claim have in common."""
    return storage_class_of(claim), claim.spec.volume_mode, claim.spec.volume_attributes_class_name or ""


def kind_of_volume(volume: PersistentVolume) -> VolumeKind:
    """What claims of a volume have in common."""
    spec = volume.spec
    return spec.storage_class_name, spec.volume_mode, spec.volume_attributes_class_name or ""


def size_of(volume: PersistentVolume) -> int:
    """Bytes of a volume."""
    return whole_units(volume.spec.capacity.get("storage", 0))


class NodeMasks:
    """Nodes by node selector, each selector evaluated once: the volumes of a zone have all the same."""

    def __init__(self, state: ClusterState) -> None:
        """Begin without any."""
        self._state = state
        self._numbers: dict[bytes, int] = {}
        self._masks: list[Mask] = []

    def number(self, volume: PersistentVolume) -> int:
        """Index in :meth:`all` of the nodes that can reach a volume, by its node affinity."""
        affinity = volume.spec.node_affinity
        required = affinity.required if affinity is not None else None
        key = msgspec.json.encode(required)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._masks)
            self._masks.append(volume_selector_nodes(required, self._state))
        return number

    def of(self, volume: PersistentVolume) -> Mask:
        """bool[N]: nodes that can reach a volume."""
        return self._masks[self.number(volume)]

    def all(self) -> Mask:
        """bool[D, N]: the different masks so far."""
        return np.array(self._masks, dtype=np.bool_).reshape(len(self._masks), self._state.size)


def volume_selector_nodes(required: NodeSelector | None, state: ClusterState) -> Mask:
    """bool[N]: nodes that a volume's required node affinity admits; all of them where there is none."""
    return state.alive.copy() if required is None else state.selection.node_selector(required)


def any_large_enough(items: Iterable[tuple[int, Mask]], wanted: Collection[int], size: int) -> dict[int, Mask]:
    """For each wanted amount, bool[size]: nodes that some item reaches whose amount is no less."""
    found: dict[int, Mask] = {}
    reach: Mask = np.zeros(size, dtype=np.bool_)
    left = sorted(items, key=lambda item: item[0])
    for amount in sorted(set(wanted), reverse=True):
        while left and left[-1][0] >= amount:
            reach |= left.pop()[1]
        found[amount] = reach.copy()
    return found


@dataclass(frozen=True, slots=True)
class Shelf:
    """Available volumes of one kind, the smallest first."""

    volumes: list[PersistentVolume]
    sizes: list[int]
    """bytes of each"""
    masks: NDArray[np.intp]
    """number of the nodes that reach each, in NodeMasks"""
    _admitted: dict[tuple[object, frozenset[str]], list[bool]] = field(default_factory=dict)

    @classmethod
    def of(cls, volumes: Iterable[PersistentVolume], nodes: NodeMasks) -> Shelf:
        """Volumes in order of size, equal ones as they come."""
        ordered = sorted(volumes, key=size_of)
        masks = np.fromiter(map(nodes.number, ordered), dtype=np.intp, count=len(ordered))
        return cls(ordered, [size_of(volume) for volume in ordered], masks)

    def admitted(self, claim: PersistentVolumeClaim) -> list[bool]:
        """Which of the volumes a claim's selector and access modes admit; one object for claims that are alike."""
        selector = compile_selector(claim.spec.selector) if claim.spec.selector is not None else None
        modes = frozenset(claim.spec.access_modes)
        known = self._admitted.get((selector, modes))
        if known is None:
            known = self._admitted[selector, modes] = [
                modes.issubset(volume.spec.access_modes)
                and (selector is None or selector.matches(volume.metadata.labels))
                for volume in self.volumes
            ]
        return known

    def largest(self, admitted: Sequence[bool], count: int) -> NDArray[np.intp]:
        """int[count]: index of the largest admitted volume that the nodes of each number reach, -1 without any."""
        found = np.full(count, -1, dtype=np.intp)
        numbers = np.flatnonzero(admitted)
        np.maximum.at(found, self.masks[numbers], numbers)
        return found


@dataclass(frozen=True, slots=True)
class Want:
    """What a claim may take."""

    key: str
    """of the claim"""
    own: PersistentVolume | None
    """reserved for it; it gets no other then"""
    shelf: Shelf | None
    """where it may choose, None without any volume of its kind"""
    first: int = 0
    """index of the smallest volume there that is large enough"""
    admitted: Sequence[bool] = ()
    """volumes there that its selector and access modes admit; one object for claims that are alike"""


@dataclass(frozen=True, slots=True)
class VolumePool:
    """Volumes that claims may take."""

    own: Mapping[str, PersistentVolume]
    """volume that is reserved for a claim, by the claim's key: it gets no other"""
    shelves: Mapping[VolumeKind, Shelf]
    """volumes that are free, by kind"""

    @classmethod
    def of(
        cls,
        claims: Mapping[str, PersistentVolumeClaim],
        volumes: VolumeTable,
        nodes: NodeMasks,
    ) -> VolumePool:
        """What there is for these claims, in one pass over all volumes; `nodes` has all that reach some of it then."""
        kinds = {kind_of_claim(claim) for claim in claims.values()}
        own: dict[str, PersistentVolume] = {}
        free: defaultdict[VolumeKind, list[PersistentVolume]] = defaultdict(list)
        for name, volume in volumes.volumes.items():
            kind = kind_of_volume(volume)
            if kind not in kinds or volume.metadata.deletion_timestamp is not None:
                continue
            reference, reserved = volume.spec.claim_ref, volumes.reserved_for(name)
            if reference is None and reserved is None:
                if volume.status.phase == "Available":
                    free[kind].append(volume)
                continue
            named = f"{reference.namespace}/{reference.name}" if reference is not None else None
            for key in filter(None, (named, reserved)):
                claim = claims.get(key)
                if claim is None:
                    continue
                theirs = reserved == key or claimed_by(volume, claim)
                if theirs and kind_of_claim(claim) == kind and size_of(volume) >= storage_request(claim):
                    own.setdefault(key, volume)
        for volume in own.values():
            nodes.number(volume)
        return cls(own, {kind: Shelf.of(found, nodes) for kind, found in free.items()})

    def want(self, key: str, claim: PersistentVolumeClaim) -> Want:
        """What one of the claims may take."""
        own, shelf = self.own.get(key), self.shelves.get(kind_of_claim(claim))
        if own is not None or shelf is None:
            return Want(key, own, None)
        return Want(key, None, shelf, bisect_left(shelf.sizes, storage_request(claim)), shelf.admitted(claim))
