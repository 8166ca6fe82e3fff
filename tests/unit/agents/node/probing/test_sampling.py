"""Who probes whom: bounds, how well pairs of zones are covered, and how little a change of nodes changes."""

from __future__ import annotations

import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.node.probing.sampling import (
    DEFAULT_PEERS,
    MOST_ZONES,
    OWN_ZONE_PEERS,
    SAMPLERS,
    NodePlace,
    choose_peers,
    samplers,
)
from controllers.networktopology.node_medians import pair_figures
from controllers.networktopology.sources.base import Measurement

CLUSTERS = st.lists(st.integers(min_value=1, max_value=6), min_size=1, max_size=9).map(lambda sizes: cluster(*sizes))
LIMITS = st.integers(min_value=1, max_value=12)


def cluster(*sizes: int) -> list[NodePlace]:
    """Nodes of zones ``z0``, ``z1``, ... of these sizes."""
    return [NodePlace(f"z{zone}-n{number}", f"z{zone}") for zone, size in enumerate(sizes) for number in range(size)]


def coverage(nodes: Iterable[NodePlace], sampled: Mapping[str, tuple[str, ...]]) -> dict[frozenset[str], set[str]]:
    """Nodes that sample each pair of zones."""
    zone_of = dict(nodes)
    by_pair: dict[frozenset[str], set[str]] = defaultdict(set)
    for name, others in sampled.items():
        for other in others:
            by_pair[frozenset((zone_of[name], other))].add(name)
    return by_pair


@pytest.mark.parametrize(
    ("nodes", "limit", "peers"),
    [
        pytest.param(cluster(1), 10, 0, id="alone"),
        pytest.param(cluster(2), 10, 1, id="two in one zone"),
        pytest.param(cluster(1, 1), 10, 1, id="two in two zones"),
        pytest.param(cluster(4, 4), 10, 7, id="fewer than the limit: all"),
        pytest.param(cluster(40), 10, 10, id="one zone"),
        pytest.param(cluster(20, 20), 3, 3, id="small limit"),
        pytest.param(cluster(20, 20), 1, 1, id="one peer"),
        pytest.param([NodePlace(f"n{n}", "") for n in range(30)], 10, 10, id="no zones known"),
    ],
)
def test_number_of_peers(nodes: list[NodePlace], limit: int, peers: int) -> None:
    assert {len(choose_peers(node.name, nodes, limit)) for node in nodes} == {peers}


def test_a_node_that_is_not_listed_yet_has_no_peers() -> None:
    assert choose_peers("new", cluster(3, 3)) == ()


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param((3, 3), id="two zones"),
        pytest.param((20, 20, 20), id="three zones"),
        pytest.param((1, 400), id="one small, one large"),
        pytest.param((5,) * 6, id="six zones"),
        pytest.param((50,) * 20, id="twenty zones"),
        pytest.param((1, 1, 1, 30), id="edge sites around a centre"),
    ],
)
def test_every_pair_of_zones_has_its_samplers(sizes: tuple[int, ...]) -> None:
    nodes = cluster(*sizes)
    zones = Counter(node.zone for node in nodes)
    found = coverage(nodes, samplers(nodes))
    for pair in combinations(zones, 2):
        assert len(found[frozenset(pair)]) == min(SAMPLERS, zones[pair[0]] + zones[pair[1]])


@pytest.mark.parametrize(
    "sizes", [pytest.param((3,) * 15, id="peers that just suffice"), pytest.param((4,) * 12, id="some more")]
)
def test_without_any_one_node_each_pair_is_measured_between_two_others_in_either_zone(sizes: tuple[int, ...]) -> None:
    """So that one that is slow or cut off is not half of what makes a cost."""
    nodes = cluster(*sizes)
    zone_of = dict(nodes)
    links: dict[frozenset[str], list[tuple[str, str]]] = defaultdict(list)
    for origin, zone in nodes:
        for peer in choose_peers(origin, nodes):
            links[frozenset((zone, zone_of[peer]))].append((origin, peer))
    for pair in map(frozenset, combinations(set(zone_of.values()), 2)):
        for node in (name for name, zone in nodes if zone in pair):
            left = [set(link) for link in links[pair] if node not in link]
            assert any(one.isdisjoint(other) for one, other in combinations(left, 2)), (pair, node)


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param((4,) * 9, id="9 zones of 4"),
        pytest.param((5,) * 12, id="12 of 5"),
        pytest.param((4,) * 12, id="12 of 4"),
    ],
)
def test_no_one_node_that_is_slow_makes_the_cost_of_a_pair(sizes: tuple[int, ...]) -> None:
    nodes = cluster(*sizes)
    zone_of = dict(nodes)
    links = [(own, peer) for own in zone_of for peer in choose_peers(own, nodes)]
    for slow, zone in nodes:
        near = [link for link in links if zone in (zone_of[link[0]], zone_of[link[1]])]
        figures = pair_figures([Measurement(*link, 50 if slow in link else 1) for link in near], zone_of.__getitem__)
        assert {item.microseconds for item in figures.values()} == {1}, slow


