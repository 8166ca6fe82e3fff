"""Where the pods of an AppGroup are, and which nodes are alike."""

from __future__ import annotations

import numpy as np

from berth.scheduling.replica_plan.places import Kinds, failure_zones, placed_replicas
from tests.support import builders
from tests.support.placement import Lab, chain, group_object, lone, member, zoned


def lab() -> Lab:
    """n0 and n1 in z1, n2 in z3 of another region, n3 and n4 nowhere."""
    nodes = [zoned("n0", "z1", "r1"), zoned("n1", "z1", "r1"), zoned("n2", "z3", "r2")]
    return Lab([*nodes, builders.node("n3"), builders.node("n4")])


def test_pods_are_counted_by_workload_and_node() -> None:
    small = lab()
    shop = small.group(group_object("shop", *chain("a", "b")))
    small.see(*(member(f"a{n}", "a", on="n1") for n in range(2)), member("a2", "a", on="n2", labels={"revision": "2"}))
    small.see(member("b", "b", on="n0"), member("leaving", "b", on="n1", deleting=True), member("waits", "b"))
    small.see(
        member("x", "a", group="other", on="n0"), member("y", "a", namespace="other", on="n0"), lone("z", on="n0")
    )
    everybody = {"a": {1: 2, 2: 1}, "b": {0: 1}}
    assert placed_replicas(shop, small.cache.state) == everybody
    assert placed_replicas(shop, small.cache.state, ["a", "nobody"]) == {"a": everybody["a"]}


def test_pods_that_are_not_to_be_counted() -> None:
    """Those that are being deleted were not counted before; a workload without others has none."""
    small = lab()
    shop = small.group(group_object("shop", *chain("a", "b")))
    pods = [member(f"a{n}", "a", on="n1") for n in range(3)]
    gone = [member("b", "b", on="n0"), member("leaving", "b", on="n0", deleting=True), *pods[:2]]
    small.see(*pods, *gone[:2])
    state = small.cache.state
    records = [record for pod in gone if (record := state.record(pod.metadata.uid)) is not None]
    assert len(records) == 4
    assert placed_replicas(shop, state, without=records) == {"a": {1: 1}}
    assert placed_replicas(shop, state, without=records[1:2]) == {"a": {1: 3}, "b": {0: 1}}


def test_a_node_without_a_zone_fails_by_itself() -> None:
    zones = failure_zones(lab().cache.state).tolist()
    assert zones[0] == zones[1]
    assert len(set(zones)) == 4


def test_nodes_of_one_location_and_zone_are_alike() -> None:
    small = lab()
    infrastructure = small.planner.view.current(small.costs, small.cache.bandwidth()).infrastructure
    kinds = Kinds.of(small.cache.state, infrastructure, small.planner.view.places)
    assert kinds.kind[0] == kinds.kind[1]
    assert kinds.kind[3] == kinds.kind[4]
    assert len(set(kinds.kind.tolist())) == len(kinds.first) == 3
    assert kinds.kind[kinds.first].tolist() == [0, 1, 2]
    few, homes = kinds.one_of_each(np.array([3, 1])), [*kinds.first.tolist(), 3, 1]
    assert few.location.tolist() == kinds.nodes.location[homes].tolist()
    # A node without a zone fails with no other, also where it stands for others.
    zones = kinds.nodes.zone.tolist()
    shared = [zones[home] if home < 3 else None for home in homes[:3]]
    assert [zone if zone in zones else None for zone in few.zone.tolist()] == [*shared, zones[3], zones[1]]
