"""The book of the bandwidth that calls take; what Services route against plain loops in test_bandwidth_routing.py."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.network.admitted import Admitted
from berth.network.bandwidth_allocations import RECOUNTED_PODS, BandwidthAllocations, GroupBandwidth
from berth.network.costs import Place
from berth.network.edges import TO_ALL, Routes, pod_edges
from berth.network.groups import MAX_EDGE_BANDWIDTH, Group, GroupEdge, GroupKey, read_group
from berth.network.members import GroupMembers
from berth.network.routing import Routing
from tests.support import kinds
from tests.support.pairs import group_bandwidth
from tests.support.placement import chain, group_object, member


class TestLedger:
    def setup_method(self) -> None:
        self.members = GroupMembers()
        self.bandwidth_allocations = BandwidthAllocations(self.members)
        self.shop = read_group(group_object("shop", *chain("a", "b", minBandwidth="10M")))

    def place(self, name: str, workload: str, node: str) -> None:
        self.members.update(member(name, workload), node=node)
        self.bandwidth_allocations.mark_pod(self.shop.key, workload)

    def refreshed(self, *groups: Group) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
        self.bandwidth_allocations.refresh({one.key: one for one in groups})
        return dict(self.bandwidth_allocations.nodes), dict(self.bandwidth_allocations.pairs)

    def test_both_ends_pay(self) -> None:
        self.place("one", "a", "n2")
        self.place("two", "b", "n1")
        assert self.refreshed(self.shop) == ({"n1": 10e6, "n2": 10e6}, {("n1", "n2"): 10e6})

    def test_nothing_is_left_when_the_pods_go(self) -> None:
        self.place("one", "a", "n2")
        for number in range(3):
            self.place(f"b{number}", "b", "n1")
            self.refreshed(self.shop)
        for number in range(3):
            self.members.delete(f"pod-default-b{number}")
            self.bandwidth_allocations.mark_pod(self.shop.key, "b")
            self.refreshed(self.shop)
        assert self.refreshed(self.shop) == ({}, {})

    def test_nothing_is_noted_of_groups_that_are_gone_though_nobody_asks_for_pairs(self) -> None:
        for number in range(20):
            name = f"shop-{number}"
            shop = read_group(group_object(name, *chain("a", "b", minBandwidth="10M")))
            for workload, node in (("a", "n1"), ("b", "n2")):
                self.members.update(member(f"{name}{workload}", workload, group=name), node=node)
            self.bandwidth_allocations.mark(shop.key)
            self.bandwidth_allocations.refresh({shop.key: shop})
            assert self.bandwidth_allocations._pairs._changed == {shop.key}
            for workload in "ab":
                self.members.delete(f"pod-default-{name}{workload}")
                self.bandwidth_allocations.mark_pod(shop.key, workload)
            self.bandwidth_allocations.refresh({})
        assert self.bandwidth_allocations._pairs._changed == set()
        assert self.bandwidth_allocations._places._changed == set()

    def test_places_follow_the_labels_of_nodes(self) -> None:
        place = {"n1": Place("r1", "z1"), "n2": Place("r2", "z2")}
        routes = Routes(TO_ALL.routing, TO_ALL.zone, lambda node: place.get(node, Place()))
        self.bandwidth_allocations = BandwidthAllocations(self.members, routes)
        self.place("one", "a", "n2")
        self.place("two", "b", "n1")
        self.refreshed(self.shop)
        assert self.bandwidth_allocations.places == {(Place("r1", "z1"), Place("r2", "z2")): 10**7}
        assert self.bandwidth_allocations.places_of(self.shop.key) == self.bandwidth_allocations.places
        place["n2"] = Place("r1", "z3")
        self.bandwidth_allocations.mark_zones()
        assert self.bandwidth_allocations.places == {(Place("r1", "z1"), Place("r1", "z3")): 10**7}
        del place["n1"]
        self.bandwidth_allocations.mark_zones()
        assert self.bandwidth_allocations.places == {(Place(), Place("r1", "z3")): 10**7}

    def test_a_deleted_group_gives_back(self) -> None:
        self.place("one", "a", "n2")
        self.place("two", "b", "n1")
        self.refreshed(self.shop)
        self.bandwidth_allocations.mark(self.shop.key)
        assert self.refreshed() == ({}, {})

    @pytest.mark.parametrize("amount", ["1e30", "1T", "999999999999"])
    def test_an_absurd_group_leaves_no_trace_in_the_budgets_of_others(self, amount: str) -> None:
        self.place("one", "a", "n2")
        self.place("two", "b", "n1")
        before = self.refreshed(self.shop)
        odd = read_group(group_object("odd", *chain("x", "y", minBandwidth=amount)))
        for number in range(40):
            self.members.update(member(f"x{number}", "x", group="odd"), node="n1")
            self.members.update(member(f"y{number}", "y", group="odd"), node="n2")
        self.bandwidth_allocations.mark(odd.key)
        nodes, _ = self.refreshed(self.shop, odd)
        assert nodes["n1"] <= 10e6 + 40 * 40 * MAX_EDGE_BANDWIDTH
        self.bandwidth_allocations.mark(odd.key)
        assert self.refreshed(self.shop) == before

    def test_what_one_group_takes(self) -> None:
        self.place("one", "a", "n2")
        self.place("two", "b", "n1")
        assert self.bandwidth_allocations.of(self.shop.key) == {}
        self.refreshed(self.shop)
        assert self.bandwidth_allocations.of(self.shop.key) == {"n1": 10e6, "n2": 10e6}


@dataclass
class Book:
    """Members of one AppGroup, and what their calls take."""

    shop: Group
    routes: Routes = TO_ALL
    members: GroupMembers = field(default_factory=GroupMembers)

    def __post_init__(self) -> None:
        self.bandwidth = BandwidthAllocations(self.members, self.routes)

    def put(self, name: str, node: str, admitted: Admitted | None = None) -> None:
        """Have a pod on a node, waiting ("") or gone; its workload is its name without the number."""
        uid, workload = f"pod-default-{name}", name.rstrip("0123456789")
        if node == "gone":
            self.members.delete(uid)
        else:
            self.members.update(member(name, workload), node=node)
            if node:
                self.members.move(uid, node=node, admitted=admitted)
        self.bandwidth.mark_pod(self.shop.key, workload)

    def nodes(self) -> dict[str, int]:
        """What is taken of each node now."""
        self.bandwidth.refresh({self.shop.key: self.shop})
        return dict(self.bandwidth.nodes)

    def anew(self) -> BandwidthAllocations:
        """The same, summed up from nothing."""
        fresh = BandwidthAllocations(self.members, self.routes)
        fresh.mark(self.shop.key)
        fresh.refresh({self.shop.key: self.shop})
        return fresh


def test_a_pod_that_moves_costs_a_look_at_its_own_calls() -> None:
    asked: list[str] = []

    def routing(_: GroupKey, workload: str) -> Routing:
        asked.append(workload)
        return Routing.ALL

    names = [f"w{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    book = Book(read_group(group_object("shop", *chain(*names, minBandwidth="10"))), Routes(routing, lambda _: ""))
    for number, name in enumerate(names):
        book.put(f"{name}1", f"n{number}")
    assert book.nodes() == {"n0": 10, "n25": 10, **{f"n{number}": 20 for number in range(1, 25)}}
    asked.clear()
    book.put("wc1", "n30")
    assert book.nodes()["n30"] == 20
    assert set(asked) == {"wc", "wd"}
    asked.clear()
    assert book.nodes() == book.bandwidth.of(book.shop.key)
    assert asked == []


class TestChangesOfServicesAndZones:
    """Of thousands of groups, those alone are looked at that such a change can concern."""

    def setup_method(self) -> None:
        self.looked: list[str] = []
        looked = self.looked

        class Key(GroupKey):
            @property
            def namespace(self) -> str:
                looked.append(self[0])
                return self[0]

        self.near: set[str] = {"near"}
        self.local: set[str] = set()
        self.zones = {"n1": "z1", "n2": "z2"}
        routes = Routes(self.routing, self.zones.get)
        self.members = GroupMembers()
        self.bandwidth = BandwidthAllocations(self.members, routes)
        groups = [
            read_group(group_object("shop", *chain("a", "b", minBandwidth="10"), namespace=namespace))
            for namespace in ("one", "two", "near")
        ]
        self.groups: dict[GroupKey, Group] = {Key(*group.key): group for group in groups}
        for key in self.groups:
            for workload, node in (("a", "n1"), ("b", "n2")):
                self.members.update(member(f"{workload}1", workload, namespace=key[0]), node=node)
            self.bandwidth.mark(key)
        self.worked_out()

    def routing(self, key: GroupKey, _: str) -> Routing:
        self.looked.append(f"routing of {key[0]}")
        if key[0] in self.local:
            return Routing.LOCAL
        return Routing.SAME_ZONE if key[0] in self.near else Routing.ALL

    def worked_out(self) -> set[str]:
        """Namespaces of the groups that were looked at since the last time, and worked out anew."""
        self.bandwidth.refresh(self.groups)
        found = {text.removeprefix("routing of ") for text in self.looked}
        self.looked.clear()
        return found

    def test_services_concern_the_groups_of_their_namespace(self) -> None:
        self.bandwidth.mark_namespace("one")
        assert self.worked_out() == {"one"}
        self.bandwidth.mark_namespace("elsewhere")
        assert self.worked_out() == set()

    def test_zones_concern_the_groups_whose_calls_are_kept_near(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            patch.delattr(GroupBandwidth, "routed")
            self.bandwidth.mark_zones()
            assert self.worked_out() == set()
            self.zones["n2"] = "z3"
            self.bandwidth.mark_zones()
        assert self.worked_out() == {"near"}
        self.bandwidth.mark_zones()
        assert self.worked_out() == set()
        self.near = {"two"}
        for namespace in ("near", "two"):
            self.bandwidth.mark_namespace(namespace)
        assert self.worked_out() == {"near", "two"}
        del self.zones["n1"]
        self.bandwidth.mark_zones()
        assert self.worked_out() == {"two"}

    def crowd(self, number: int) -> list[GroupKey]:
        """So many more groups of one namespace."""
        found = []
        for each in range(number):
            name = f"g{each}"
            group = read_group(group_object(name, *chain("a", "b", minBandwidth="10"), namespace="crowd"))
            self.groups[group.key] = group
            found.append(group.key)
            for workload, node in (("a", "n1"), ("b", "n2")):
                pod = member(f"{name}{workload}", workload, group=name, namespace="crowd")
                self.members.update(pod, node=node)
            self.bandwidth.mark(group.key)
        self.bandwidth.refresh(self.groups)
        return found

    def counted(self, routing: Routing) -> int:
        """Groups of the crowd whose calls are counted by this routing."""
        book = {Routing.ALL: 10, Routing.LOCAL: 0}[routing]
        return sum(self.bandwidth.of(key).get("n1", 0) == book for key in self.groups if key[0] == "crowd")

    def test_of_thousands_of_groups_some_are_looked_at_at_a_time(self) -> None:
        keys = self.crowd(RECOUNTED_PODS)
        self.local = {"crowd"}
        self.bandwidth.mark_namespace("crowd")
        self.bandwidth.mark_pod(keys[-1], "a")
        done = []
        for rerouted in (False, True, True, True):
            self.bandwidth.refresh(self.groups, rerouted=rerouted)
            done.append(self.counted(Routing.LOCAL))
        assert done == [1, RECOUNTED_PODS // 2 + 1, RECOUNTED_PODS, RECOUNTED_PODS], "one that moved is counted at once"
        assert self.bandwidth.nodes["n1"] == 10 * 3
        self.local.clear()
        self.bandwidth.mark_namespace("crowd")
        for key in keys:
            self.bandwidth.mark(key)
        self.bandwidth.refresh(self.groups)
        assert self.counted(Routing.ALL) == RECOUNTED_PODS

    def test_nothing_is_noted_of_groups_that_are_gone(self) -> None:
        for key in self.groups:
            for workload in "ab":
                self.members.delete(f"pod-{key[0]}-{workload}1")
            self.bandwidth.mark(key)
        self.groups.clear()
        self.worked_out()
        assert not any((self.bandwidth._books, self.bandwidth._by_namespace, self.bandwidth._routed))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a1", "a2", "b1", "b2", "b3", "c1"]),
        st.sampled_from(["", "n1", "n2", "n3", "n4", "gone"]),
        st.booleans(),
        st.sampled_from([None, (), (("b", 5), ("c", 10**12)), (("a", 3), ("gone", 9))]),
    ),
    max_size=30,
)
ZONES = {"n1": "z1", "n2": "z1", "n3": "z2"}
"""n4 has no zone."""


@given(STEPS, st.lists(st.sampled_from(Routing), min_size=3, max_size=3))
def test_ledger_equals_recomputation(
    steps: list[tuple[str, str, bool, Admitted | None]], routings: list[Routing]
) -> None:
    shop = read_group(
        group_object(
            "shop",
            kinds.workload("a", "b", "c", minBandwidth="10"),
            kinds.workload("b", "c", minBandwidth="7"),
            kinds.workload("c"),
        )
    )
    routing = dict(zip("abc", routings, strict=True))
    to_all = Book(shop)
    place = {node: Place("r1", zone) for node, zone in ZONES.items()}
    routed = Book(
        shop,
        Routes(
            lambda _, name: routing.get(name, Routing.ALL),
            lambda node: ZONES.get(node, ""),
            lambda node: place.get(node, Place()),
        ),
    )
    for name, node, refresh, admitted in steps:
        for book in (to_all, routed):
            book.put(name, node, admitted)
            if refresh:
                book.nodes()
                assert book.bandwidth.places is book.bandwidth.places  # followed from here on
    # What somebody was admitted with counts where the AppGroup has no such edge too.
    others = (GroupEdge(*names, 0, math.inf) for names in (("b", "a"), ("c", "a"), ("c", "b")))
    pairs = group_bandwidth(pod_edges(replace(shop, edges=(*shop.edges, *others)), to_all.members.of(shop.key)))
    nodes: dict[str, float] = {}
    for pair, amount in pairs.items():
        for node in pair:
            nodes[node] = nodes.get(node, 0.0) + amount
    assert to_all.nodes() == nodes
    assert dict(to_all.bandwidth.pairs) == pairs
    assert routed.nodes() == dict(routed.anew().nodes)
    assert dict(routed.bandwidth.pairs) == dict(routed.anew().pairs)
    between: Counter[tuple[Place, ...]] = Counter()
    for ends, amount in routed.bandwidth.pairs.items():
        between[tuple(sorted(place.get(node, Place()) for node in ends))] += amount
    assert routed.bandwidth.places == between
    assert min(routed.bandwidth.places.values(), default=1) > 0
