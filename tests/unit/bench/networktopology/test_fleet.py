"""The simulated agents: who reports what."""

from __future__ import annotations

from bench.networktopology.fleet import CHANGED, SLOWER, Fleet


def test_a_zone_that_slows_down_is_reported_by_both_ends() -> None:
    fleet = Fleet(60, 4)
    before = dict(fleet.round_trips)
    nodes = fleet.slow_down()
    changed = {pair for pair, figure in fleet.round_trips.items() if figure != before[pair]}
    assert {origin for origin, _ in changed} == set(nodes)
    assert all(CHANGED in (fleet.places.zone_of(a), fleet.places.zone_of(b)) for a, b in changed)
    assert all(fleet.round_trips[pair] == SLOWER * before[pair] for pair in changed)
    assert {fleet.places.zone_of(node) for node in nodes} == set(fleet.places.zones)


def test_every_node_of_the_cluster_is_made() -> None:
    fleet = Fleet(60, 4)
    assert {(spec.name, spec.region, spec.zone) for spec in fleet.specs()} == {
        (name, place.region, place.zone) for name, place in fleet.places.nodes.items()
    }


def test_a_report_has_the_round_trips_of_its_node() -> None:
    fleet = Fleet(60, 4)
    status = fleet.report("node-00007")
    assert {("node-00007", peer.node): peer.p90_microseconds for peer in status.peers} == {
        pair: figure for pair, figure in fleet.round_trips.items() if pair[0] == "node-00007"
    }
    assert status.peer_count == len(status.peers) == 3
