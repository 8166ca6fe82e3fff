"""One pod by itself: network limits, thresholds, bandwidth, prices, runners-up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from berth.network.costs import NO_COSTS
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Outcome, Scale
from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.framework.reasons import MAX_NETWORK_COST_EXCEEDED, NETWORK_OVERHEAD
from berth.scheduling.framework.rejection import Rejection
from berth.scheduling.single import best_of
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
        assert (decision.edges, decision.edge_cost, decision.strategy) == (1, 0.0, "replicas")

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
        assert not outcome.failures[0].blocker
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


class TestScore:
    def test_runners_up_are_the_next_best_three(self) -> None:
        lab = Lab(four(), Profile.model_validate({"gang": {"alone": "score"}}))
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

    def test_counts_of_nodes(self) -> None:
        lab = Lab([zoned("n1", cpu=1), zoned("n2"), zoned("n3", unschedulable=True)])
        (decision,) = lab.place_alone(lone("p", cpu="2")).decisions
        assert (decision.node, decision.feasible, decision.nodes) == ("n2", 1, 3)
        assert {item.reason: item.count for item in decision.rejections} == {
            "node(s) were unschedulable": 1,
            "Insufficient cpu": 1,
        }

    def test_a_feature_that_is_not_implemented_blocks_the_pod(self) -> None:
        lab = Lab([zoned("n1")])
        outcome = lab.place_alone(lone("p", spec={"resourceClaims": [{"name": "gpu"}]}))
        assert "spec.resourceClaims" in outcome.failures[0].blocker


class TestAdmitted:
    """Callers that are placed keep what they were admitted with: it decides where those they call may go."""

    @pytest.mark.parametrize(
        ("admitted", "stated", "fits"),
        [
            pytest.param('{"b": 60000000}', chain("a", "b", minBandwidth="1"), False, id="more-than-stated-now"),
            pytest.param('{"b": 60000000}', chain("b", "a"), False, id="no-longer-stated"),
            pytest.param('{"b": 10000000}', chain("a", "b", minBandwidth="60M"), True, id="less-than-stated-now"),
            pytest.param("{}", chain("a", "b", minBandwidth="60M"), True, id="nothing"),
            pytest.param("", chain("a", "b", minBandwidth="60M"), False, id="bound-by-another-scheduler"),
        ],
    )
    def test_a_callee_is_placed_by_it(self, admitted: str, stated: list[dict[str, Any]], fits: bool) -> None:
        lab = Lab([zoned("n1", cpu=1, **NET), zoned("n2", cpu=1, network_aware_com__bandwidth="50M")])
        shop = lab.group(group_object("shop", *stated))
        caller = member("a1", "a", on="n1", cpu="1")
        caller.metadata.annotations = {"berth.dev/admitted-bandwidth": admitted}
        lab.see(caller)
        outcome = lab.place_alone(member("b1", "b", cpu="1"), shop)
        assert where(outcome) == ({"b1": "n2"} if fits else {})
        assert len(outcome.failures) == (not fits)


class TestEquals:
    """Nodes that score alike are not filled one after the other: who must be on one of them would find it full."""

    @pytest.mark.parametrize(
        ("rooms", "expected"),
        [
            pytest.param({"n1": 10, "n2": 10}, {"n1": 3, "n2": 3}, id="in-turn"),
            pytest.param({"n1": 20, "n2": 10}, {"n1": 4, "n2": 2}, id="by-share-of-their-room"),
        ],
    )
    def test_pods_are_spread_over_them(self, rooms: dict[str, int], expected: dict[str, int]) -> None:
        # More is requested than there is, as kube-scheduler counts pods without requests: no plugin tells nodes apart.
        nodes = [zoned(name, cpu="100m", memory="100Mi", pods=room) for name, room in rooms.items()]
        lab, found = Lab(nodes), dict.fromkeys(rooms, 0)
        lab.see(*(lone(f"old-{name}", on=name, cpu="100m", memory="100Mi") for name in rooms))
        for name, room in rooms.items():
            lab.see(*(lone(f"old-{name}-{number}", on=name) for number in range(room // 10 - 1)))
        for number in range(sum(expected.values())):
            for node in where(lab.place_alone(lone(f"p{number}"))).values():
                found[node] += 1
        assert found == expected

    @pytest.mark.parametrize(
        ("values", "best", "others"),
        [
            pytest.param([np.nan, 5.0, 1.0], "n3", ["n2"], id="some-unknown"),
            pytest.param([np.nan, np.nan, np.nan], "n2", [], id="all-unknown"),
            pytest.param([np.inf, np.inf, np.inf], "n2", [], id="all-infinite"),
            pytest.param([np.inf, 5.0, np.inf], "n2", [], id="some-infinite"),
        ],
    )
    def test_values_that_are_no_numbers_come_last(self, values: list[float], best: str, others: list[str]) -> None:
        names = ["n1", "n2", "n3"]
        lab = Lab([zoned(name) for name in names])
        lab.see(lone("old-1", on="n1"), lone("old-3", on="n3"))
        state = lab.cache.state
        cycle = CycleState(state.info(lone("p")), state)
        choice = best_of(cycle, state.alive, np.array(values), {}, scale=Scale.COST)
        assert state.node_name(choice.slot) == best
        assert [each.node for each in choice.runner_ups] == others

    @pytest.mark.filterwarnings("ignore::RuntimeWarning")
    def test_a_weight_that_is_too_great_stops_no_pod(self) -> None:
        lab = Lab(four(), Profile.model_validate({"weights": {"network": 1.7e308}}))
        shop = lab.group(group_object("shop", *chain("a", "b")))
        lab.see(member("b1", "b", on="n3"))
        assert where(lab.place_alone(member("a2", "a"), shop)).keys() == {"a2"}

    def test_the_lowest_slot_is_last(self) -> None:
        assert where(Lab([zoned("n1"), zoned("n2")]).place_alone(lone("p"))) == {"p": "n1"}

    def test_a_better_score_wins_over_room(self) -> None:
        lab = Lab([zoned("n1", cpu=4), zoned("n2", cpu=4)])
        lab.see(lone("big", on="n1", cpu="2"), *(lone(f"small-{number}", on="n2") for number in range(3)))
        assert where(lab.place_alone(lone("p"))) == {"p": "n2"}
