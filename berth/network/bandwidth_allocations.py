"""Bandwidth that the placed dependency edges of all AppGroups take from nodes, and between nodes and places.

Every decision waits for these sums while pods of a group move, so they are kept by called workload. Callers take what
they take whoever else calls: where one has moved, only what it takes is put right. An endpoint changes where others'
calls go, and what each takes: where one has moved, calls to its workload are summed up anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeVar

from berth.network.admitted import Admitted, Callers, stated
from berth.network.bandwidth_split import Calls, Demand, node_usage, pair_usage, place_usage
from berth.network.costs import Place
from berth.network.edges import TO_ALL, Routes, endpoints_of
from berth.network.group_sums import SumOverGroups, add
from berth.network.groups import Group, GroupKey
from berth.network.members import GroupMembers
from berth.network.routing import Routing
from berth.network.workload_places import WorkloadPlaces

Found = TypeVar("Found")
RECOUNTED_PODS = 200
"""Pods of groups whose calls are routed otherwise that one refresh counts anew, of one group at least: a tenant may
have thousands of groups, and edit a Service all day."""

NodePair = tuple[str, str]
"""Two different nodes, in alphabetical order."""

Places = tuple[Place, Place]
"""Where two different nodes are, in order; both may be in one place."""


class GroupBandwidth:
    """What the calls of one AppGroup take, as of the last :meth:`update`."""

    def __init__(self, key: GroupKey, members: GroupMembers, routes: Routes) -> None:
        """Count nothing yet; `members` says where pods are, `routes` whom they call."""
        self._key, self._members, self._routes = key, members, routes
        self._usage: dict[str, Counter[str]] = {}
        """bit/s by node, by called workload"""
        self._callers: dict[str, Mapping[Admitted | None, Mapping[str, int]]] = {}
        """pods that are charged, by workload, what they were admitted with, and node"""
        self._near: set[str] = set()
        """called workloads whose Service keeps some calls near"""
        self._by_place: dict[str, Counter[Places]] | None = None
        """bit/s between places by called workload; None until somebody asks"""

    @property
    def calls(self) -> bool:
        """Whether placed pods make calls with bandwidth."""
        return bool(self._callers)

    @property
    def routed(self) -> bool:
        """Whether a Service keeps some of them near."""
        return bool(self._near)

    @property
    def nodes(self) -> Mapping[str, int]:
        """bit/s taken from each node's budget."""
        total: Counter[str] = Counter()
        for usage in self._usage.values():
            total.update(usage)
        return total

    def all_ends(self, group: Group | None) -> set[str]:
        """Workloads whose pods call with bandwidth, or are called."""
        callers = self._members.callers(self._key)
        ends: set[str] = set()
        for workload in callers:
            for admitted in callers.of(workload):
                if needs := _needs(group, workload, admitted):
                    ends.update((workload, *dict(needs)))
        return ends

    def update(self, group: Group | None, moved: Iterable[str]) -> Counter[str]:
        """Count anew after pods of these workloads moved.

        Returns what is taken of each node more than before, or less.
        """
        callers, places = self._members.callers(self._key), self._members.places(self._key)
        anew = set(moved)
        changes: defaultdict[str, defaultdict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        for workload in anew:
            for dependency, amount, nodes in self._recount(group, workload, callers):
                if dependency not in anew:
                    changes[dependency][amount].update(nodes)
        total: Counter[str] = Counter()
        for dependency, demand in changes.items():
            taken = self._taken(dependency, demand, places)
            add(self._usage.setdefault(dependency, Counter()), taken)
            if not self._usage[dependency]:
                del self._usage[dependency]
            total.update(taken)
            if self._by_place is not None:
                add(self._by_place.setdefault(dependency, Counter()), self._between(dependency, demand, places))
        for dependency in anew:
            total.subtract(self._usage.pop(dependency, {}))
            self._near.discard(dependency)
            everybody = demand_towards(group, callers, dependency)
            if usage := self._taken(dependency, everybody, places):
                self._usage[dependency] = usage
                total.update(usage)
            if self._by_place is not None:
                self._by_place.pop(dependency, None)
                if between := self._between(dependency, everybody, places):
                    self._by_place[dependency] = between
        return total

    def pairs(self, group: Group | None) -> Counter[NodePair]:
        """bit/s between two nodes, summed up now."""
        callers, places = self._members.callers(self._key), self._members.places(self._key)
        total: Counter[NodePair] = Counter()
        for dependency in self.all_ends(group):
            calls = self._calls(dependency, demand_towards(group, callers, dependency), places)
            total.update(pair_usage(calls.bundles(self._routes.zone)))
        return total

    def places(self, group: Group | None) -> Counter[Places]:
        """bit/s between two places; followed from the first time on that somebody asks."""
        if self._by_place is None:
            callers, places = self._members.callers(self._key), self._members.places(self._key)
            found = (
                (end, self._between(end, demand_towards(group, callers, end), places)) for end in self.all_ends(group)
            )
            self._by_place = {dependency: usage for dependency, usage in found if usage}
        total: Counter[Places] = Counter()
        for usage in self._by_place.values():
            total.update(usage)
        return total

    def forget_places(self) -> None:
        """Nodes are in other places than they were."""
        self._by_place = None

    def _between(self, dependency: str, demand: Demand[str], places: WorkloadPlaces) -> Counter[Places]:
        if not demand:
            return Counter()
        return place_usage(self._calls(dependency, demand, places).bundles(self._routes.zone), self._routes.place)

    def _recount(
        self, group: Group | None, workload: str, callers: Callers
    ) -> Iterator[tuple[str, int, Mapping[str, int]]]:
        """Dependency, bit/s towards it, and by node how many more pods of a workload need that, or fewer."""
        before, now = self._callers.pop(workload, {}), callers.of(workload)
        counted: dict[Admitted | None, Mapping[str, int]] = {}
        for admitted in before.keys() | now.keys():
            needs = [each for each in _needs(group, workload, admitted) if each[0] != workload]
            if not needs:
                continue
            old, new = before.get(admitted, {}), now.get(admitted, {})
            if new:
                counted[admitted] = dict(new)
            changed = {node: new.get(node, 0) - old.get(node, 0) for node, _ in old.items() ^ new.items()}
            for dependency, amount in needs if changed else ():
                yield dependency, amount, changed
        if counted:
            self._callers[workload] = counted

    def _calls(self, dependency: str, demand: Demand[str], places: WorkloadPlaces) -> Calls[str]:
        routing = self._routes.routing(self._key, dependency)
        endpoints = endpoints_of(dependency, routing, places, self._routes.zone)
        return Calls(routing, demand, endpoints, places.replicas(dependency))

    def _taken(self, dependency: str, demand: Demand[str], places: WorkloadPlaces) -> Counter[str]:
        if not demand:
            return Counter()
        calls = self._calls(dependency, demand, places)
        if calls.routing is not Routing.ALL:
            self._near.add(dependency)
        return node_usage(calls.bundles(self._routes.zone))


def demand_towards(group: Group | None, callers: Callers, dependency: str) -> Demand[str]:
    """Demand of placed callers of a workload: what they were admitted with, whatever the AppGroup still states."""
    demand: dict[int, Counter[str]] = {}
    for _, amount, nodes in callers.towards(group, dependency):
        demand.setdefault(amount, Counter()).update(nodes)
    return demand


def _needs(group: Group | None, workload: str, admitted: Admitted | None) -> Admitted:
    return stated(group, workload) if admitted is None else admitted


class BandwidthAllocations:
    """What the calls of all AppGroups take; of those groups alone that changed anything is worked out."""

    def __init__(self, members: GroupMembers, routes: Routes = TO_ALL) -> None:
        """Start empty; `members` says where pods are, `routes` whom they call."""
        # Integers: what a group gives back is exactly what it took, however large.
        self.nodes: Counter[str] = Counter()
        """bit/s taken from each node's budget."""
        self._pairs = SumOverGroups(self._count_pairs)
        self._places = SumOverGroups(self._count_places)
        self._place_of: dict[str, Place] = {}
        self._zone_of: dict[str, str | None] = {}
        self._members = members
        zone, place = _remembered(routes.zone, self._zone_of), _remembered(routes.place, self._place_of)
        self._routes = Routes(routes.routing, zone, place)
        self._place, self._zone = routes.place, routes.zone
        self._groups: Mapping[GroupKey, Group] = {}
        self._books: dict[GroupKey, GroupBandwidth] = {}
        self._by_namespace: defaultdict[str, set[GroupKey]] = defaultdict(set)
        self._routed: set[GroupKey] = set()
        self._changed: set[GroupKey] = set()
        self._rerouted: dict[GroupKey, None] = {}
        """those of which nothing else has changed, the longest ago first"""
        self._moved: defaultdict[GroupKey, set[str]] = defaultdict(set)

    def mark(self, key: GroupKey) -> None:
        """Note that dependencies of a group changed."""
        self._changed.add(key)

    def mark_pod(self, key: GroupKey, workload: str) -> None:
        """Note that a pod came, went or moved, or that calls to its workload may be routed otherwise."""
        self._moved[key].add(workload)

    def mark_namespace(self, namespace: str) -> None:
        """Note that Services of a namespace route calls otherwise; large numbers of groups are counted bit by bit."""
        self._rerouted.update(dict.fromkeys(self._by_namespace.get(namespace, ())))

    def mark_zones(self) -> None:
        """Note that nodes may be in other places."""
        if any(self._zone(node) != zone for node, zone in self._zone_of.items()):
            self._zone_of.clear()
            self._rerouted.update(dict.fromkeys(self._routed))
        if any(self._place(node) != place for node, place in self._place_of.items()):
            self._place_of.clear()
            for key, book in self._books.items():
                book.forget_places()
                self._places.note(key, calls=True)

    def refresh(self, groups: Mapping[GroupKey, Group], *, rerouted: bool = True) -> None:
        """Recompute what changed since the last call.

        Groups whose calls alone are routed otherwise are counted some at a time, with `rerouted`; until then they take
        what they took.
        """
        self._groups = groups
        due = {*self._changed, *self._moved}
        anew = {*self._changed, *self._take_rerouted(due, RECOUNTED_PODS if rerouted else 0)}
        for key in due | anew:
            group, moved = groups.get(key), self._moved.get(key, set())
            book = self._books.pop(key, None) or GroupBandwidth(key, self._members, self._routes)
            if key in anew:
                add(self.nodes, {node: -amount for node, amount in book.nodes.items()})
                book = GroupBandwidth(key, self._members, self._routes)
                moved = book.all_ends(group)
            add(self.nodes, book.update(group, moved))
            self._keep(key, book)
            self._pairs.note(key, calls=book.calls)
            self._places.note(key, calls=book.calls)
        self._changed.clear()
        self._moved.clear()

    @property
    def behind(self) -> bool:
        """Whether groups whose calls are routed otherwise are yet to be counted."""
        return bool(self._rerouted)

    def _take_rerouted(self, due: Collection[GroupKey], most: int) -> set[GroupKey]:
        """Groups whose calls are routed otherwise: all that are `due` anyway, and others of so many pods."""
        taken = {key for key in due if key in self._rerouted}
        for key in taken:
            del self._rerouted[key]
        pods = 0
        while self._rerouted and pods < most:
            key = next(iter(self._rerouted))
            del self._rerouted[key]
            taken.add(key)
            pods += len(self._members.of(key))
        return taken

    def _keep(self, key: GroupKey, book: GroupBandwidth) -> None:
        """Keep what was counted of a group, and how a change finds it; nothing of one without calls."""
        if book.calls:
            self._books[key] = book
            self._by_namespace[key.namespace].add(key)
        elif (others := self._by_namespace.get(key.namespace)) is not None:
            others.discard(key)
            if not others:
                del self._by_namespace[key.namespace]
        if book.calls and book.routed:
            self._routed.add(key)
        else:
            self._routed.discard(key)

    def of(self, key: GroupKey) -> Mapping[str, int]:
        """bit/s that one group takes from each node's budget, as of the last `refresh`."""
        return self._books[key].nodes if key in self._books else {}

    def places_of(self, key: GroupKey) -> Mapping[Places, int]:
        """bit/s that one group takes between two places, as of the last `refresh`."""
        return self._count_places(key)

    @property
    def pairs(self) -> Mapping[NodePair, int]:
        """bit/s between two nodes as of the last `refresh`, for links that all traffic of a node uses."""
        return self._pairs.total()

    @property
    def places(self) -> Mapping[Places, int]:
        """bit/s between two places as of the last `refresh`, for links between zones and regions."""
        return self._places.total()

    def _count_pairs(self, key: GroupKey) -> Counter[NodePair]:
        return self._books[key].pairs(self._groups.get(key)) if key in self._books else Counter()

    def _count_places(self, key: GroupKey) -> Counter[Places]:
        return self._books[key].places(self._groups.get(key)) if key in self._books else Counter()


def _remembered(look: Callable[[str], Found], known: dict[str, Found]) -> Callable[[str], Found]:
    """Note what each node was taken to be."""

    def remembered(node: str) -> Found:
        if node not in known:
            known[node] = look(node)
        return known[node]

    return remembered
