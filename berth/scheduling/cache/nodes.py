"""The table of nodes: slots, resources, labels, taints.

Every node has a slot, a stable index into all arrays; slots of removed nodes are reused. Arrays are
handed out as read-only views of the slots in use, [N] or [N, R], valid until the next node event.

Columns exist for labels and resources that nodes have, whatever pods ask for; those that no node has any more are
freed, resources a few at a time.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from berth.scheduling.cache.columns import Ids, LabelColumn, Mask
from berth.scheduling.cache.node_changes import node_settings
from berth.scheduling.units import LIMIT, resource_units

if TYPE_CHECKING:
    from berth.kube.objects import Node, Taint

Amount = NDArray[np.int64]

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
FIXED_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
"""Resources of the first columns."""
PODS = 3
SPARE = 64
"""Distinct values that may be kept beyond twice the number of nodes before old ones are forgotten."""
LABEL_COLUMNS = 512
"""Label columns that are kept beside those of zone and region; others are built when they are needed."""
REMEMBERED_CHARGES = 1024
"""Charges that are remembered at the most, so that who follows them need not look at every node."""
UNUSED_RESOURCES = 16
"""Resources that no node has any more whose columns are kept at the most: a node may be back soon."""
TaintKey = tuple[tuple[str, str, str], ...]


View = TypeVar("View", bound="NDArray[np.generic]")


def _read_only(view: View) -> View:
    """The view, closed against writes that would bypass the table."""
    view.flags.writeable = False
    return view


class NodeTable:
    """Nodes in slots, with columns for resources, labels and taints."""

    def __init__(self) -> None:
        """Begin without nodes; the number of slots doubles when needed."""
        self._capacity = capacity = 64
        self.count = 0
        """Slots in use, free ones among them included."""
        self.index: dict[str, int] = {}
        """Slot of every live node by name."""
        self.nodes: list[Node | None] = []
        """The node in each slot, None where free."""
        self.version = 0
        """Grows when a node appears, goes, or changes in anything but its resources."""
        self.allocatable_version = 0
        """Grows when what a node can give changes, or the columns for it."""
        self._charged: list[int] = []
        self._charges_before = 0
        self._changed: dict[int, int] = {}
        """`version` since which a slot is as it is."""
        self._free: list[int] = []
        self._alive: Mask = np.zeros(capacity, dtype=np.bool_)
        self._unschedulable: Mask = np.zeros(capacity, dtype=np.bool_)
        self._taint_ids: Ids = np.zeros(capacity, dtype=np.int32)
        self.resources: dict[str, int] = {name: column for column, name in enumerate(FIXED_RESOURCES)}
        """Column of every resource that nodes have, by name."""
        self._resource_users: Counter[str] = Counter()
        self._allocatable = self._amounts(capacity, 8)
        self._used = self._amounts(capacity, 8)
        self._scoring_used = self._amounts(capacity, 2)
        self._beyond_limit: tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]] = ({}, {})
        self._places: dict[str, LabelColumn] = {key: LabelColumn(capacity) for key in (ZONE, REGION)}
        self._columns: LRUCache[str, LabelColumn] = LRUCache(maxsize=LABEL_COLUMNS)
        self._absent = LabelColumn(capacity)
        self._label_users: Counter[str] = Counter()
        self._taint_numbers: dict[TaintKey, int] = {(): 0}
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        """Distinct lists of taints; ``taint_ids`` refers to them."""

    @staticmethod
    def _amounts(slots: int, columns: int) -> Amount:
        # Column order: a filter reads one resource of all nodes at a time.
        return np.zeros((slots, columns), dtype=np.int64, order="F")

    @property
    def alive(self) -> Mask:
        """bool[N]: slots that hold a node."""
        return _read_only(self._alive[: self.count])

    @property
    def unschedulable(self) -> Mask:
        """bool[N]: nodes with spec.unschedulable."""
        return _read_only(self._unschedulable[: self.count])

    @property
    def taint_ids(self) -> Ids:
        """int32[N]: index of each node's taints in ``taint_sets``."""
        return self._taint_ids[: self.count]

    @property
    def allocatable(self) -> Amount:
        """int64[N, R]: what each node can give, in scheduler units."""
        return _read_only(self._allocatable[: self.count, : len(self.resources)])

    @property
    def used(self) -> Amount:
        """int64[N, R]: requests of the pods on each node; the column ``pods`` counts them."""
        return _read_only(self._used[: self.count, : len(self.resources)])

    @property
    def scoring_used(self) -> Amount:
        """int64[N, 2]: cpu and memory requests with kube-scheduler's defaults for absent ones."""
        return _read_only(self._scoring_used[: self.count])

    def has_label(self, key: str) -> bool:
        """Whether some node has a label of this key."""
        return bool(self._label_users[key])

    def column(self, key: str) -> LabelColumn:
        """The label column of a key, built on first use; read-only, and good until the next node event."""
        column = self._places.get(key) or self._columns.get(key)
        if column is None and not self._label_users[key]:
            return self._absent
        if column is None:
            column = self._columns[key] = LabelColumn(self._capacity)
            for slot, node in enumerate(self.nodes):
                if node is not None:
                    column.set(slot, node.metadata.labels.get(key))
        return column

    def _resource_column(self, name: str) -> int:
        """The column of a resource that a node has, added when new."""
        column = self.resources.get(name)
        if column is None:
            column = self.resources[name] = len(self.resources)
            if column >= self._allocatable.shape[1]:
                self._resize(self._capacity, 2 * column)
        return column

    def update(self, node: Node) -> tuple[int, bool]:
        """Add or replace a node; returns its slot and whether anything but resources changed.

        Raises ValueError naming the node and the resource whose quantity cannot be read; the table
        is unchanged then.
        """
        name = node.metadata.name
        try:
            amounts = [(r, resource_units(r, q)) for r, q in node.status.allocatable.items()]
        except ValueError as error:
            raise ValueError(f"node {name}: status.allocatable: {error}") from error
        slot = self.index.get(name)
        old = None if slot is None else self.nodes[slot]
        if slot is None:
            slot = self._take_slot()
            self.index[name] = slot
            self._alive[slot] = True
        self.nodes[slot] = node
        if old is None or old.status.allocatable != node.status.allocatable:
            self.allocatable_version += 1
            self._allocatable[slot] = 0
            self._resource_users.update(node.status.allocatable.keys())
            for resource, amount in amounts:
                column = self._resource_column(resource)  # first: it may replace the array
                self._allocatable[slot, column] = amount
            if old is not None:
                self._release_resources(old)
        changed = self._update_static(slot, old, node)
        if changed:
            self._note_change(slot)
        return slot, changed

    def delete(self, name: str) -> None:
        """Free a node's slot."""
        slot = self.index.pop(name)
        node, self.nodes[slot] = self.nodes[slot], None
        self._alive[slot] = False
        self._unschedulable[slot] = False
        self._taint_ids[slot] = 0
        self.allocatable_version += 1
        self._allocatable[slot] = 0
        self._used[slot] = 0
        self._scoring_used[slot] = 0
        for column in (*self._places.values(), *self._columns.values()):
            column.set(slot, None)
        self._free.append(slot)
        self._note_change(slot)
        if node is not None:
            self._release_labels(node)
            self._release_resources(node)

    def changed_since(self, version: int) -> Mask:
        """bool[N]: slots whose node appeared, went, or changed in anything but its resources after a `version`."""
        changed: Mask = np.zeros(self.count, dtype=np.bool_)
        changed[[slot for slot, at in self._changed.items() if at > version]] = True
        return changed

    def _note_change(self, slot: int) -> None:
        self.version += 1
        self._changed[slot] = self.version

    def charge(self, slot: int, amounts: tuple[tuple[int, int], ...], scoring: tuple[int, int], sign: int) -> None:
        """Add (sign 1) or release (sign -1) a pod's (column, amount) pairs on a node."""
        if len(self._charged) == REMEMBERED_CHARGES:
            self._forget_charges()
        self._charged.append(slot)
        for column, amount in (*amounts, (PODS, 1)):
            self._add(self._used, slot, column, sign * amount)
        for column, amount in enumerate(scoring):
            self._add(self._scoring_used, slot, column, sign * amount)

    @property
    def charges(self) -> int:
        """Number of the charges so far."""
        return self._charges_before + len(self._charged)

    def charged_since(self, charges: int) -> list[int] | None:
        """Slots whose `used` may have changed after so many charges; None where it may be any."""
        first = charges - self._charges_before
        return None if first < 0 else self._charged[first:]

    def _forget_charges(self) -> None:
        self._charges_before += len(self._charged) + 1  # one more: who has followed all of them has missed something
        self._charged.clear()

    def _add(self, table: Amount, slot: int, column: int, amount: int) -> None:
        """Change a sum; one beyond the limit is kept exactly apart, so that taking away again is exact too."""
        exact = self._beyond_limit[table is self._used]
        total = exact.pop((slot, column), None)
        if total is None:
            total = int(table[slot, column])
        total += amount
        if total > LIMIT:
            exact[slot, column] = total
        table[slot, column] = min(total, LIMIT)

    def clear_charges(self) -> None:
        """Begin anew with what the pods take; they are charged again by the caller."""
        self._forget_charges()
        self._used[:] = 0
        self._scoring_used[:] = 0
        for exact in self._beyond_limit:
            exact.clear()

    def _update_static(self, slot: int, old: Node | None, node: Node) -> bool:
        changed = old is None
        if old is None or old.metadata.labels != node.metadata.labels:
            changed = True
            self._label_users.update(node.metadata.labels.keys())
            if old is not None:
                self._release_labels(old)
            for key, column in (*self._places.items(), *self._columns.items()):
                column.set(slot, node.metadata.labels.get(key))
                if len(column.values) > 2 * len(self.index) + SPARE:
                    column.renumber(self.count)
        if old is None or old.spec.unschedulable != node.spec.unschedulable:
            changed = True
            self._unschedulable[slot] = node.spec.unschedulable
        if old is None or old.spec.taints != node.spec.taints:
            changed = True
            self._taint_ids[slot] = self._taint_number(node)
        if old is not None and old.status.declared_features != node.status.declared_features:
            changed = True
        return changed or (old is not None and node_settings(old) != node_settings(node))

    def _taint_number(self, node: Node) -> int:
        key = tuple((taint.key, taint.value, taint.effect) for taint in node.spec.taints)
        number = self._taint_numbers.get(key)
        if number is None:
            if len(self.taint_sets) > 2 * len(self.index) + SPARE:
                self._renumber_taints()
            number = self._taint_numbers[key] = len(self.taint_sets)
            self.taint_sets.append(tuple(node.spec.taints))
        return number

    def _renumber_taints(self) -> None:
        """Forget lists of taints that no node has any more: values such as time stamps never come back."""
        order = sorted({0, *np.unique(self._taint_ids[: self.count]).tolist()})
        table = np.zeros(len(self.taint_sets), dtype=np.int32)
        table[order] = np.arange(len(order))
        self._taint_ids[: self.count] = table[self._taint_ids[: self.count]]
        self.taint_sets = [self.taint_sets[old] for old in order]
        self._taint_numbers = {
            tuple((taint.key, taint.value, taint.effect) for taint in taints): number
            for number, taints in enumerate(self.taint_sets)
        }

    def _release_labels(self, node: Node) -> None:
        """A node no longer has these labels: drop columns that no other needs."""
        for key in node.metadata.labels:
            self._label_users[key] -= 1
            if not self._label_users[key]:
                del self._label_users[key]
                self._columns.pop(key, None)

    def _release_resources(self, node: Node) -> None:
        """A node no longer has these resources: drop columns that no other needs, once they are many."""
        for name in node.status.allocatable:
            self._resource_users[name] -= 1
            if not self._resource_users[name]:
                del self._resource_users[name]
        kept = [name for name in self.resources if name in FIXED_RESOURCES or name in self._resource_users]
        if len(self.resources) - len(kept) > UNUSED_RESOURCES:
            order = [self.resources[name] for name in kept]
            self.allocatable_version += 1
            self._allocatable = np.asfortranarray(self._allocatable[:, order])
            self._used = np.asfortranarray(self._used[:, order])
            self.resources = {name: column for column, name in enumerate(kept)}

    def _take_slot(self) -> int:
        if self._free:
            return self._free.pop()
        if self.count == self._capacity:
            self._resize(2 * self._capacity, self._allocatable.shape[1])
        self.nodes.append(None)
        self.count += 1
        return self.count - 1

    def _resize(self, capacity: int, columns: int) -> None:
        for name in ("_allocatable", "_used", "_scoring_used"):
            old: Amount = getattr(self, name)
            new = self._amounts(capacity, max(columns, 2) if name != "_scoring_used" else 2)
            new[: old.shape[0], : old.shape[1]] = old
            setattr(self, name, new)
        if capacity == self._capacity:
            return
        for name in ("_alive", "_unschedulable", "_taint_ids"):
            old_flags = getattr(self, name)
            flags = np.zeros(capacity, dtype=old_flags.dtype)
            flags[: len(old_flags)] = old_flags
            setattr(self, name, flags)
        for column in (*self._places.values(), *self._columns.values(), self._absent):
            column.grow(capacity)
        self._capacity = capacity
