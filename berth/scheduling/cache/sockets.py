"""Sockets of nodes and the pods with an interference class on them. Pods without a class are none of its business,
nor are those of schedulers whose profile chooses no sockets.

A pod's socket is what the SocketStatus of its node assigns, or what was decided since, or, until either is known, what
its annotation says that it was bound with: whoever plans next, after a restart as well, finds each pod where it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from berth.api.interference import InterferenceClass
from berth.kube.objects import CustomObject
from berth.scheduling.cache.kind_column import KindColumn
from berth.scheduling.cache.socket_reading import NodeSockets, Profile, read_sockets
from berth.scheduling.cache.workload_profiles import WorkloadProfiles
from berth.scheduling.interference.residents import EMPTY_KIND, UNKNOWN_LAYOUT, Kind, Resident
from berth.scheduling.interference.slowdown import Workload

_NOTHING: Final = NodeSockets((), UNKNOWN_LAYOUT, {}, {})
RESIDENTS: Final = 16_384
"""Residents that are kept to be shared by pods that are alike; of more it begins anew."""
Arrangement = tuple[tuple[InterferenceClass, ...], ...]
"""Classes of the pods on each socket of a pinned node by place, sorted, and last of those that are on none."""


@dataclass(slots=True)
class Seat:
    """A pod with a class on its node."""

    resident: Resident
    """the pod"""
    node: str
    """name of its node"""
    settled: int | None = None
    """number of its socket, None while it has none"""
    decided: bool = False
    """whether that was decided here, and no SocketStatus has shown it yet"""
    moves: dict[str, int] = field(default_factory=dict)
    """where it moves to once an assumed pod is known to be bound, by uid of that pod; the last one is planned with"""

    @property
    def socket(self) -> int | None:
        """Number of its socket, as whoever plans finds it: after the moves that are not certain yet."""
        return next(reversed(self.moves.values())) if self.moves else self.settled


class SocketTable:
    """Fed with SocketStatuses, WorkloadProfiles and the pods on nodes."""

    def __init__(self) -> None:
        """Start empty."""
        self.profiles = WorkloadProfiles()
        """What is known of workloads."""
        self.kinds: KindColumn[Kind] = KindColumn(self.kind_of, EMPTY_KIND)
        """Nodes that are alike for every newcomer."""
        self.arrangements: KindColumn[Arrangement] = KindColumn(self.arrangement_of, ((),))
        """Nodes with the same classes on their sockets."""
        self.present: Counter[Workload] = Counter()
        """Pods with a class that are on nodes, by what the slowdown model knows them by."""
        self.left_open: set[str] = set()
        """Names of nodes where pods were to move for one that is gone; others may have been planned with that."""
        self._nodes: dict[str, NodeSockets] = {}
        self._known = 0
        self._residents: dict[tuple[InterferenceClass | None, str, int], Resident] = {}
        self._residents_of = 0
        self._seats: dict[str, Seat] = {}
        self._by_node: dict[str, dict[str, Seat]] = {}
        self._changed: Callable[[str], None] | None = None

    @property
    def active(self) -> bool:
        """Whether the sockets of any node are known: without, nothing is asked of this table."""
        return self._known > 0

    @property
    def seated(self) -> int:
        """Number of pods with a class that are on nodes."""
        return len(self._seats)

    def profiled(self) -> list[Workload]:
        """Return the workloads that have a profile."""
        return [self._workload(profile, profile.interference_class) for profile in self.profiles.all()]

    def follow(self, changed: Callable[[str], None]) -> None:
        """Have `changed` told the nodes whose assignments may have changed from now on."""
        self._changed = changed

    # What is told

    def update_node(self, obj: CustomObject) -> str | None:
        """A SocketStatus was added or changed; returns what is wrong with it, None when it can be used."""
        name = obj.metadata.name
        try:
            sockets = read_sockets(obj)
        except ValueError as error:
            self.delete_node(name)
            return str(error)
        before = self._nodes.get(name)
        if before == sockets:
            return None
        self._nodes[name] = sockets
        self._known += bool(sockets.numbers) - (before is not None and bool(before.numbers))
        for uid, seat in self._by_node.get(name, {}).items():
            self._follow(seat, sockets, uid)
        self._touch(name)
        return None

    def delete_node(self, name: str) -> None:
        """A SocketStatus was deleted."""
        sockets = self._nodes.pop(name, None)
        if sockets is not None:
            self._known -= bool(sockets.numbers)
            self._touch(name)

    def touch(self, node: str) -> None:
        """A node appeared, or its slot in the arrays became another one."""
        self.kinds.touch(node)
        self.arrangements.touch(node)

    def workload(self, stated: InterferenceClass | None, owner: str) -> Workload | None:
        """Return what the model knows a pod by; None for one without class.

        Args:
            stated: class that its labels state.
            owner: the workload that it is of, as `berth.kube.owners` names it.
        """
        profile = self.profiles.about(owner) if owner else None
        if profile is None:
            return None if stated is None else Workload("", stated)
        return self._workload(profile, stated or profile.interference_class)

    def resident(self, stated: InterferenceClass | None, owner: str, size: int) -> Resident | None:
        """Return what a pod is for others on its socket, the same object for pods that are alike; None without class.

        Kinds of nodes are compared by these for every pod: what is the same object is not looked into.

        Args:
            stated: class that its labels state.
            owner: the workload that it is of.
            size: thousandths of a CPU that it requests.
        """
        if self._residents_of != self.profiles.version or len(self._residents) >= RESIDENTS:
            self._residents_of, self._residents = self.profiles.version, {}
        found = self._residents.get((stated, owner, size))
        if found is None:
            workload = self.workload(stated, owner)
            if workload is not None:
                found = self._residents[stated, owner, size] = Resident(workload, size)
        return found

    def add(
        self, uid: str, node: str, resident: Resident, *, before: Seat | None = None, bound_with: int | None = None
    ) -> None:
        """A pod with a class occupies a node.

        Args:
            uid: uid of the pod.
            node: name of the node.
            resident: the pod.
            before: where it was until now; its socket there counts if that is the same node.
            bound_with: its socket as its annotation tells; the node's SocketStatus knows better.
        """
        seat = Seat(resident, node, bound_with)
        if before is not None and before.node == node and before.socket is not None:
            seat.settled, seat.decided, seat.moves = before.settled, before.decided, dict(before.moves)
        sockets = self._nodes.get(node)
        if sockets is not None:
            self._follow(seat, sockets, uid)
        there = self._by_node.setdefault(node, {})
        one_more = uid not in there
        self._seats[uid] = there[uid] = seat
        self._count(resident.workload, 1)
        self._touch(node, came=resident if one_more else None)

    def restate(self, uid: str, resident: Resident) -> bool:
        """A pod with a class counts as another one where it is; False for one that had none."""
        seat = self._seats.get(uid)
        if seat is None:
            return False
        self._count(seat.resident.workload, -1)
        seat.resident = resident
        self._count(resident.workload, 1)
        self._touch(seat.node)
        return True

    def remove(self, uid: str) -> None:
        """A pod no longer occupies its node, or has no class any more; those that were to move for it stay."""
        seat = self._seats.pop(uid, None)
        if seat is None:
            return
        there = self._by_node[seat.node]
        del there[uid]
        self._call_off(there, uid)
        if not there:
            del self._by_node[seat.node]
        self._count(seat.resident.workload, -1)
        self._touch(seat.node)

    def assign(self, uid: str, socket: int | None) -> None:
        """A socket was chosen for a pod on its node."""
        seat = self._seats[uid]
        if seat.socket != socket:
            seat.settled, seat.decided, seat.moves = socket, True, {}
            self._moved(seat.node)

    def move(self, uid: str, socket: int, *, newcomer: str) -> None:
        """A pod is to be on another socket once a newcomer to its node, which is assumed there, is bound."""
        seat = self._seats[uid]
        seat.moves.pop(newcomer, None)
        seat.moves[newcomer] = socket
        self._moved(seat.node)

    def call_off(self, newcomer: str) -> None:
        """Have nobody move for a pod any more that is on a node."""
        seat = self._seats[newcomer]
        self._call_off(self._by_node[seat.node], newcomer)
        self._moved(seat.node)

    def confirm(self, uid: str) -> None:
        """A pod is known to be bound: its socket counts from now on, and those of pods that moved for it."""
        seat = self._seats.get(uid)
        if seat is None:
            return
        for other in self._by_node[seat.node].values():
            if uid in other.moves:
                newcomers = list(other.moves)
                other.settled, other.decided = other.moves[uid], True
                for newcomer in newcomers[: newcomers.index(uid) + 1]:
                    del other.moves[newcomer]  # moves before it are overtaken
        self._moved(seat.node)

    def copies(self, node: str) -> Mapping[str, Seat]:
        """Return the pods with a class on a node by uid, as they are now."""
        return {uid: replace(seat, moves=dict(seat.moves)) for uid, seat in self.seats(node).items()}

    def put_back(self, copies: Mapping[str, Seat]) -> None:
        """Have pods of a node where they were when they were copied."""
        for uid, copy in copies.items():
            seat = self._seats.get(uid)
            if seat is not None and seat.node == copy.node:
                seat.settled, seat.decided, seat.moves = copy.settled, copy.decided, dict(copy.moves)
                self.left_open.discard(seat.node)
                self._moved(seat.node)

    # What is asked

    def sockets(self, node: str) -> NodeSockets:
        """Return what the SocketStatus of a node says; nothing without one."""
        return self._nodes.get(node, _NOTHING)

    def nodes(self) -> list[str]:
        """Return the names of all that have a SocketStatus."""
        return list(self._nodes)

    def seat(self, uid: str) -> Seat | None:
        """Return where a pod is; None for one without class, or without node."""
        return self._seats.get(uid)

    def seats(self, node: str) -> Mapping[str, Seat]:
        """Return the pods with a class on a node by uid."""
        return self._by_node.get(node, {})

    def crowding(self, node: str) -> list[str]:
        """Return the uids of pods on sockets with more than they hold, those that came last first."""
        left = self._left(node)
        full = {socket for socket, room in left.items() if room < 0}
        return [uid for uid, seat in reversed(list(self.seats(node).items())) if seat.socket in full]

    def left_out(self, node: str) -> list[str]:
        """Return the uids of pods that have no socket where pods are pinned, of those for which one has room."""
        if not self.sockets(node).layout.pinned:
            return []
        waiting = {uid: seat.resident.size for uid, seat in self.seats(node).items() if seat.socket is None}
        room = max(self._left(node).values(), default=-1) if waiting else -1
        return [uid for uid, size in waiting.items() if size <= room]

    def _left(self, node: str) -> dict[int, int]:
        """Thousandths of a CPU that are left of each socket of a node, below 0 where pods have more than it holds."""
        sockets = self.sockets(node)
        left = dict(zip(sockets.numbers, sockets.layout.capacities, strict=True))
        for seat in self.seats(node).values():
            if seat.socket in left:
                left[seat.socket] -= seat.resident.size
        return left

    def kind_of(self, node: str) -> Kind:
        """Return what decides how a newcomer would get on there."""
        residents = sorted(seat.resident for seat in self.seats(node).values())
        return Kind(self.sockets(node).layout, tuple(residents))

    def arrangement_of(self, node: str) -> Arrangement:
        """Return the classes on each socket of a node, and of pods that have none: where nobody pins, that is all."""
        sockets = self.sockets(node)
        numbers = sockets.numbers if sockets.layout.pinned else ()
        groups: dict[int | None, list[InterferenceClass]] = {number: [] for number in (*numbers, None)}
        for seat in self.seats(node).values():
            group = groups[seat.socket if seat.socket in groups else None]
            group.append(seat.resident.workload.interference_class)
        return tuple(tuple(sorted(group)) for group in groups.values())

    def _call_off(self, there: Mapping[str, Seat], newcomer: str) -> None:
        for other in there.values():
            if other.moves.pop(newcomer, None) is not None:
                self.left_open.add(other.node)

    def _workload(self, profile: Profile, letter: InterferenceClass) -> Workload:
        return Workload(profile.name, letter, self.profiles.revision(profile.name))

    def _count(self, workload: Workload, change: int) -> None:
        self.present[workload] += change
        if not self.present[workload]:
            del self.present[workload]

    @staticmethod
    def _follow(seat: Seat, sockets: NodeSockets, uid: str) -> None:
        """Have a pod where the SocketStatus assigns it, unless something else was decided since."""
        assigned = sockets.assignments.get(uid)
        if assigned not in sockets.numbers:
            assigned = None
        if seat.moves:
            seat.moves = {uid: socket for uid, socket in seat.moves.items() if socket in sockets.numbers}
        if assigned == seat.settled:
            seat.decided = False
        elif (assigned is not None and not seat.decided) or (sockets.numbers and seat.settled not in sockets.numbers):
            seat.settled, seat.decided = assigned, False

    def _touch(self, node: str, came: Resident | None = None) -> None:
        """Other pods are on a node, or its sockets are others; `came` is the pod where it is one more."""
        self.kinds.touch(node, came)
        self._moved(node)

    def _moved(self, node: str) -> None:
        """Pods of a node are on other sockets, which is the same to newcomers: they judge it by its best pairing."""
        self.arrangements.touch(node)
        if self._changed is not None:
            self._changed(node)
