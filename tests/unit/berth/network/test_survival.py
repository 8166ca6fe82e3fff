"""Which workloads are left after the failure of a node or a zone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.network.costs import NO_COSTS, Place
from berth.network.sites import Sites
from berth.network.survival import Survival, survival
from tests.support.edges import PLACES

ALL_PLACES = {**PLACES, "bare2": PLACES["bare"], "a3": Place("r2", "a")}
"""The zone name a is used in both regions."""
SITES = Sites.of(ALL_PLACES, NO_COSTS)


@pytest.mark.parametrize(
    ("nodes", "node", "zone"),
    [
        pytest.param({"a1": 2}, False, False, id="all on one node"),
        pytest.param({"a1": 1, "a2": 1}, True, False, id="two nodes of a zone"),
        pytest.param({"a1": 1, "b1": 1}, True, True, id="two zones"),
        pytest.param({"a1": 1, "a3": 1}, True, False, id="one zone name in two regions is one zone"),
        pytest.param({"bare": 1, "bare2": 1}, True, True, id="nodes without a zone fail one by one"),
        pytest.param({"bare": 2}, False, False, id="one node without a zone"),
        pytest.param({"a1": 1, "bare": 1}, True, True, id="a zone and a node without"),
    ],
)
def test_two_replicas(nodes: dict[str, int], node: bool, zone: bool) -> None:
    found = survival({"web": nodes}, SITES)
    assert (found.replicated, found.survive_node, found.survive_zone) == (1, node, zone)
    assert found.lost_with_node == (() if node else ("web",))
    assert found.lost_with_zone == (() if zone else ("web",))


def test_workloads_with_one_replica_do_not_count() -> None:
    assert survival({"db": {"a1": 1}, "web": {"a1": 1, "b1": 1}}, SITES) == Survival(1, (), ())


def test_those_that_are_lost_are_named_in_order() -> None:
    found = survival({"z": {"a1": 2}, "b": {"a1": 3}, "m": {"a1": 1, "a2": 1}}, SITES)
    assert found.lost_with_node == ("b", "z")
    assert found.lost_with_zone == ("b", "m", "z")


COUNTS = st.dictionaries(st.sampled_from(sorted(SITES.row)), st.integers(1, 3), min_size=1)


@settings(deadline=None, derandomize=True)
@given(placed=st.dictionaries(st.sampled_from("abc"), COUNTS))
def test_what_is_left_when_each_place_fails_in_turn(placed: dict[str, dict[str, int]]) -> None:
    found = survival(placed, SITES)
    zone = {name: place.zone for name, place in ALL_PLACES.items()}
    for lost, domain in (
        (found.lost_with_node, {name: name for name in SITES.row}),
        (found.lost_with_zone, {name: zone[name] or name for name in SITES.row}),
    ):
        gone = {
            workload
            for workload, nodes in placed.items()
            for place in domain.values()
            if sum(nodes.values()) >= 2 and all(domain[node] == place for node in nodes)
        }
        assert set(lost) == gone
