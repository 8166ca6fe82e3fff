"""One pod by itself: network limits, thresholds, bandwidth, prices, runners-up."""

from __future__ import annotations

from typing import Any

import pytest

from berth.network.costs import NO_COSTS
from berth.scheduling.configuration import Link, ObjectiveWeights, Profile
from berth.scheduling.decision import Outcome, Scale
from berth.scheduling.framework.reasons import MAX_NETWORK_COST_EXCEEDED, NETWORK_OVERHEAD
from berth.scheduling.framework.rejection import Rejection
from tests.support import kinds
from tests.support.placement import Lab, chain, group_object, lone, member, where, zoned

NET = {"network_aware_com__bandwidth": "100M"}


def four(**resources: Any) -> list[Any]:
    return [
        zoned("n1", "z1", "r1", **resources),
        zoned("n2", "z2", "r1", **resources),
        zoned("n3", "z3", "r2", **resources),
        zoned("n4", "z4", "r2", **resources),
    ]


def reasons(outcome: Outcome) -> dict[str, int]:
    (failure,) = outcome.failures
    return {item.reason: item.count for item in failure.rejections}


class TestNetwork:
    def test_replica_goes_near_its_neighbours(self) -> None:
        lab = Lab(four())
        shop = lab.group(group_object("shop", *chain("a", "b")))
        lab.see(member("b1", "b", on="n3"))
        assert where(lab.place_alone(member("a2", "a"), shop)) == {"a2": "n3"}

    def test_it_counts_callers_too(self) -> None:
        lab = Lab(four())
        shop = lab.group(group_object("shop", *chain("a", "b")))
        lab.see(member("a1", "a", on="n4"))
        outcome = lab.place_alone(member("b2", "b"), shop)
        assert where(outcome) == {"b2": "n4"}
        (decision,) = outcome.decisions
        assert (decision.edges, decision.edge_cost, decision.strategy) == (1, 0.0, "alone")

    def test_hard_limit_wins_over_every_score(self) -> None:
        lab = Lab(four())
        shop = lab.group(
            group_object(
                "shop",
                kinds.workload("a", "b", maxNetworkCost=5),
                kinds.workload("b"),
                kinds.workload("c", "a"),
            )
        )
        lab.see(member("b1", "b", on="n1", cpu="4"), *(member(f"c{n}", "c", on="n3") for n in range(5)))
        outcome = lab.place_alone(member("a1", "a", cpu="1"), shop)
        assert where(outcome) == {"a1": "n2"}
        (decision,) = outcome.decisions
        assert Rejection(NETWORK_OVERHEAD, MAX_NETWORK_COST_EXCEEDED, 2) in decision.rejections

    def test_no_node_within_the_limit(self) -> None:
        lab = Lab(four(cpu=1))
        shop = lab.group(group_object("shop", *chain("a", "b", maxNetworkCost=1)))
        lab.see(member("b1", "b", on="n1", cpu="1"))
        outcome = lab.place_alone(member("a1", "a", cpu="1"), shop)
        assert reasons(outcome) == {
            "Insufficient cpu": 1,
            "node(s) exceeded maxNetworkCost towards a placed dependency": 3,
        }
        assert not outcome.failures[0].permanent
        assert lab.cache.state.record("pod-default-a1") is None

    def test_without_costs_the_limit_is_not_judged(self) -> None:
        lab = Lab(four(cpu=1), costs=NO_COSTS)
        shop = lab.group(group_object("shop", *chain("a", "b", maxNetworkCost=1)))
        lab.see(member("b1", "b", on="n1", cpu="1"))
        assert lab.place_alone(member("a1", "a", cpu="1"), shop).complete

    def test_pods_of_another_namespace_are_not_neighbours(self) -> None:
        lab = Lab(four())
        shop = lab.group(group_object("shop", *chain("a", "b")))
        lab.see(member("b1", "b", on="n3", namespace="other"))
        (decision,) = lab.place_alone(member("a1", "a"), shop).decisions
        assert decision.edges == 0


