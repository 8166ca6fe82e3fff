"""The cluster as the gang engine sees it: annotations, places, links, and free amounts kept up to date."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.labels import LABEL_SEGMENT, LABEL_ZONE, RESOURCE_BANDWIDTH
from berth.kube.objects import Node
from berth.network.costs import NO_COSTS, NetworkCosts, Place
from berth.network.groups import Group
from berth.network.link_budgets import PlacePair
from berth.scheduling.configuration import Link, Profile
from berth.scheduling.gang.infrastructure import HIGHEST_PRICE, InfrastructureView, read_settings, units_per_price
from berth.scheduling.gang.state import InfrastructureState
from tests.support import builders
from tests.support.placement import ZONE_COSTS, Lab, both_ways, chain, group_object, member, where, zoned

BANDWIDTH = {"network_aware_com__bandwidth": "1G"}


def annotated(name: str = "n1", *, node: Node | None = None, **annotations: str) -> Node:
    made = node or zoned(name)
    made.metadata.annotations = {f"berth.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return made


def current(lab: Lab) -> InfrastructureState:
    lab.cache.bandwidth_allocations.refresh(lab.cache.groups)
    return lab.planner.view.current(lab.costs, lab.cache.bandwidth_allocations)


class TestSettings:
    def test_good_ones(self) -> None:
        settings = read_settings(
            annotated(price_cpu="0.25", usage_threshold="0.75", max_unit_memory="8Gi", price_bandwidth="2")
        )
        assert settings.prices == {"berth.dev/price-cpu": 0.25, "berth.dev/price-bandwidth": 2.0}
        assert (settings.threshold, settings.max_units) == (0.75, {"berth.dev/max-unit-memory": "8Gi"})
        assert settings.problems == ()

    @pytest.mark.parametrize("price", ["1e13", "1e308", "1" + 300 * "0"])
    @pytest.mark.parametrize("strategy", ["replicas", "berth"])
    def test_a_price_beyond_reason_ends_no_plan(self, price: str, strategy: str) -> None:
        """A node's own kubelet may write it, and pods request more than one unit."""
        assert read_settings(annotated(price_cpu=price)).prices == {"berth.dev/price-cpu": HIGHEST_PRICE}
        profile = Profile.model_validate({"prices": {"memory": float(price)}, "gang": {"strategy": strategy}})
        nodes = [annotated("n1", price_cpu=price), annotated("n2", price_cpu=price), zoned("cheap", cpu="7")]
        lab = Lab(nodes, profile)
        pods = [member(f"{name}{n}", name, cpu="3", memory="4Gi") for name in "ab" for n in range(2)]
        outcome = lab.place(lab.group(group_object("shop", *chain("a", "b"))), *pods)
        assert sorted(where(outcome).values()) == ["cheap", "cheap", "n1", "n2"]

    @pytest.mark.parametrize(
        ("name", "value", "remedy"),
        [
            pytest.param("price_cpu", "cheap", "a number >= 0", id="price-is-no-number"),
            pytest.param("price_cpu", "-1", "a number >= 0", id="price-is-negative"),
            pytest.param("price_cpu", "inf", "a number >= 0", id="price-is-infinite"),
            pytest.param("price_cpu", "nan", "a number >= 0", id="price-is-nan"),
            pytest.param("usage_threshold", "75%", "a share above 0", id="threshold-in-percent"),
            pytest.param("usage_threshold", "0", "a share above 0", id="threshold-zero"),
            pytest.param("usage_threshold", "1.5", "a share above 0", id="threshold-above-one"),
            pytest.param("max_unit_cpu", "four", "a quantity >= 0", id="unit-is-no-quantity"),
            pytest.param("max_unit_cpu", "-4", "a quantity >= 0", id="unit-is-negative"),
        ],
    )
    def test_a_bad_one_is_ignored_and_reported(self, name: str, value: str, remedy: str) -> None:
        stated: dict[str, Any] = {name: value}
        settings = read_settings(annotated("edge-7", **stated))
        assert (settings.prices, settings.max_units, settings.threshold) == ({}, {}, None)
        (problem,) = settings.problems
        assert problem.startswith(f"node edge-7: annotation berth.dev/{name.replace('_', '-')}={value!r} is ignored")
        assert remedy in problem

    @pytest.mark.parametrize(
        ("resource", "units"),
        [
            ("cpu", 1000.0),
            ("memory", 2.0**30),
            ("hugepages-2Mi", 2.0**30),
            ("bandwidth", 1e9),
            ("example.com/gpu", 1.0),
        ],
    )
    def test_priced_units(self, resource: str, units: float) -> None:
        assert units_per_price(resource) == units


