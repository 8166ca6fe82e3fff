"""One pod of an AppGroup by itself: the node where the objective of joint plans changes least."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects import Pod, Service
from berth.network.costs import NetworkCosts
from berth.network.groups import Group
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import ALONE, Alternative, Decision, Scale
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.budget import finish
from berth.scheduling.gang.problem import Weights
from berth.scheduling.gang.strategies import REPLICAS
from berth.scheduling.replica_plan.question import pose
from berth.scheduling.replicas.one_more import one_more
from tests.support import builders, kinds, plans
from tests.support.placement import Lab, both_ways, chain, group_object, lone, member, where, zoned

WORKLOAD = "appgroup.diktyo.x-k8s.io.workload"
SCORES = Profile.model_validate({"gang": {"alone": "score"}})
APART = {
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 40, "podAffinityTerm": builders.pod_term("kubernetes.io/hostname", {WORKLOAD: "a"})}
            ]
        }
    }
}
REGIONS = {"z0": "r0", "z1": "r0", "z2": "r0", "z3": "r1", "z4": "r2"}
"""Zones and their regions; r2 is far away."""
WIDE = NetworkCosts(
    source="default/net",
    weight_sets=("UserDefined",),
    zones=both_ways({("z0", "z1"): 4.0, ("z0", "z2"): 30.0, ("z1", "z2"): 30.0}),
    regions=both_ways({("r0", "r1"): 27.0, ("r0", "r2"): 3000.0, ("r1", "r2"): 2973.0}),
)


def cluster(*zones: str, cpu: str = "4", **arguments: Any) -> Lab:
    nodes = [
        zoned(f"n{n}", zone, REGIONS[zone], cpu=cpu, labels={"kubernetes.io/hostname": f"n{n}"})
        for n, zone in enumerate(zones)
    ]
    return Lab(nodes, **{"costs": WIDE, **arguments})


def cost_of(lab: Lab, callers: list[str], callees: list[str], node: str) -> float:
    """What calls of a pod on a node and to it cost; the mean of each edge."""
    state = lab.cache.state
    place = {
        name: lab.planner.view.places[lab.planner.view.model.location[slot]] for name, slot in state.node_index.items()
    }

    def between(start: str, end: str) -> float:
        return 0.0 if start == end else lab.costs.between(place[start], place[end]) or 0.0

    return sum(between(caller, node) / len(callers) for caller in callers) + sum(
        between(node, callee) / len(callees) for callee in callees
    )


def service(workload: str, **spec: Any) -> Service:
    body = {"metadata": {"name": workload, "namespace": "default"}, "spec": {"selector": {WORKLOAD: workload}, **spec}}
    return msgspec.convert(body, Service)


def nodes_of(decision: Decision) -> list[Decision | Alternative]:
    """The node that was chosen, and the next best ones."""
    return [decision, *decision.runner_ups]


class TestCostsOverThreeOrdersOfMagnitude:
    @settings(max_examples=60, deadline=None)
    @given(
        zones=st.lists(st.sampled_from(list(REGIONS)), min_size=2, max_size=12),
        callers=st.lists(st.integers(0, 11), max_size=4),
        callees=st.lists(st.integers(0, 11), min_size=1, max_size=4),
        busy=st.lists(st.sampled_from(["100m", "2", "3900m"]), min_size=12, max_size=12),
    )
    def test_the_cheapest_node_with_room(
        self, zones: list[str], callers: list[int], callees: list[int], busy: list[str]
    ) -> None:
        lab = cluster(*zones, "z4", cpu="4")
        shop = lab.group(group_object("shop", *chain("a", "b", "c")))
        nodes = [f"n{n}" for n in range(len(zones) + 1)]
        lab.see(*(lone(f"busy-{node}", on=node, cpu=cpu) for node, cpu in zip(nodes, busy, strict=False)))
        ends = {"a": [nodes[n % len(nodes)] for n in callers], "c": [nodes[n % len(nodes)] for n in callees]}
        for workload, homes in ends.items():
            lab.see(*(member(f"{workload}{n}", workload, on=home) for n, home in enumerate(homes)))
        open_nodes = [node for node, cpu in zip(nodes, [*busy, "100m"][: len(nodes)], strict=True) if cpu != "3900m"]
        outcome = lab.place_alone(member("b", "b", cpu="1"), shop)
        if not open_nodes:
            assert not outcome.decisions
            return
        costs = {node: cost_of(lab, ends["a"], ends["c"], node) for node in open_nodes}
        assert costs[where(outcome)["b"]] <= 1.1 * min(costs.values()) + 1e-9

    def test_upstreams_scaling_does_not_tell_27_from_648(self) -> None:
        """The score of a profile that asks for it: whole points from the best to the worst node."""
        found = {}
        for profile in (Profile(), SCORES):
            lab = cluster("z0", "z2", "z4", profile=profile)
            shop = lab.group(group_object("shop", *chain("a", "b")))
            lab.see(member("b", "b", on="n0"), lone("busy", on="n0", cpu="3"))
            found[profile.gang.alone] = where(lab.place_alone(member("a", "a", cpu="500m"), shop))["a"]
        assert found == {"cost": "n0", "score": "n1"}

    def test_berth_plan(self) -> None:
        """Nine nodes of three zones at 1, 4 and 30, the nearest nearly full, and an empty one at 3000."""
        nodes = [plans.node(f"n{n}", zone=f"z{n % 3}", cpu="4") for n in range(9)]
        nodes.append(plans.node("far", zone="z9", cpu="64"))
        pairs = dict(zip(combinations(("z0", "z1", "z2"), 2), (4, 30, 30), strict=True))
        pairs |= {(zone, "z9"): 3000 for zone in ("z0", "z1", "z2")}
        busy = [plans.pod(f"busy{n}", cpu="3", nodeName=f"n{n}") for n in range(0, 9, 3)]
        back = plans.pod("back", cpu="100m", group="shop", workload="back", nodeName="n0")
        made = plans.made(
            *nodes,
            *busy,
            back,
            plans.topology(pairs),
            plans.appgroup("shop", {"front": ["back"], "back": []}),
            plans.pod("front", cpu="100m", group="shop", workload="front"),
        )
        assert plans.where(made)["front"] == "n0"


class TestObjective:
    def everything(self, lab: Lab, shop: Group, pod: Pod) -> np.ndarray[Any, Any]:
        """What a problem of the whole application says of the pod on every node."""
        lab.see(pod)
        state = lab.cache.state
        result = FilterResult(mask=state.alive.copy(), nodes=state.size)
        infrastructure = lab.planner.view.current(lab.costs, lab.cache.bandwidth())
        question = finish(
            pose(
                shop,
                [Candidate(state.info(pod), result, {})],
                lab.cache,
                lambda: infrastructure,
                lab.planner.view.places,
                Weights(),
                enforce_limits=False,
            )
        )
        assert question is not None
        changes = one_more(question.problem).values()
        total: np.ndarray = np.sum([np.zeros(state.size), *changes], axis=0)
        return total

    @pytest.mark.parametrize(
        ("prefer", "spread"),
        [("", "soft"), ("PreferSameZone", "soft"), ("PreferSameNode", "soft"), ("PreferSameZone", "zone")],
    )
    @pytest.mark.parametrize("rule", [{}, APART], ids=["no rule", "preferred anti-affinity"])
    @pytest.mark.parametrize("workload", ["a", "b", "c", "d", "stranger"])
    def test_it_is_that_of_the_joint_plan(self, workload: str, rule: dict[str, Any], prefer: str, spread: str) -> None:
        lab = cluster("z0", "z0", "z1", "z2", "z3")
        # Calls of a workload to itself say nothing.
        calls = {"a": "b", "b": "bc", "c": "c", "d": "c"}
        group = group_object("shop", *(kinds.workload(name, *called) for name, called in calls.items()))
        group.metadata.annotations = {"berth.dev/spread": spread}
        shop = lab.group(group)
        for n, place in enumerate(("an0", "an2", "bn0", "bn3", "bn3", "bn3", "bn0", "cn1", "cn4", "dn2")):
            name, node = place[0], place[1:]
            lab.see(member(f"{name}{n}", name, on=node, cpu="100m", spec=rule if name == "a" else {}))
        if prefer:
            for name in "bc":
                lab.cache.update_service(service(name, trafficDistribution=prefer))
        pod = member("new", workload, cpu="100m", spec=rule)
        expected = self.everything(lab, shop, pod)
        (decision,) = lab.place_alone(pod, shop).decisions
        options = [(decision.node, decision.value, decision.terms)]
        options += [(item.node, item.value, item.terms) for item in decision.runner_ups]
        for node, value, terms in options:
            assert value - terms.get("scores", 0.0) == pytest.approx(expected[lab.cache.state.node_index[node]])
            assert value == pytest.approx(sum(terms.values()))
        assert [value for _, value, _ in options] == sorted(value for _, value, _ in options)
        assert (decision.strategy, decision.scale, decision.planned_with) == (REPLICAS, Scale.COST, 1)

    def test_nodes_without_a_zone_fail_each_by_itself(self) -> None:
        """Also those that are like one which has a replica."""
        apart = {"topology.kubernetes.io/region": "r0"}
        lab = Lab([*(builders.node(f"n{n}", labels=apart) for n in range(3)), zoned("n3", "z0", "r0")], costs=WIDE)
        shop = lab.group(group_object("shop", *chain("a", "b")))
        lab.see(member("a-old", "a", on="n0", cpu="100m"))
        (decision,) = lab.place_alone(member("new", "a", cpu="100m"), shop).decisions
        found = {item.node: item.terms.get("survival", 0.0) for item in nodes_of(decision)}
        assert found == {"n0": 6.0, "n1": 0.0, "n2": 0.0, "n3": 0.0}

    def test_what_must_be_survived_is_priced_as_in_the_joint_plan(self) -> None:
        """It is dearer than the load of endpoints that keep calls near."""
        lab = cluster("z0", "z0", "z1")
        group = group_object("shop", *chain("a", "b"))
        group.metadata.annotations = {"berth.dev/spread": "node"}
        shop = lab.group(group)
        lab.cache.update_service(service("b", trafficDistribution="PreferSameZone"))
        lab.see(*(member(f"{name}-old", name, on="n0", cpu="100m") for name in "ab"))
        pod = member("new", "a", cpu="100m")
        expected = self.everything(lab, shop, pod)
        (decision,) = lab.place_alone(pod, shop).decisions
        found = {item.node: item.value - item.terms.get("scores", 0.0) for item in nodes_of(decision)}
        assert found == pytest.approx({node: expected[slot] for node, slot in lab.cache.state.node_index.items()})
        assert found["n0"] > 1000

    def test_the_node_that_all_others_share_is_left(self) -> None:
        lab = cluster("z1", "z0", "z0", "z0")
        shop = lab.group(group_object("shop", *chain("a", "b")))
        lab.see(*(member(f"{name}-old", name, on="n1") for name in "ab"))
        (decision,) = lab.place_alone(member("a", "a"), shop).decisions
        # One call more that leaves its node, for 1 of two; the zone that all share costs 1.
        assert decision.node in ("n2", "n3")
        assert {name: decision.terms[name] for name in ("network", "survival")} == {"network": 0.5, "survival": 1.0}
        assert {item.node: item.terms.get("survival", 0.0) for item in decision.runner_ups}["n1"] == 6.0

    @pytest.mark.parametrize(
        ("stated", "node"), [("none", "n0"), ("soft", "n1"), ("node", "n1"), ("zone", "n2"), ("nonsense", "n2")]
    )
    def test_what_the_appgroup_must_survive(self, stated: str, node: str) -> None:
        """A node of the zone costs 0.5 more, another zone 15; the profile wants a zone survived."""
        lab = cluster("z0", "z0", "z2", profile=Profile.model_validate({"spread": "zone"}))
        group = group_object("shop", *chain("a", "b"))
        group.metadata.annotations = {"berth.dev/spread": stated}
        shop = lab.group(group)
        lab.see(*(member(f"{name}-old", name, on="n0", cpu="100m") for name in "ab"))
        assert where(lab.place_alone(member("a", "a", cpu="100m"), shop)) == {"a": node}

    @pytest.mark.parametrize(
        ("spreading", "node"),
        [
            pytest.param({}, "n1", id="kube-scheduler's"),
            pytest.param({"podTopologySpread": {"defaultConstraints": [], "defaultingType": "List"}}, "n0", id="none"),
        ],
    )
    def test_replicas_are_spread_by_the_defaults_of_the_profile(self, spreading: dict[str, Any], node: str) -> None:
        """The fourth on one node is one too many of three, which costs 5; beside the node calls cost 1."""
        lab = cluster("z0", "z0", profile=Profile.model_validate({"spread": "none", **spreading}))
        shop = lab.group(group_object("shop", *chain("a", "b")))
        lab.see(member("b", "b", on="n0", cpu="100m"), *(member(f"a{n}", "a", on="n0", cpu="100m") for n in range(3)))
        assert where(lab.place_alone(member("a3", "a", cpu="100m"), shop)) == {"a3": node}

    def test_a_service_that_keeps_calls_in_the_zone(self) -> None:
        """All endpoints: next to most of them. PreferSameZone: where the caller has none and its calls go far."""
        found = {}
        for prefer in ("", "PreferSameZone"):
            lab = cluster("z0", "z0", "z0", "z2", "z2")
            shop = lab.group(group_object("shop", *chain("a", "b")))
            lab.see(member("a0", "a", on="n0"), member("a1", "a", on="n1"), member("a2", "a", on="n3"))
            lab.see(member("b0", "b", on="n0"), member("b1", "b", on="n1"))
            lab.cache.update_service(service("b", **({"trafficDistribution": prefer} if prefer else {})))
            found[prefer] = where(lab.place_alone(member("b2", "b"), shop))["b2"]
        assert found[""] in ("n0", "n1", "n2")
        assert found["PreferSameZone"] == "n3"

    def test_one_zone_name_in_two_regions_is_one_zone_to_a_service(self) -> None:
        """Calls from n1 go to n0 in the other region, 20 away, and not to n2, 5 away."""
        lab = Lab([zoned("n0", "z1", "r1", cpu=1), zoned("n1", "z1", "r2", cpu=4), zoned("n2", "z2", "r2", cpu=1)])
        shop = lab.group(group_object("shop", *chain("a", "b")))
        lab.cache.update_service(service("b", trafficDistribution="PreferSameZone"))
        lab.see(member("b0", "b", on="n0"), member("b1", "b", on="n2"))
        (decision,) = lab.place_alone(member("a", "a", cpu="2"), shop).decisions
        assert decision.node == "n1"
        assert decision.terms["network"] == pytest.approx(0.95 * 20 + 0.05 * (20 + 5) / 2)

    def test_nodes_come_and_go(self) -> None:
        lab = cluster("z0", "z1")
        shop = lab.group(group_object("shop", *chain("a", "b")))
        lab.see(member("b", "b", on="n1"))
        assert where(lab.place_alone(member("a0", "a"), shop)) == {"a0": "n1"}
        lab.cache.update_node(zoned("n2", "z4", REGIONS["z4"]))
        lab.see(member("b1", "b", on="n2"), member("b2", "b", on="n2"))
        assert where(lab.place_alone(member("a1", "a"), shop)) == {"a1": "n2"}


def test_a_replica_is_drawn_to_no_pod_that_has_one_near_already() -> None:
    """Three pods would be near replicas of `a`, and are near the first."""
    near: dict[str, Any] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100}]}}
    near["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"] = builders.pod_term(
        "kubernetes.io/hostname", {WORKLOAD: "a"}
    )
    lab = cluster("z0", "z1")
    shop = lab.group(group_object("shop", *chain("a"), *chain("b")))
    lab.see(member("a0", "a", on="n0"), *(member(f"b{n}", "b", on="n0", spec={"affinity": near}) for n in range(3)))
    (decision,) = lab.place_alone(member("a1", "a"), shop).decisions
    assert decision.node == "n1"
    assert "rules" not in decision.terms


class TestScores:
    def test_the_emptier_of_two_nodes_that_cost_the_same(self) -> None:
        lab = cluster("z0", "z0", "z1")
        shop = lab.group(group_object("shop", *chain("a", "b")))
        lab.see(lone("busy", on="n0", cpu="3"), member("b", "b", on="n2"))
        (decision,) = lab.place_alone(member("a", "a", cpu="3"), shop).decisions
        assert decision.node == "n2"
        assert [item.node for item in decision.runner_ups] == ["n1"]
        lab.see(member("b2", "b", on="n1"))
        (decision,) = lab.place_alone(member("a1", "a", cpu="500m"), shop).decisions
        assert decision.node == "n1"

    @pytest.mark.parametrize("replicas", [0, 1, 3])
    def test_points_of_a_workload_count_once_whatever_its_replicas(self, replicas: int) -> None:
        lab = cluster("z0", "z0", profile=Profile.model_validate({"weights": {"scores": 8}}))
        shop = lab.group(group_object("shop", *chain("a", "b")))
        lab.see(*(member(f"old{n}", "a", on="n1", cpu="1m") for n in range(replicas)))
        decision = lab.place_alone(member("new", "a", cpu="500m"), shop).decisions[0]
        found = {each.node: each.terms["scores"] for each in nodes_of(decision)}
        assert 0 < found["n0"] == pytest.approx(self.empty() / (replicas + 1))

    @staticmethod
    def empty() -> float:
        """What points of an empty node cost the first replica of a workload."""
        lab = cluster("z0", profile=Profile.model_validate({"weights": {"scores": 8}}))
        shop = lab.group(group_object("shop", *chain("a", "b")))
        return lab.place_alone(member("new", "a", cpu="500m"), shop).decisions[0].terms["scores"]

    @pytest.mark.parametrize(("scores", "node"), [(0.05, "n0"), (0.0, "n0"), (1000.0, "n1")])
    def test_they_move_no_pod_away_from_its_application(self, scores: float, node: str) -> None:
        lab = cluster("z0", "z2", profile=Profile.model_validate({"weights": {"scores": scores}}))
        shop = lab.group(group_object("shop", *chain("a", "b")))
        lab.see(member("b", "b", on="n0", cpu="100m"), lone("busy", on="n0", cpu="3"))
        (decision,) = lab.place_alone(member("a", "a", cpu="500m"), shop).decisions
        assert decision.node == node
        assert ("scores" in decision.terms) is bool(scores)

    def test_pods_without_an_appgroup_go_by_scores(self) -> None:
        (decision,) = cluster("z0", "z1").place_alone(lone("p", cpu="1")).decisions
        assert (decision.strategy, decision.scale) == (ALONE, Scale.SCORE)
        assert "NodeResourcesFit" in decision.terms

    def test_a_profile_that_asks_for_scores(self) -> None:
        lab = cluster("z0", "z1", profile=SCORES)
        shop = lab.group(group_object("shop", *chain("a", "b")))
        lab.see(member("b", "b", on="n1"))
        (decision,) = lab.place_alone(member("a", "a"), shop).decisions
        assert (decision.strategy, decision.terms["network"]) == (ALONE, 500.0)