class TestThreshold:
    @pytest.mark.parametrize(
        ("selector", "placed"),
        [
            pytest.param({}, False, id="kept-back"),
            pytest.param({"kubernetes.io/hostname": "n1"}, True, id="unless-the-pod-names-the-node"),
        ],
    )
    def test_share_of_the_node(self, selector: dict[str, str], placed: bool) -> None:
        lab = Lab([zoned("n1", cpu=4)], Profile(usage_threshold=0.5))
        outcome = lab.place_alone(lone("p", cpu="3", spec={"nodeSelector": selector}))
        assert outcome.complete is placed
        if not placed:
            assert reasons(outcome) == {"node(s) were filled to their usage threshold": 1}

    def test_just_below(self) -> None:
        lab = Lab([zoned("n1", cpu=4)], Profile(usage_threshold=0.5))
        assert lab.place_alone(lone("p", cpu="2")).complete
        assert not lab.place_alone(lone("q", cpu="1m")).complete

    def test_largest_unit(self) -> None:
        node = zoned("n1", cpu=100)
        node.metadata.annotations["berth.dev/max-unit-cpu"] = "8"
        lab = Lab([node])
        assert lab.place_alone(lone("fits", cpu="8")).complete
        assert reasons(lab.place_alone(lone("large", cpu="9"))) == {"node(s) took no pod as large as this one": 1}


class TestBandwidth:
    def lab(self, **arguments: Any) -> Lab:
        lab = Lab([zoned("n1", cpu=1, **NET), zoned("n2", **NET)], **arguments)
        lab.group(group_object("shop", *chain("a", "b", minBandwidth="60M")))
        return lab

    def shop(self, lab: Lab) -> Any:
        return lab.cache.groups["default", "shop"]

    def test_exact_fit(self) -> None:
        lab = Lab(
            [zoned("n1", cpu=1, network_aware_com__bandwidth="60M"), zoned("n2", network_aware_com__bandwidth="60M")]
        )
        shop = lab.group(group_object("shop", *chain("a", "b", minBandwidth="60M")))
        lab.see(member("b1", "b", on="n1", cpu="1"))
        assert where(lab.place_alone(member("a1", "a", cpu="1"), shop)) == {"a1": "n2"}

    def test_too_little_left_on_the_candidate(self) -> None:
        lab = self.lab()
        lab.see(member("b1", "b", on="n1", cpu="1"), lone("hungry", on="n2", network_aware_com__bandwidth="50M"))
        outcome = lab.place_alone(member("a1", "a", cpu="1"), self.shop(lab))
        assert reasons(outcome)["node(s) had too little bandwidth for the pod's dependencies"] == 1

    def test_too_little_left_at_the_neighbour(self) -> None:
        lab = self.lab()
        lab.see(member("b1", "b", on="n1", cpu="1"), lone("hungry", on="n1", network_aware_com__bandwidth="50M"))
        outcome = lab.place_alone(member("a1", "a", cpu="1"), self.shop(lab))
        assert reasons(outcome)["node(s) had too little bandwidth for the pod's dependencies"] == 1

    def test_on_one_node_no_bandwidth_is_needed_even_when_it_is_overdrawn(self) -> None:
        lab = self.lab()
        lab.see(
            member("b1", "b", on="n2"),
            lone("h1", on="n2", network_aware_com__bandwidth="100M"),
            lone("h2", on="n2", network_aware_com__bandwidth="10M"),
        )
        assert where(lab.place_alone(member("a1", "a", cpu="1"), self.shop(lab))) == {"a1": "n2"}

    def test_a_neighbour_without_demand_on_an_overdrawn_node_harms_nobody(self) -> None:
        lab = Lab([zoned("n1", cpu=1, **NET), zoned("n2", **NET), zoned("n3", cpu=1, **NET)])
        shop = lab.group(
            group_object(
                "shop",
                {
                    "workload": kinds.ref("a"),
                    "dependencies": [
                        {"workload": kinds.ref("b"), "minBandwidth": "10M"},
                        {"workload": kinds.ref("c")},
                    ],
                },
                kinds.workload("b"),
                kinds.workload("c"),
            )
        )
        lab.see(
            member("b1", "b", on="n1", cpu="1"),
            member("c1", "c", on="n3", cpu="1"),
            lone("h1", on="n3", network_aware_com__bandwidth="100M"),
            lone("h2", on="n3", network_aware_com__bandwidth="10M"),
        )
        assert where(lab.place_alone(member("a1", "a", cpu="1"), shop)) == {"a1": "n2"}

    @pytest.mark.parametrize(
        ("capacity", "node"),
        [pytest.param("1G", "n2", id="room-on-the-link"), pytest.param("50M", "n3", id="link-too-narrow")],
    )
    def test_shared_links(self, capacity: str, node: str) -> None:
        profile = Profile(links=[Link(name="trunk", capacity=capacity, zones=[("z1", "z2")])])
        lab = Lab([zoned("n1", "z1", cpu=1), zoned("n2", "z2"), zoned("n3", "z3", "r2")], profile)
        shop = lab.group(group_object("shop", *chain("a", "b", minBandwidth="60M")))
        lab.see(member("b1", "b", on="n1", cpu="1"))
        assert where(lab.place_alone(member("a1", "a", cpu="1"), shop)) == {"a1": node}