class TestBuild:
    def test_a_model_is_needed_first(self) -> None:
        view = InfrastructureView(Lab([]).cache.state, Profile())
        with pytest.raises(LookupError, match="current"):
            _ = view.model

    def test_prices_of_annotations_win_over_the_profile(self) -> None:
        profile = Profile(prices={"cpu": 3.0, "memory": 1.0, "bandwidth": 4.0})
        lab = Lab([zoned("plain"), annotated("dear", price_cpu="9", price_bandwidth="8")], profile)
        model = current(lab).infrastructure
        assert (model.price[:, 0] * 1000).tolist() == [3.0, 9.0]
        assert (model.price[:, 1] * 2**30).tolist() == [1.0, 1.0]
        assert (model.bandwidth_price * 1e9).tolist() == [4.0, 8.0]

    def test_slash_in_a_resource_name(self) -> None:
        node = zoned("n1", example_com__gpu=4)
        node.metadata.annotations = {
            "berth.dev/price-example.com_gpu": "5",
            "berth.dev/max-unit-example.com_gpu": "2",
        }
        lab = Lab([node])
        model = current(lab).infrastructure
        column = lab.cache.state.resources["example.com/gpu"]
        assert (model.price[0, column], model.max_unit[0, column]) == (5.0, 2.0)

    def test_thresholds_and_units(self) -> None:
        lab = Lab([zoned("a"), annotated("b", usage_threshold="0.5", max_unit_cpu="2")], Profile(usage_threshold=0.9))
        model = current(lab).infrastructure
        assert model.threshold.tolist() == [0.9, 0.5]
        assert model.max_unit[:, 0].tolist() == [np.inf, 2000.0]

    def test_places_and_costs(self) -> None:
        lab = Lab([zoned("a", "z1", "r1"), zoned("b", "z3", "r2"), zoned("c", "z1", "r1"), builders.node("d")])
        model = current(lab).infrastructure
        assert lab.planner.view.places == (Place("r1", "z1"), Place("r2", "z3"), Place())
        assert model.location.tolist() == [0, 1, 0, 2]
        assert model.location_cost.tolist() == [[1, 20, 100], [20, 1, 100], [100, 100, 100]]

    @pytest.mark.parametrize(("alone", "scored"), [("cost", 801), ("score", 100)])
    def test_scores_read_an_unknown_cost_as_upstream_does(self, alone: str, scored: float) -> None:
        nodes = [zoned("a", "z1", "r1"), zoned("b", "z2", "r1"), zoned("c", "z3", "r2")]
        profile = Profile.model_validate({"gang": {"alone": alone}})
        lab = Lab(nodes, profile, NetworkCosts(regions=both_ways({("r1", "r2"): 800.0})))
        for costs in (lab.costs, NO_COSTS, lab.costs):  # built, and then the distances alone replaced
            lab.costs = costs
            model = current(lab).infrastructure
        assert model.location_cost.tolist() == [[1, 801, 800], [801, 1, 800], [800, 800, 1]]
        assert model.score_cost.tolist() == [[1, scored, 800], [scored, 1, 800], [800, 800, 1]]

    def test_problems_are_collected(self) -> None:
        lab = Lab([annotated("a", price_cpu="x"), annotated("b", usage_threshold="y")])
        current(lab)
        assert [problem.split(":")[0] for problem in lab.planner.view.problems] == ["node a", "node b"]

    def test_an_empty_cluster(self) -> None:
        state = current(Lab([]))
        assert state.infrastructure.size == 0

    def test_bandwidth_without_advertisement_is_unlimited(self) -> None:
        lab = Lab([zoned("a", **BANDWIDTH), zoned("b")])
        assert current(lab).infrastructure.bandwidth_capacity.tolist() == [1e9, np.inf]


