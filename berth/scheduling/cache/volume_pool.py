"""Available volumes, looked up by many claims at once.

A pod may have a hundred claims and a cluster ten thousand volumes: what depends on volumes and nodes alone is worked
out once for all claims, and kept for the next pod until one of these changes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berth.scheduling.cache.selectors import compile_selector
from berth.scheduling.cache.volume_labels import VolumeLabels
from berth.scheduling.cache.volume_reach import MOST_PAIRS, Indices, Reach
from berth.scheduling.cache.volumes import claimed_by, storage_class_of, storage_request
from berth.scheduling.units import whole_units

if TYPE_CHECKING:
    from berth.kube.objects import NodeSelector, PersistentVolume, PersistentVolumeClaim
    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.cache.selectors import Selector
    from berth.scheduling.cache.state import ClusterState

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


def selector_keys(claim: PersistentVolumeClaim) -> Iterator[str]:
    """Keys of labels that a claim's selector names."""
    if (selector := claim.spec.selector) is not None:
        yield from selector.match_labels
        yield from (expression.key for expression in selector.match_expressions)


def selector_terms(claim: PersistentVolumeClaim) -> int:
    """Labels, expressions and values in a claim's selector: what it takes to read and to match it."""
    if (selector := claim.spec.selector) is None:
        return 0
    return len(selector.match_labels) + sum(1 + len(each.values) for each in selector.match_expressions)


class NodeMasks:
    """Nodes by node selector, each selector evaluated once: the volumes of a zone have all the same."""

    def __init__(self, state: ClusterState) -> None:
        """Begin without any."""
        self._state = state
        self._numbers: dict[bytes, int] = {}
        self._slots: list[Indices] = []

    def number(self, volume: PersistentVolume) -> int:
        """Which of the different node affinities a volume has."""
        affinity = volume.spec.node_affinity
        required = affinity.required if affinity is not None else None
        key = msgspec.json.encode(required)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._slots)
            self._slots.append(np.flatnonzero(volume_selector_nodes(required, self._state)))
        return number

    def of(self, volume: PersistentVolume) -> Mask:
        """bool[N]: nodes that can reach a volume."""
        found: Mask = np.zeros(self._state.size, dtype=np.bool_)
        found[self._slots[self.number(volume)]] = True
        return found

    def reach(self, numbers: Indices) -> Reach:
        """Which nodes volumes with these affinities, int[V], are reached from."""
        return Reach(numbers, self._slots, self._state.size)


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
class Rack:
    """Volumes of one kind that nobody has, as far as the API server knows, the smallest first."""

    volumes: list[PersistentVolume]
    sizes: list[int]
    """bytes of each"""
    labels: list[dict[str, str]]
    """of each"""
    index: dict[str, int]
    """of each by its name"""
    reach: Reach
    """where they are reached from"""
    _with_modes: dict[frozenset[str], Mask] = field(default_factory=dict)

    @classmethod
    def of(cls, volumes: Iterable[PersistentVolume], nodes: NodeMasks) -> Rack:
        """Volumes in order of size, equal ones as they come."""
        ordered = sorted(volumes, key=size_of)
        numbers = np.fromiter(map(nodes.number, ordered), dtype=np.intp, count=len(ordered))
        index = {volume.metadata.name: at for at, volume in enumerate(ordered)}
        labels = [volume.metadata.labels for volume in ordered]
        return cls(ordered, [size_of(volume) for volume in ordered], labels, index, nodes.reach(numbers))

    def having(self, modes: frozenset[str]) -> Mask:
        """Which of them have these access modes and perhaps others."""
        known = self._with_modes.get(modes)
        if known is None:
            known = self._with_modes[modes] = np.fromiter(
                (modes.issubset(volume.spec.access_modes) for volume in self.volumes), np.bool_, len(self.volumes)
            )
        return known