class TestScore:
    def test_runners_up_are_the_next_best_three(self) -> None:
        lab = Lab(four())
        shop = lab.group(group_object("shop", *chain("a", "b")))
        lab.see(member("b1", "b", on="n4"))
        (decision,) = lab.place_alone(member("a1", "a"), shop).decisions
        assert decision.node == "n4"
        assert [item.node for item in decision.runner_ups] == ["n3", "n1", "n2"]
        scores = [decision.value, *(item.value for item in decision.runner_ups)]
        assert scores == sorted(scores, reverse=True)
        assert decision.scale is Scale.SCORE
        assert decision.value == pytest.approx(sum(decision.terms.values()))
        assert decision.terms["network"] == 500.0

    def test_ties_go_to_the_same_node_every_time(self) -> None:
        chosen = {
            where(Lab([zoned(f"n{n}") for n in range(20)]).place_alone(lone("p", cpu="1")))["p"] for _ in range(5)
        }
        assert len(chosen) == 1

    def test_prices_count(self) -> None:
        dear, cheap = zoned("dear"), zoned("cheap")
        dear.metadata.annotations["berth.dev/price-cpu"] = "10"
        cheap.metadata.annotations["berth.dev/price-cpu"] = "1"
        lab = Lab([dear, cheap])
        (decision,) = lab.place_alone(lone("p", cpu="1")).decisions
        assert decision.node == "cheap"
        assert decision.terms["price"] == 100.0

    def test_weight_zero_switches_the_price_off(self) -> None:
        dear, cheap = zoned("dear"), zoned("cheap")
        cheap.metadata.annotations["berth.dev/price-cpu"] = "1"
        lab = Lab([dear, cheap], Profile(weights=ObjectiveWeights(price=0)))
        (decision,) = lab.place_alone(lone("p", cpu="1")).decisions
        assert "price" not in decision.terms

    def test_counts_of_nodes(self) -> None:
        lab = Lab([zoned("n1", cpu=1), zoned("n2"), zoned("n3", unschedulable=True)])
        (decision,) = lab.place_alone(lone("p", cpu="2")).decisions
        assert (decision.node, decision.feasible, decision.nodes) == ("n2", 1, 3)
        assert {item.reason: item.count for item in decision.rejections} == {
            "node(s) were unschedulable": 1,
            "Insufficient cpu": 1,
        }

    def test_a_feature_that_is_not_implemented_is_permanent(self) -> None:
        lab = Lab([zoned("n1")])
        outcome = lab.place_alone(lone("p", spec={"resourceClaims": [{"name": "gpu"}]}))
        assert outcome.failures[0].permanent
        assert "spec.resourceClaims" in outcome.failures[0].message
