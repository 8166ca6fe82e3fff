"""Planning a whole AppGroup: joint choice, all or nothing, rules between members, undoing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from berth.kube.objects import OwnerReference, Pod
from berth.network.groups import Group, GroupKey
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Outcome
from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.framework.framework import FilterResult, Framework
from tests.support import builders, kinds
from tests.support.placement import Lab, chain, edges, group_object, lone, member, where, zoned

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def app(lab: Lab, *selectors: str, **arguments: Any) -> Group:
    return lab.group(group_object("shop", *chain(*selectors, **arguments)))


def trio(cpu: str = "1", **arguments: Any) -> list[Pod]:
    return [member(name, name, cpu=cpu, **arguments) for name in ("a", "b", "c")]


def nothing_assumed(lab: Lab) -> bool:
    return not lab.cache.state.pod_count and not lab.cache.members.placed(GroupKey("default", "shop"))


class TestWhole:
    def test_everything_on_one_node_when_it_fits(self) -> None:
        lab = Lab([zoned(f"n{n}", f"z{n % 4}") for n in range(8)])
        outcome = lab.place(app(lab, "a", "b", "c"), *trio())
        assert len(set(where(outcome).values())) == 1
        assert outcome.complete
        assert edges(outcome) == (2, 0.0)
        assert [decision.planned_with for decision in outcome.decisions] == [3, 3, 3]
        assert {decision.group for decision in outcome.decisions} == {("default", "shop")}

    def test_what_does_not_fit_on_one_node_stays_in_one_zone(self) -> None:
        lab = Lab([zoned(f"n{n}", f"z{n % 4 + 1}", "r1" if n % 4 < 2 else "r2", cpu=2) for n in range(16)])
        outcome = lab.place(app(lab, "a", "b", "c"), *trio("1500m"))
        nodes = where(outcome)
        assert len(set(nodes.values())) == 3
        zones = {lab.cache.state.node(lab.cache.state.node_index[n]).metadata.labels[ZONE] for n in nodes.values()}
        assert len(zones) == 1
        assert edges(outcome) == (2, 2.0)
        by_pod = {decision.pod.metadata.name: (decision.edges, decision.edge_cost) for decision in outcome.decisions}
        assert by_pod == {"a": (1, 1.0), "b": (2, 2.0), "c": (1, 1.0)}

    def test_the_same_cluster_gives_the_same_plan(self) -> None:
        def run() -> dict[str, str]:
            lab = Lab([zoned(f"n{n}", f"z{n % 4 + 1}", cpu=2) for n in range(12)])
            return where(lab.place(app(lab, "a", "b", "c"), *trio("1500m")))

        assert run() == run() == run()

    @pytest.mark.parametrize("strategy", ["berth", "phare"])
    def test_every_strategy(self, strategy: str) -> None:
        lab = Lab([zoned("n1"), zoned("n2")], Profile.model_validate({"gang": {"strategy": strategy}}))
        outcome = lab.place(app(lab, "a", "b", "c"), *trio())
        assert outcome.complete
        assert {decision.strategy for decision in outcome.decisions} == {strategy}

    def test_waiting_members_go_to_those_already_placed(self) -> None:
        lab = Lab([zoned(f"n{n}", f"z{n}", cpu=8) for n in range(1, 5)])
        shop = app(lab, "a", "b", "c")
        lab.see(member("a", "a", on="n3", cpu="1"))
        outcome = lab.place(shop, member("b", "b", cpu="1"), member("c", "c", cpu="1"))
        assert where(outcome) == {"b": "n3", "c": "n3"}
        assert [decision.edges for decision in outcome.decisions] == [2, 1]

    def test_a_later_replica_survives_its_node_near_its_neighbours(self) -> None:
        lab = Lab([zoned(f"n{n}", f"z{n}", cpu=8) for n in range(1, 5)])
        shop = app(lab, "a", "b", "c")
        lab.see(*(member(name, name, on="n2", cpu="1") for name in ("a", "b", "c")))
        outcome = lab.place(shop, member("b2", "b", cpu="1"))
        assert where(outcome) == {"b2": "n1"}
        assert (outcome.decisions[0].strategy, outcome.decisions[0].planned_with) == ("replicas", 1)

    def test_a_workload_that_the_group_does_not_know_is_placed_too(self) -> None:
        lab = Lab([zoned("n1")])
        outcome = lab.place(app(lab, "a"), member("a", "a"), member("x", "stranger"))
        assert where(outcome) == {"a": "n1", "x": "n1"}

    def test_group_limits_hold_in_the_joint_plan(self) -> None:
        lab = Lab([zoned("n1", "z1", cpu=1), zoned("n2", "z2", cpu=1), zoned("n3", "z3", "r2", cpu=1)])
        shop = app(lab, "a", "b", maxNetworkCost=5)
        assert sorted(where(lab.place(shop, *trio()[:2])).values()) == ["n1", "n2"]


class TestAllOrNothing:
    def test_too_small_a_cluster_binds_nobody(self) -> None:
        lab = Lab([zoned("n1", cpu=2)])
        outcome = lab.place(app(lab, "a", "b", "c"), *trio())
        assert outcome.decisions == ()
        assert {failure.pod.metadata.name for failure in outcome.failures} == {"a", "b", "c"}
        assert nothing_assumed(lab)

    def test_a_pod_that_fits_nowhere_holds_the_others_with_its_reason(self) -> None:
        lab = Lab([zoned("n1", cpu=8)])
        outcome = lab.place(app(lab, "a", "b", "c"), *trio()[:2], member("c", "c", cpu="9"))
        assert nothing_assumed(lab)
        messages = {failure.pod.metadata.name: failure.message for failure in outcome.failures}
        assert "1 Insufficient cpu" in messages["c"]
        assert "all or nothing" in messages["a"]
        assert "pod c: " in messages["a"]

    def test_partial_places_what_fits(self) -> None:
        lab = Lab([zoned("n1", cpu=2)])
        outcome = lab.place(app(lab, "a", "b", "c"), *trio(), partial=True)
        assert len(outcome.decisions) == 2
        assert len(outcome.failures) == 1
        assert lab.over_committed() == []

    def test_partial_without_anything_that_fits(self) -> None:
        lab = Lab([zoned("n1", cpu=1)])
        outcome = lab.place(app(lab, "a", "b", "c"), *trio("2"), partial=True)
        assert (len(outcome.decisions), len(outcome.failures)) == (0, 3)

    def test_forgetting_a_decision_frees_its_room_and_place(self) -> None:
        lab = Lab([zoned("n1", cpu=3)])
        shop = app(lab, "a", "b", "c")
        outcome = lab.place(shop, *trio())
        lab.cache.forget(outcome.decisions[0].pod)
        assert lab.cache.state.pod_count == 2
        assert len(lab.cache.members.placed(shop.key)) == 2
        again = lab.place(shop, outcome.decisions[0].pod)
        assert again.complete

    def test_a_pod_that_is_bound_after_all_is_not_forgotten(self) -> None:
        lab = Lab([zoned("n1", cpu=3)])
        shop = app(lab, "a", "b", "c")
        (decision, *_) = lab.place(shop, *trio()).decisions
        name = decision.pod.metadata.name
        lab.see(member(name, name, cpu="1", on="n1"))
        lab.cache.forget(decision.pod)
        assert len(lab.cache.members.placed(shop.key)) == 3
        assert lab.cache.state.pod_count == 3

    def test_a_failure_in_the_middle_leaves_nothing_assumed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        lab = Lab([zoned("n1", cpu=8)])
        shop = app(lab, "a", "b", "c")

        run = Framework.filter

        def broken(framework: Framework, cycle: CycleState, **arguments: Any) -> FilterResult:
            if cycle.cluster.pod_count:
                raise RuntimeError("odd unit")
            return run(framework, cycle, **arguments)

        monkeypatch.setattr(Framework, "filter", broken)
        apart = {
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [builders.pod_term(HOST, {"x": "y"})]
                }
            }
        }
        with pytest.raises(RuntimeError, match="odd unit"):
            lab.place(shop, *trio()[:2], member("c", "c", cpu="1", spec=apart))
        assert nothing_assumed(lab)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[CycleState]:
    """The pods that all filters are run for from now on."""
    looks: list[CycleState] = []
    run = Framework.filter

    def counting(framework: Framework, cycle: CycleState, **arguments: Any) -> FilterResult:
        looks.append(cycle)
        return run(framework, cycle, **arguments)

    monkeypatch.setattr(Framework, "filter", counting)
    return looks


def rule(kind: str, topology: str, workload: str) -> dict[str, Any]:
    """A pod spec with one required affinity (or anti-affinity) term towards a workload of the group."""
    term = builders.pod_term(topology, {"appgroup.diktyo.x-k8s.io.workload": workload})
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


class TestRulesBetweenMembers:
    def test_anti_affinity_inside_the_group(self) -> None:
        lab = Lab([zoned("n1", cpu=8), zoned("n2", cpu=8)])
        pods = [member("a", "a", cpu="1"), member("b", "b", cpu="1", spec=rule("podAntiAffinity", HOST, "a"))]
        nodes = where(lab.place(app(lab, "a", "b"), *pods))
        assert nodes["a"] != nodes["b"]

    def test_replicas_that_keep_apart(self) -> None:
        lab = Lab([zoned(f"n{n}", cpu=8) for n in range(4)])
        pods = [member(f"a{n}", "a", cpu="1", spec=rule("podAntiAffinity", HOST, "a")) for n in range(4)]
        nodes = where(lab.place(app(lab, "a"), *pods))
        assert len(set(nodes.values())) == 4

    def test_one_replica_too_many_and_nobody_is_placed(self) -> None:
        lab = Lab([zoned(f"n{n}", cpu=8) for n in range(3)])
        pods = [member(f"a{n}", "a", cpu="1", spec=rule("podAntiAffinity", HOST, "a")) for n in range(4)]
        outcome = lab.place(app(lab, "a"), *pods)
        assert outcome.decisions == ()
        assert len(outcome.failures) == 4
        assert nothing_assumed(lab)

    def test_spread_inside_the_group(self) -> None:
        lab = Lab([zoned("n1", "z1", cpu=8), zoned("n2", "z2", cpu=8)])
        spec = {"topologySpreadConstraints": [builders.spread(ZONE, {"appgroup.diktyo.x-k8s.io.workload": "a"})]}
        pods = [member(f"a{n}", "a", cpu="1", spec=spec) for n in range(4)]
        nodes = list(where(lab.place(app(lab, "a"), *pods)).values())
        assert sorted(nodes) == ["n1", "n1", "n2", "n2"]

    @pytest.mark.parametrize("order", [["a", "b"], ["b", "a"]], ids=["needed-first", "needed-last"])
    def test_required_affinity_towards_a_member_of_the_same_plan(self, order: list[str]) -> None:
        lab = Lab([zoned("n1", "z1", cpu=2), zoned("n2", "z2", cpu=2), zoned("n3", "z2", cpu=2)])
        pods = {
            "a": member("a", "a", cpu="1500m"),
            "b": member("b", "b", cpu="1500m", spec=rule("podAffinity", ZONE, "a")),
        }
        shop = lab.group(group_object("shop", *chain(*order), order=order))
        nodes = where(lab.place(shop, *pods.values()))
        assert set(nodes.values()) == {"n2", "n3"}

    def test_a_chain_of_required_affinities_is_settled_in_turns(self) -> None:
        lab = Lab([zoned("n1", cpu=8), zoned("n2", cpu=8)])
        pods = [
            member("a", "a", cpu="1", spec=rule("podAffinity", HOST, "b")),
            member("b", "b", cpu="1", spec=rule("podAffinity", HOST, "c")),
            member("c", "c", cpu="1"),
        ]
        nodes = where(lab.place(app(lab, "a", "b", "c"), *pods))
        assert len(nodes) == 3
        assert len(set(nodes.values())) == 1

    def test_a_long_chain_of_required_affinities_looks_at_each_pod_a_few_times(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lab = Lab([zoned(f"n{n}", cpu=8) for n in range(4)])
        names = [f"w{n}" for n in range(30)]
        pods = [
            member(name, name, cpu="1", spec=rule("podAffinity", ZONE, following))
            for name, following in pairwise(names)
        ]
        looks = counted(monkeypatch)
        outcome = lab.place(app(lab, *names), *pods, member(names[-1], names[-1], cpu="1"))
        assert len(outcome.decisions) == len(names)
        assert len(looks) <= 4 * len(names)

    def test_replicas_that_prefer_to_keep_apart_meet_their_peers_by_node(self, monkeypatch: pytest.MonkeyPatch) -> None:
        lab = Lab([zoned(f"n{n}", cpu=8) for n in range(4)])
        soft = {"weight": 50, "podAffinityTerm": builders.pod_term(HOST, {"appgroup.diktyo.x-k8s.io.workload": "a"})}
        spec = {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [soft]}}}
        pods = [member(f"{name}{n}", name, cpu="250m", spec=spec) for name in ("a", "b") for n in range(12)]
        looks = counted(monkeypatch)
        outcome = lab.place(app(lab, "a", "b"), *pods)
        assert len(outcome.decisions) == len(pods)
        assert max(len(cycle.edges.nodes) for cycle in looks) <= 4
        assert max(len(cycle.edges) for cycle in looks) == 12

    def test_an_affinity_that_nobody_meets_fails_the_group(self) -> None:
        lab = Lab([zoned("n1", cpu=8)])
        pods = [member("a", "a"), member("b", "b", spec=rule("podAffinity", HOST, "nobody"))]
        outcome = lab.place(app(lab, "a", "b"), *pods)
        assert outcome.decisions == ()
        assert nothing_assumed(lab)
        assert any("pod affinity" in failure.message for failure in outcome.failures)

    def test_host_ports(self) -> None:
        lab = Lab([zoned("n1", cpu=8), zoned("n2", cpu=8)])
        pods = [member(name, name, cpu="1", host_ports=[80]) for name in ("a", "b")]
        assert len(set(where(lab.place(app(lab, "a", "b"), *pods)).values())) == 2

    def test_a_moved_pod_keeps_the_hard_network_limit(self) -> None:
        """c may not share a node with a; its only free node in reach of b decides, not the emptiest one."""
        lab = Lab(
            [
                zoned("n1", "z1", "r1", cpu=3),
                zoned("n2", "z2", "r1", cpu=1),
                zoned("far", "z3", "r2", cpu=64),
            ]
        )
        shop = app(lab, "a", "b", "c", maxNetworkCost=5)
        pods = [
            member("a", "a", cpu="1"),
            member("b", "b", cpu="1"),
            member("c", "c", cpu="1", spec=rule("podAntiAffinity", HOST, "a")),
        ]
        nodes = where(lab.place(shop, *pods))
        assert "far" not in nodes.values() or set(nodes.values()) == {"far"}
        assert nodes["a"] != nodes["c"]
        assert lab.over_committed() == []

    def test_a_foreign_pods_anti_affinity_is_respected(self) -> None:
        lab = Lab([zoned("n1", cpu=8), zoned("n2", cpu=8)])
        lab.see(lone("hermit", on="n1", spec=rule("podAntiAffinity", HOST, "a")))
        assert set(where(lab.place(app(lab, "a"), member("a1", "a"), member("a2", "a"))).values()) == {"n2"}


def reject(lab: Lab, owner_uid: str, node: str) -> None:
    pod = lone("rejected", on=node)
    pod.metadata.owner_references = [owner(owner_uid)]
    lab.cache.note_rejection(pod)


class TestRecentlyRejected:
    def test_owners_pods_keep_away_and_others_do_not(self) -> None:
        lab = Lab([zoned("n1"), zoned("n2")])
        reject(lab, "owner-1", "n1")
        mine, other = lone("mine"), lone("other")
        mine.metadata.owner_references = [owner("owner-1")]
        other.metadata.owner_references = [owner("owner-2")]
        assert where(lab.place_alone(mine)) == {"mine": "n2"}
        lab.cache.update_node(zoned("n2", unschedulable=True))
        assert where(lab.place_alone(other)) == {"other": "n1"}

    def test_same_template_different_owner_in_one_group(self) -> None:
        lab = Lab([zoned("n1", cpu=8)])
        reject(lab, "owner-1", "n1")
        first, second = member("a1", "a"), member("a2", "a")
        first.metadata.owner_references = [owner("owner-1")]
        second.metadata.owner_references = [owner("owner-2")]
        outcome: Outcome = lab.place(app(lab, "a"), first, second, partial=True)
        assert where(outcome) == {"a2": "n1"}
        assert "recently rejected" in outcome.failures[0].message


def owner(uid: str) -> OwnerReference:
    return OwnerReference(kind="ReplicaSet", name=uid, uid=uid, controller=True)


def test_a_group_with_two_way_dependencies() -> None:
    lab = Lab([zoned("n1", cpu=1), zoned("n2", cpu=1)])
    shop = lab.group(group_object("shop", kinds.workload("a", "b"), kinds.workload("b", "a")))
    outcome = lab.place(shop, *trio()[:2])
    assert edges(outcome) == (2, 2.0)