class Stock:
    """All volumes, by what claims ask first; what is assumed is for each look at it."""

    def __init__(self, state: ClusterState) -> None:
        """Go through the volumes as they are now."""
        self._made_of = _versions(state)
        self._nodes = NodeMasks(state)
        self._open: defaultdict[VolumeKind, list[PersistentVolume]] = defaultdict(list)
        self._racks: dict[VolumeKind, Rack] = {}
        self.order: dict[str, int] = {}
        """by name, of volumes that are not being deleted: one that comes first is taken first"""
        self.named: defaultdict[str, list[str]] = defaultdict(list)
        """names of volumes by key of the claim that they name"""
        for name, volume in state.volumes.volumes.items():
            if volume.metadata.deletion_timestamp is not None:
                continue
            self.order[name] = len(self.order)
            if (reference := volume.spec.claim_ref) is not None:
                self.named[f"{reference.namespace}/{reference.name}"].append(name)
            elif volume.status.phase == "Available":
                self._open[kind_of_volume(volume)].append(volume)

    def is_of(self, state: ClusterState) -> bool:
        """Whether neither volumes nor nodes have changed since."""
        return self._made_of == _versions(state)

    def rack(self, kind: VolumeKind) -> Rack | None:
        """Open volumes of a kind; None without any."""
        known = self._racks.get(kind)
        if known is None and kind in self._open:
            known = Rack.of(self._open[kind], self._nodes)
            if known.reach.pairs <= MOST_PAIRS:
                self._racks[kind] = known
        return known


def _versions(state: ClusterState) -> tuple[int, ...]:
    return state.volumes.volumes_version, state.static_version, state.size


@dataclass(frozen=True, slots=True)
class Shelf:
    """Volumes of one kind that are free."""

    rack: Rack
    """these and others"""
    free: Mask
    """which of them are"""
    labels: VolumeLabels
    """of the keys that selectors of the claims name"""
    _admitted: dict[tuple[Selector | None, frozenset[str]], Mask] = field(default_factory=dict)

    def admitted(self, claim: PersistentVolumeClaim) -> Mask:
        """Which of the volumes a claim's selector and access modes admit; one object for claims that are alike."""
        selector = compile_selector(claim.spec.selector) if claim.spec.selector is not None else None
        modes = frozenset(claim.spec.access_modes)
        known = self._admitted.get((selector, modes))
        if known is None:
            known = self.free & self.rack.having(modes)
            if selector is not None:
                known &= self.labels.matching(selector)
            self._admitted[selector, modes] = known
        return known


@dataclass(frozen=True, slots=True)
class Want:
    """What a claim may take."""

    key: str
    """of the claim"""
    own: PersistentVolume | None
    """reserved for it; it gets no other then"""
    shelf: Shelf | None
    """where it may choose, None without any volume of its kind and for one that has its own"""
    first: int = 0
    """index of the smallest volume there that is large enough"""
    admitted: Mask = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """volumes there that its selector and access modes admit; one object for claims that are alike"""


@dataclass(frozen=True, slots=True)
class VolumePool:
    """Volumes that claims may take."""

    own: Mapping[str, PersistentVolume | None]
    """volume that is reserved for a claim, by the claim's key: it gets no other; None where a smaller claim of the pod
    has the same"""
    shelves: Mapping[VolumeKind, Shelf]
    """volumes that are free, by kind"""

    @classmethod
    def of(cls, claims: Mapping[str, PersistentVolumeClaim], state: ClusterState) -> VolumePool:
        """What there is for these claims, the smallest first."""
        stock, volumes = state.volume_stock, state.volumes
        keys = {key for claim in claims.values() for key in selector_keys(claim)}
        shelves: dict[VolumeKind, Shelf] = {}
        for kind in {kind_of_claim(claim) for claim in claims.values()}:
            if (rack := stock.rack(kind)) is not None:
                everything = np.ones(len(rack.volumes), dtype=np.bool_)
                shelves[kind] = Shelf(rack, everything, VolumeLabels(rack.labels, keys))
        theirs: defaultdict[str, list[str]] = defaultdict(list)
        for name, key in volumes.reserved.items():
            if key in claims and name in stock.order:
                theirs[key].append(name)
            for shelf in shelves.values():
                if (at := shelf.rack.index.get(name)) is not None:
                    shelf.free[at] = False
        own: dict[str, PersistentVolume | None] = {}
        given: set[str] = set()
        for key, claim in claims.items():
            for name in sorted({*stock.named.get(key, ()), *theirs[key]}, key=stock.order.__getitem__):
                volume = volumes.volumes[name]
                if (
                    (volumes.reserved_for(name) == key or claimed_by(volume, claim))
                    and kind_of_volume(volume) == kind_of_claim(claim)
                    and size_of(volume) >= storage_request(claim)
                ):
                    own[key] = None if name in given else volume
                    given.add(name)
                    break
        return cls(own, shelves)

    def want(self, key: str, claim: PersistentVolumeClaim) -> Want:
        """What one of the claims may take."""
        shelf = self.shelves.get(kind_of_claim(claim))
        if key in self.own or shelf is None:
            return Want(key, self.own.get(key), None)
        return Want(key, None, shelf, bisect_left(shelf.rack.sizes, storage_request(claim)), shelf.admitted(claim))