class TestUpToDate:
    def test_changed_annotations_count(self) -> None:
        lab = Lab([zoned("a")])
        current(lab)
        lab.cache.update_node(annotated("a", price_cpu="2"))
        assert current(lab).infrastructure.price[0, 0] == 0.002

    def test_shrunk_node(self) -> None:
        lab = Lab([zoned("a", cpu=4)])
        assert current(lab).free[0, 0] == 4000
        lab.cache.update_node(zoned("a", cpu=2))
        assert current(lab).free[0, 0] == 2000

    def test_new_costs(self) -> None:
        lab = Lab([zoned("a", "z1"), zoned("b", "z2")])
        assert current(lab).infrastructure.location_cost[0, 1] == 5
        lab.costs = NO_COSTS
        assert current(lab).infrastructure.location_cost[0, 1] == 100

    def test_what_was_learned_survives_a_rebuild(self) -> None:
        lab = Lab([zoned("a"), zoned("b")])
        group = lab.group(group_object("shop", *chain("a", "b")))
        assert lab.place(group, member("one", "a", cpu="1"), member("two", "b", cpu="2")).complete
        assert current(lab).smallest[0] == 1000
        assert current(lab).typical[0] == 1500
        lab.cache.update_node(zoned("c"))
        assert current(lab).smallest[0] == 1000
        assert current(lab).typical[0] == 1500

    def test_other_distances_leave_all_else_as_it_is(self) -> None:
        node = annotated("a", price_cpu="2", usage_threshold="0.5")
        lab = Lab([node, zoned("b", "z2")])
        before = current(lab)
        lab.costs = NO_COSTS
        after = current(lab)
        assert after.infrastructure.location_cost.tolist() == [[1, 100], [100, 1]]
        np.testing.assert_array_equal(after.infrastructure.price, before.infrastructure.price)
        np.testing.assert_array_equal(after.reserve, before.reserve)
        np.testing.assert_array_equal(after.free, before.free)

    def test_edges_take_bandwidth_and_pods_request_it(self) -> None:
        lab = Lab([zoned("a", **BANDWIDTH), zoned("b", **BANDWIDTH)])
        group(lab)
        lab.see(
            member("one", "x", on="a"),
            member("two", "y", on="b"),
            builders.pod("other", on="b", network_aware_com__bandwidth="300M"),
        )
        assert current(lab).bandwidth_free.tolist() == [9e8, 6e8]
        assert RESOURCE_BANDWIDTH in lab.cache.state.resources


def group(lab: Lab) -> Group:
    return lab.group(group_object("shop", *chain("x", "y", minBandwidth="100M")))


class TestLinks:
    LINKS = (
        Link(name="uplink", capacity="1G", zones=[("z2", "z1")]),
        Link(name="inside", capacity="500M", zones=[("z1", "z1")]),
        Link(name="rack", capacity="2G", nodes=["a", "not-there-yet"]),
    )

    def lab(self, *nodes: Node) -> Lab:
        return Lab([zoned("a", "z1"), zoned("b", "z1"), zoned("c", "z2"), *nodes], Profile(links=list(self.LINKS)))

    def test_paths(self) -> None:
        model = current(self.lab()).infrastructure
        links = model.links
        assert links is not None

        def path(first: int, second: int) -> list[str]:
            return [links.names[link] for link in links.path(first, second, model.location)]

        assert path(0, 1) == ["inside", "rack"]
        assert path(1, 0) == ["inside", "rack"]
        assert path(1, 2) == ["uplink"]
        assert path(0, 2) == ["uplink", "rack"]
        assert path(0, 0) == []
        assert links.capacity.tolist() == [1e9, 5e8, 2e9]

    def test_placed_edges_take_their_links(self) -> None:
        lab = self.lab()
        group(lab)
        lab.see(member("one", "x", on="a"), member("two", "y", on="c"))
        assert current(lab).link_free.tolist() == [9e8, 5e8, 1.9e9]

    def test_a_node_that_appears_later_joins_its_link(self) -> None:
        lab = self.lab()
        current(lab)
        lab.cache.update_node(zoned("not-there-yet", "z9"))
        model = current(lab).infrastructure
        assert model.links is not None
        assert model.links.path(1, 3, model.location) == (2,)


