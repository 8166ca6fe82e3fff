"""What pods with an interference class cost on nodes, and which socket each of them gets.

Asked by plugins for one pod at a time, and by the cache whenever a pod is assumed on a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from berth.api.interference import InterferenceClass
from berth.scheduling.cache.slot_values import Floats, SlotValues
from berth.scheduling.interference.by_class import CLASSES
from berth.scheduling.interference.closeness import closeness_of
from berth.scheduling.interference.counted_pairings import CountedPairings
from berth.scheduling.interference.counted_seats import Guest, step_for
from berth.scheduling.interference.least_slowdown import LeastSlowdown
from berth.scheduling.interference.node_costs import NodeCosts
from berth.scheduling.interference.pairing import choose_socket
from berth.scheduling.interference.pod_sets import Socket, sockets_of
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.interference.residents import Layout, Resident
from berth.scheduling.interference.seats_by_chance import room_for, together
from berth.scheduling.interference.slowdown import PRICE, Workload

if TYPE_CHECKING:
    from berth.scheduling.cache.columns import Ids
    from berth.scheduling.cache.socket_reading import NodeSockets
    from berth.scheduling.cache.sockets import Seat, SocketTable

LIKELY: Final = 64
"""Workloads that may come next, those that are there as often as they are, of about so many in all."""
FEW: Final = 8
"""Pods below which who is there says nothing of who will come."""
ABOUT: Final = 0.1
"""Share of the workloads that may come next of which others may be expected before all is worked out anew."""
_EQUAL: Final = 1e-9
"""Sums differ in their last places by the order of their parts."""
_BY_RULES: Final = (InterferencePolicy.GREEDY, InterferencePolicy.SPARING, InterferencePolicy.SOCKET_BASED)


class Outlook(NamedTuple):
    """What a pod may expect where it is."""

    socket: int | None
    """number of its socket, None where it has none"""
    suffered: float
    """its expected slowdown"""
    caused: float
    """by how much others become slower because of it, summed up"""
    interference_class: InterferenceClass
    """its class, by its label or by a WorkloadProfile"""


class SocketChoice:
    """Judges nodes and chooses sockets, by what a table of sockets and pods says now."""

    def __init__(self, sockets: SocketTable) -> None:
        """Share the table with whoever feeds it."""
        self._sockets = sockets
        self._costs: NodeCosts | None = None
        self._judge = LeastSlowdown(sockets.profiles.model)
        self._seats_by_class: CountedPairings | None = None
        self._made_for = 0, 0
        self._numbering = 0
        self._worth = SlotValues(sockets.kinds)
        self._worth_by: tuple[NodeCosts, Callable[[Floats], Floats]] | None = None

    def added_harm(
        self, newcomer: Resident, index: Mapping[str, int], size: int, wanted: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.float64], Ids]:
        """Expected harm that a newcomer adds, its own and of others: float64[K] by kind of node, and int32[N], kinds.

        Args:
            newcomer: the pod.
            index: slot of every live node by name.
            size: number of slots.
            wanted: bool[N], nodes that matter; kinds of others alone may have any value.
        """
        column, costs = self._sockets.kinds, self._current()
        ids = column.ids(index, size)
        if column.numbering != self._numbering:
            self._numbering = column.numbering
            costs.renumbered()
        return costs.added(newcomer, ids, column.kinds, wanted, column.used), ids

    def harm_worth(
        self,
        newcomer: Resident,
        index: Mapping[str, int],
        size: int,
        wanted: npt.NDArray[np.bool_],
        worth: Callable[[Floats], Floats],
    ) -> Floats:
        """float64[N], what the harm is worth that a newcomer adds; nodes that are not wanted may have any value.

        It is kept, and changes when it is asked for again: `worth` has to be the same each time.
        """
        column, costs = self._sockets.kinds, self._current()
        if self._worth_by != (costs, worth):
            self._worth_by = costs, worth
            self._worth.clear()

        def find(kind: int) -> float:
            return worth(costs.added_to(newcomer, kind, column.kinds)).item()

        found = self._worth.get(newcomer, column.ids(index, size), wanted, find)
        if found is None:
            harm, ids = self.added_harm(newcomer, index, size, wanted)
            found = worth(harm).take(ids) if costs.guessed else self._worth.put(newcomer, worth(harm), ids)
        return found

    def costs(self) -> NodeCosts:
        """Return what pods cost on a node, by what profiles say now."""
        return self._current()

    def choose(self, uid: str, policy: InterferencePolicy) -> None:
        """Give a pod on a node a socket, and others there another where that is worth their moving: once it is bound.

        Nothing happens to pods without class, and on nodes whose sockets are not known or whose pods nobody pins.

        Args:
            uid: uid of the pod.
            policy: the choice of its profile, not Off.
        """
        seat = self._sockets.seat(uid)
        if seat is None:
            return
        node = self._sockets.sockets(seat.node)
        if not node.layout.pinned:
            return
        if policy in _BY_RULES:
            place = self._by_rules(seat, node.layout.capacities, _places(node))
            self._sockets.assign(uid, None if place is None else node.numbers[place])
            return
        empty = self._empty(seat, node)
        if empty is not None:
            self._sockets.assign(uid, empty)
            return
        self._current()
        for moved, place in self._by_harm(uid, seat, node.layout, _places(node)).items():
            if moved == uid:
                self._sockets.assign(uid, node.numbers[place])
            else:
                self._sockets.move(moved, node.numbers[place], newcomer=uid)

    def seat_together(self, uids: Iterable[str], policy: InterferencePolicy) -> None:
        """Choose anew for pods of one plan on nodes where one of them has no socket, the largest first: none is bound.

        Where nobody moves for another, a pod finds none large enough that would have had one before the others.

        Args:
            uids: uids of the pods.
            policy: the choice of their profile.
        """
        by_node: dict[str, dict[str, Seat]] = {}
        for uid in uids if policy in _BY_RULES else ():
            seat = self._sockets.seat(uid)
            if seat is not None and self._sockets.sockets(seat.node).layout.pinned:
                by_node.setdefault(seat.node, {})[uid] = seat
        for seats in by_node.values():
            before = {uid: seat.socket for uid, seat in seats.items()}
            if None not in before.values():
                continue
            for uid in seats:
                self._sockets.assign(uid, None)
            for uid in sorted(seats, key=lambda uid: -seats[uid].resident.size):
                self.choose(uid, policy)
            left_out = sum(seat.socket is None for seat in seats.values())
            if left_out >= list(before.values()).count(None):
                for uid, socket in before.items():
                    self._sockets.assign(uid, socket)

    def outlook(self, uid: str) -> Outlook | None:
        """Return what a pod may expect on its node; None without class or node, and where no sockets are known."""
        seat = self._sockets.seat(uid)
        if seat is None or not self._sockets.active:
            return None
        self._current()
        node, model, own = self._sockets.sockets(seat.node), self._judge.model, seat.resident.workload
        others = [(other, each) for other, each in self._sockets.seats(seat.node).items() if other != uid]
        # Where nobody pins them, two meet by chance; nobody knows where one without socket is.
        room = room_for([seat.resident.size, *(each.resident.size for _, each in others)], node.layout.capacities)
        pods, sockets = 1 + len(others), max(1, len(node.numbers))
        by_chance = together(pods, min(room, pods), sockets)
        close, suffered, caused = self._close(seat, node), 1.0, 0.0
        for _, other in others:
            pinned = node.layout.pinned and None not in (seat.socket, other.socket)
            share = close * (seat.socket == other.socket) if pinned else by_chance
            suffered += share * model.excess(own, other.resident.workload)
            caused += share * model.excess(other.resident.workload, own)
        socket = seat.socket if node.layout.pinned else None
        return Outlook(socket, suffered, caused, own.interference_class)

    def _close(self, seat: Seat, node: NodeSockets) -> float:
        """What the excess of a pair counts on the socket of a pod."""
        layout = node.layout
        if not (layout.caches or layout.cores) or seat.socket not in node.numbers:
            return 1.0
        place = node.numbers.index(seat.socket)
        sizes = [each.resident.size for each in self._sockets.seats(seat.node).values() if each.socket == seat.socket]
        return closeness_of(sizes, *sockets_of(layout.capacities, layout.caches, layout.cores)[place])

    def _by_rules(self, seat: Seat, capacities: tuple[int, ...], places: Mapping[int | None, int]) -> int | None:
        """Place of the socket by the pairing rules, of those with room; None without any."""
        classes: dict[int, list[InterferenceClass]] = {place: [] for place in places.values()}
        left = list(capacities)
        for other in self._sockets.seats(seat.node).values():
            place = None if other is seat else places.get(other.socket)
            if place is not None:
                classes[place].append(other.resident.workload.interference_class)
                left[place] -= other.resident.size
        room = {place: there for place, there in classes.items() if seat.resident.size <= left[place]}
        found = choose_socket(seat.resident.workload.interference_class, room)
        return None if found is None else found.socket

    def _empty(self, seat: Seat, node: NodeSockets) -> int | None:
        """Number of the first empty socket with room for a pod; None without, and where others have no socket.

        It is the best at once: what it might be worth to another pod was so before, and nobody suffers.
        """
        taken = {
            other.socket if other.moves else other.settled
            for other in self._sockets.seats(seat.node).values()
            if other is not seat
        }
        free = [place for place, number in enumerate(node.numbers) if number not in taken]
        if len(free) + len(taken) > len(node.numbers):
            return None
        return next(
            (node.numbers[place] for place in free if seat.resident.size <= node.layout.capacities[place]), None
        )

    def _by_harm(self, uid: str, seat: Seat, layout: Layout, places: Mapping[int | None, int]) -> dict[str, int]:
        """Place of the socket by uid, of the pod and of others that move."""
        largest = max(layout.capacities)
        there = {  # one too large for any socket has none, and keeps nobody from moving
            other: each
            for other, each in self._sockets.seats(seat.node).items()
            if each.resident.size <= largest or each.socket in places
        }
        return self._among(uid, seat, there, layout, places) if uid in there else {}

    def _among(
        self, uid: str, seat: Seat, there: Mapping[str, Seat], pinned: Layout, places: Mapping[int | None, int]
    ) -> dict[str, int]:
        """The same where these pods are there."""
        layout = pinned.for_pods([each.resident.size for each in there.values()] if pinned.cores else ())
        by_class = self._by_class(uid, there, layout, places)
        if by_class is not None:
            return by_class
        now = {other: places.get(each.socket) for other, each in there.items()}
        now[uid] = None
        staying, harm = self._staying(seat.resident, there, now, layout)
        if staying is not None and list(now.values()).count(None) == 1:
            now[uid] = staying
            if harm <= PRICE or self._settled(there, now, layout):
                return {uid: staying}  # nothing can be won that is worth the price of a pod that moves
            now[uid] = None
        residents = [each.resident for each in there.values()]
        pods, sizes = [each.workload for each in residents], [each.size for each in residents]
        capacities, _, caches, cores = layout
        found = self._judge.seats(pods, sizes, capacities, list(now.values()), caches=caches, cores=cores)
        if found is None:
            seated = {other: each for other, each in there.items() if other == uid or now[other] is not None}
            if len(seated) < len(there):  # one that finds no socket wherever all others go keeps nobody from moving
                return self._among(uid, seat, seated, pinned, places)
            return {} if staying is None else {uid: staying}
        return {other: place for (other, before), place in zip(now.items(), found, strict=True) if place != before}

    def _by_class(
        self, uid: str, there: Mapping[str, Seat], layout: Layout, places: Mapping[int | None, int]
    ) -> dict[str, int] | None:
        """The same of pods that are known by their class alone, where that is quick; None otherwise."""
        if layout.caches or layout.cores:
            return None
        guests: dict[str, Guest] = {}
        for other, each in there.items():
            pod, place = CLASSES.get(each.resident.workload), places.get(each.socket)
            if pod is None or (place is None and other != uid):
                return None
            guests[other] = Guest(pod, each.resident.size, -1 if place is None else place)
        newcomer = guests.pop(uid)
        if self._seats_by_class is None:
            self._seats_by_class = CountedPairings(self._judge.group_costs(list(CLASSES), 1, more=False))
        step = step_for(self._seats_by_class, newcomer.pod, newcomer.size, list(guests.values()), layout.capacities)
        if step is None:
            return None
        moved = {} if step.moved is None else {list(guests)[step.moved]: step.to}
        return {uid: step.place, **moved}

    def _staying(
        self,
        newcomer: Resident,
        there: Mapping[str, Seat],
        now: Mapping[str, int | None],
        layout: Layout,
    ) -> tuple[int | None, float]:
        """Place where a pod adds the least harm while all others stay, and the harm to all then; None without room.

        An empty socket is the best at once: what it might be worth to another pod was so before. The harm is 0 then.
        """
        groups = _groups(there, now, layout)
        for place, group in enumerate(groups):
            if not group and newcomer.size <= layout.capacities[place]:
                return place, 0.0
        before, least, best = 0.0, inf, None
        sockets = sockets_of(layout.capacities, layout.caches, layout.cores)
        for place, (group, socket) in enumerate(zip(groups, sockets, strict=True)):
            harm = self._harm(group, socket)
            before += harm
            if newcomer.size + sum(each.size for each in group) <= socket.capacity:
                added = self._harm([*group, newcomer], socket) - harm
                if added < least - _EQUAL:
                    least, best = added, place
        return best, before + least

    def _settled(self, there: Mapping[str, Seat], now: Mapping[str, int | None], layout: Layout) -> bool:
        groups = [[each.workload for each in group] for group in _groups(there, now, layout)]
        return self._judge.settled(groups, caches=layout.caches or layout.cores)

    def _harm(self, group: Sequence[Resident], socket: Socket) -> float:
        if len(group) < 2:
            return 0.0
        together = closeness_of([each.size for each in group], *socket)
        return self._judge.on_socket([each.workload for each in group], room=False, together=together)

    def _current(self) -> NodeCosts:
        """Costs by what profiles say. Who is likely to come is asked again when about all of them have changed.

        What changed of a few workloads is looked at anew by itself: they are others for the model.
        """
        profiles, pods = self._sockets.profiles, max(self._sockets.seated, FEW)
        known, counted = self._made_for
        costs = None if profiles.version >= known else self._costs
        if costs is None or not counted / 2 <= pods <= 2 * counted:
            expected = likely(self._sockets.present, self._sockets.profiled())
            self._made_for = profiles.version + max(1, len(profiles)) if costs is None else known, pods
            if costs is None or not about_the_same(expected, self._judge.likely):
                self._judge = LeastSlowdown(profiles.model, expected)
                costs = self._costs = NodeCosts(self._judge)
        return costs


def _places(node: NodeSockets) -> dict[int | None, int]:
    return {number: place for place, number in enumerate(node.numbers)}


def _groups(there: Mapping[str, Seat], now: Mapping[str, int | None], layout: Layout) -> list[list[Resident]]:
    """Return who is on each socket, by place."""
    groups: list[list[Resident]] = [[] for _ in layout.capacities]
    for other, at in now.items():
        if at is not None:
            groups[at].append(there[other].resident)
    return groups


def likely(present: Counter[Workload], profiled: Sequence[Workload]) -> list[Workload]:
    """Return workloads that may come next, 3 * `LIKELY` at most.

    Those on nodes, as often as they are there, and beside them each that has a profile once; without any profile one
    of each class. Of many those that are there most often count, and profiles in equal steps by name.
    """
    scale = min(1.0, LIKELY / max(1, present.total()))
    found = list(profiled[:: -(-len(profiled) // LIKELY) or 1]) or [Workload("", each) for each in InterferenceClass]
    for workload, count in nsmallest(LIKELY, present.items(), key=lambda item: (-item[1], item[0])):
        found += [workload] * max(1, round(scale * count))
    return found


def about_the_same(one: Sequence[Workload], other: Sequence[Workload]) -> bool:
    """Return whether workloads have about the same shares of both: what they cost others is known already then."""
    first, second = Counter(one), Counter(other)
    differ = sum(abs(first[each] / len(one) - second[each] / len(other)) for each in first.keys() | second.keys())
    return differ <= 2 * ABOUT