def test_where_peers_are_too_few_each_pair_has_one_before_any_has_two() -> None:
    nodes = cluster(*(25,) * 200)
    found = coverage(nodes, samplers(nodes))
    assert len(found) == 200 * 199 // 2
    assert sum(map(len, found.values())) == 5000 * (DEFAULT_PEERS - OWN_ZONE_PEERS)


def peers_and_peak(nodes: list[NodePlace]) -> tuple[tuple[str, ...], int]:
    """Peers of one node, and the bytes that choosing them took at the most."""
    tracemalloc.start()
    try:
        return choose_peers("z7-n0", nodes), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_more_zones_than_can_be_shared_out_take_no_more_memory() -> None:
    """A zone for each node, as where racks or hosts are stated as zones: 2000 have two million pairs."""
    few, many = cluster(*(1,) * (MOST_ZONES + 1)), cluster(*(1,) * 2000)
    peers, peak = peers_and_peak(many)
    assert len(peers) == DEFAULT_PEERS
    assert peak < 8 << 20
    # Each node chooses others, so that many pairs are measured.
    pairs = {frozenset((node.name, peer)) for node in few for peer in choose_peers(node.name, few)}
    assert len(pairs) > 0.9 * DEFAULT_PEERS * len(few)


def test_more_nodes_than_can_be_shared_out_take_no_more_memory() -> None:
    """Those of 65,000 nodes for the pairs of 200 zones took an agent beyond its memory limit, and 9 s."""
    many = cluster(*(200,) * 200)
    peers, peak = peers_and_peak(many)
    assert len(peers) == DEFAULT_PEERS
    assert peak < 40 << 20


@given(nodes=CLUSTERS, limit=LIMITS)
def test_a_pair_lacks_samplers_only_if_its_nodes_have_no_peers_left(nodes: list[NodePlace], limit: int) -> None:
    sampled = samplers(nodes, limit)
    found = coverage(nodes, sampled)
    members = Counter(node.zone for node in nodes)
    own = min(OWN_ZONE_PEERS, limit // 2)
    full = {name for name, zone in nodes if len(sampled.get(name, ())) == limit - min(own, members[zone] - 1)}
    for pair in map(frozenset, combinations(members, 2)):
        if len(found[pair]) < SAMPLERS:
            assert {node.name for node in nodes if node.zone in pair} - found[pair] <= full


@given(nodes=CLUSTERS, limit=LIMITS)
def test_peers_are_bounded_known_and_others(nodes: list[NodePlace], limit: int) -> None:
    names = {node.name for node in nodes}
    for own in names:
        peers = choose_peers(own, nodes, limit)
        assert len(peers) == len(set(peers)) == min(limit, len(names) - 1)
        assert set(peers) <= names - {own}


@given(nodes=CLUSTERS, limit=LIMITS)
def test_a_node_probes_every_zone_that_it_samples_and_its_own(nodes: list[NodePlace], limit: int) -> None:
    zone_of = dict(nodes)
    members = Counter(zone_of.values())
    sampled = samplers(nodes, limit)
    for own, zone in nodes:
        peers = Counter(zone_of[peer] for peer in choose_peers(own, nodes, limit))
        assert set(sampled.get(own, ())) <= set(peers)
        assert peers[zone] >= min(OWN_ZONE_PEERS, limit // 2, members[zone] - 1)


@given(nodes=CLUSTERS.flatmap(lambda nodes: st.tuples(st.just(nodes), st.permutations(nodes))))
def test_all_agents_know_the_same_whatever_order_they_learn_it_in(
    nodes: tuple[list[NodePlace], list[NodePlace]],
) -> None:
    one, other = nodes
    assert samplers(one) == samplers(other)
    assert choose_peers(one[0].name, one) == choose_peers(one[0].name, other)


@settings(max_examples=10, deadline=None)
@given(zones=st.integers(min_value=2, max_value=6), size=st.integers(min_value=3, max_value=9), data=st.data())
def test_one_node_less_changes_few_peers(zones: int, size: int, data: st.DataObject) -> None:
    nodes = cluster(*(size,) * zones)
    gone = data.draw(st.sampled_from(nodes))
    left = [node for node in nodes if node != gone]
    new = sum(len(set(choose_peers(n.name, left)) - set(choose_peers(n.name, nodes))) for n in left)
    probed_it = sum(gone.name in choose_peers(n.name, nodes) for n in left)
    # Each of its samplers' duties goes to another node, which gives up a peer for it; who probed it has another.
    # Nodes that begin or end to have a part in a pair change the last choices of the others of its zones.
    assert new <= probed_it + 3 * SAMPLERS * (zones - 1) + len(left)


def test_duties_are_spread_over_the_nodes() -> None:
    nodes = cluster(*(50,) * 20)
    load = Counter(len(others) for others in samplers(nodes).values())
    assert max(load) <= 5  # 570 duties of 1000 nodes