EVENT = st.one_of(
    st.tuples(st.just("pod"), st.integers(0, 5), st.sampled_from(["a", "b", "c", "gone"])),
    st.tuples(st.just("node"), st.integers(1, 8), st.sampled_from(["a", "b", "c"])),
    st.tuples(st.just("device"), st.integers(0, 20), st.sampled_from(["a", "b", "c"])),
    st.tuples(st.just("assume"), st.integers(0, 3), st.sampled_from(["a", "b", "c"])),
    st.tuples(st.just("drop"), st.just(0), st.sampled_from(["a", "b", "c"])),
)


@settings(max_examples=100)
@pytest.mark.parametrize("remembered", [1, 3, 1024])
@given(st.lists(EVENT, max_size=20))
def test_kept_up_to_date_equals_rebuilt(remembered: int, events: list[tuple[str, int, str]]) -> None:
    """After every event: what is written of charged slots only, and what is thrown away for being too much."""
    profile = Profile(links=[Link(name="uplink", capacity="10G", zones=[("z1", "z2")])])
    zones = {"a": "z1", "b": "z1", "c": "z2"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("berth.scheduling.cache.nodes.REMEMBERED_CHARGES", remembered)
        lab = Lab([zoned(name, zone, **BANDWIDTH) for name, zone in zones.items()], profile)
        group(lab)
        for kind, number, name in events:
            if kind == "node":
                lab.cache.update_node(zoned(name, zones[name], cpu=number, **BANDWIDTH))
            elif kind == "device":
                lab.cache.update_node(zoned(name, zones[name], **BANDWIDTH, **{f"device{number}": "2"}))
            elif kind == "drop":
                lab.cache.state.delete_node(name)
            elif kind == "assume" and lab.cache.state.record(f"pod-default-q{number}") is None:
                lab.cache.state.assume(member(f"q{number}", "x", cpu="250m", device1="1"), name)
            elif kind == "assume":
                assert lab.cache.state.forget(f"pod-default-q{number}")
            elif name == "gone":
                lab.cache.delete_pod(member(f"p{number}", "xy"[number % 2]))
            else:
                lab.see(member(f"p{number}", "xy"[number % 2], on=name, cpu="500m"))
            kept = current(lab)
            fresh = InfrastructureView(lab.cache.state, profile).current(ZONE_COSTS, lab.cache.bandwidth_allocations)
            np.testing.assert_array_equal(kept.free, fresh.free)
            np.testing.assert_array_equal(kept.bandwidth_free, fresh.bandwidth_free)
            np.testing.assert_array_equal(kept.link_free, fresh.link_free)
            np.testing.assert_array_equal(kept.infrastructure.capacity, fresh.infrastructure.capacity)
            assert kept.infrastructure.names == fresh.infrastructure.names
            assert kept.infrastructure.resources == fresh.infrastructure.resources


@pytest.mark.parametrize(("most", "locations"), [(4, 4), (3, 2)], ids=["few", "many"])
def test_places_are_zones_alone_where_tables_of_segments_would_be_large(
    most: int, locations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What calls take of a budget between zones counts either way, and so do their costs."""
    monkeypatch.setattr("berth.scheduling.cache.places.MOST_PLACES", most)
    nodes = [zoned(f"n{n}", f"z{n % 2 + 1}", cpu="1") for n in range(4)]
    for node in nodes:
        node.metadata.labels[LABEL_SEGMENT] = node.metadata.name
    costs = NetworkCosts(zones=both_ways({("z1", "z2"): 7.0}), segments=both_ways({("n0", "n2"): 3.0}))
    lab = Lab(nodes, costs=replace(costs, budgets={PlacePair.of(LABEL_ZONE, "z1", "z2"): 100}))
    group = lab.group(group_object("shop", *chain("a", "b", minBandwidth="40")))
    lab.see(member("a0", "a", on="n0"), member("b0", "b", on="n1"))
    assert group.edges[0].bandwidth == 40
    state = current(lab)
    model = state.infrastructure
    assert model.location_cost.shape == (locations, locations)
    assert model.location_cost[model.location[0], model.location[1]] == 7.0
    assert model.location_cost[model.location[0], model.location[2]] == (3.0 if locations == 4 else 1.0)
    assert state.exact.link_free == (60,)
