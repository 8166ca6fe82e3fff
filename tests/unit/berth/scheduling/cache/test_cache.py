"""The cache of the cluster: what every event means, and who should be looked at again."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import CustomObject, OwnerReference, Pod
from berth.network.costs import NO_COSTS
from berth.scheduling.cache.cache import AVOID_SECONDS, Cache, PodChange, rejected_by_kubelet
from berth.scheduling.configuration import Profile, TopologyReference
from tests.support import builders, kinds
from tests.support.placement import Clock, chain, group_object, lone, member, zoned

SHOP = ("default", "shop")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> Cache:
    made = Cache(clock=clock)
    made.update_node(zoned("n1"))
    made.update_node(zoned("n2"))
    return made


def owned(pod: Pod, owner: str = "rs-1") -> Pod:
    pod.metadata.owner_references = [OwnerReference(kind="ReplicaSet", name=owner, uid=owner, controller=True)]
    return pod


def failed(pod: Pod, reason: str) -> Pod:
    pod.status.phase, pod.status.reason = "Failed", reason
    return pod


class TestPods:
    def test_waiting(self, cache: Cache) -> None:
        assert cache.update_pod(member("a1", "a")) == PodChange(waiting=True, group=SHOP, joined=True)
        assert cache.update_pod(member("a1", "a")) == PodChange(waiting=True, group=SHOP)

    @pytest.mark.parametrize(
        "pod",
        [
            pytest.param(member("a1", "a", deleting=True), id="being-deleted"),
            pytest.param(member("a1", "a", spec={"schedulingGates": [{"name": "later"}]}), id="gated"),
        ],
    )
    def test_neither_waiting_nor_a_member(self, cache: Cache, pod: Pod) -> None:
        assert cache.update_pod(pod) == PodChange()
        assert cache.members.of(SHOP) == []

    def test_a_pod_whose_gate_opens_joins(self, cache: Cache) -> None:
        cache.update_pod(member("a1", "a", spec={"schedulingGates": [{"name": "later"}]}))
        assert cache.update_pod(member("a1", "a")) == PodChange(waiting=True, group=SHOP, joined=True)

    def test_bound_elsewhere(self, cache: Cache) -> None:
        change = cache.update_pod(member("a1", "a", on="n1"))
        assert change == PodChange(group=SHOP, assigned=True, joined=True)
        assert cache.update_pod(member("a1", "a", on="n1")) == PodChange(group=SHOP)

    def test_changed_labels_of_a_bound_pod_may_help_others(self, cache: Cache) -> None:
        cache.update_pod(lone("p", on="n1"))
        assert cache.update_pod(lone("p", on="n1", labels={"app": "db"})).assigned

    def test_an_assumed_pod_is_not_undone_by_a_stale_waiting_event(self, cache: Cache) -> None:
        pod = member("a1", "a", cpu="1")
        cache.update_pod(pod)
        cache.state.assume(pod, "n1")
        cache.members.move(pod.metadata.uid, node="n1")
        assert cache.update_pod(member("a1", "a", cpu="1")) == PodChange(group=SHOP)
        assert [placed.node for placed in cache.members.placed(SHOP)] == ["n1"]
        assert cache.state.used[0, 0] == 1000

    def test_the_confirmation_of_an_assumed_pod_frees_nothing(self, cache: Cache) -> None:
        pod = lone("p", cpu="1")
        cache.update_pod(pod)
        cache.state.assume(pod, "n1")
        assert cache.update_pod(lone("p", cpu="1", on="n1")) == PodChange(assigned=True)

    def test_an_assumed_pod_that_is_bound_elsewhere_frees_its_room(self, cache: Cache) -> None:
        pod = lone("p", cpu="1")
        cache.update_pod(pod)
        cache.state.assume(pod, "n1")
        assert cache.update_pod(lone("p", cpu="1", on="n2")).freed
        assert cache.state.used[:, 0].tolist() == [0, 1000]

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_a_finished_pod_frees_room_and_leaves_its_group(self, cache: Cache, phase: str) -> None:
        cache.update_pod(member("a1", "a", on="n1", cpu="1"))
        change = cache.update_pod(member("a1", "a", on="n1", cpu="1", phase=phase))
        assert change == PodChange(freed=True, group=SHOP)
        assert cache.state.pod_count == 0
        assert cache.members.of(SHOP) == []

    def test_deleting_an_unknown_pod_frees_nothing(self, cache: Cache) -> None:
        assert cache.delete_pod(lone("p")) == PodChange()


class TestRejection:
    @pytest.mark.parametrize(
        ("reason", "phase", "rejected"),
        [
            ("OutOfcpu", "Failed", True),
            ("OutOfpods", "Failed", True),
            ("NodeAffinity", "Failed", True),
            ("NodePorts", "Failed", True),
            ("UnexpectedAdmissionError", "Failed", True),
            ("TopologyAffinityError", "Failed", True),
            ("Evicted", "Failed", False),
            ("OOMKilled", "Failed", False),
            ("", "Failed", False),
            ("OutOfcpu", "Running", False),
        ],
    )
    def test_reasons(self, reason: str, phase: str, rejected: bool) -> None:
        pod = lone("p", phase=phase)
        pod.status.reason = reason
        assert rejected_by_kubelet(pod) is rejected

    def reject(self, cache: Cache, pod: Pod) -> PodChange:
        cache.update_pod(pod)
        return cache.update_pod(failed(owned(lone(pod.metadata.name, on=pod.spec.node_name)), "OutOfcpu"))

    def test_the_owners_pods_avoid_the_node_for_a_while(self, cache: Cache, clock: Clock) -> None:
        change = self.reject(cache, owned(lone("p", on="n1")))
        assert change == PodChange(freed=True, rejected=True)
        assert cache.recently_rejected(owned(lone("next"))) == {"n1"}
        assert cache.recently_rejected(owned(lone("foreign"), "rs-2")) == frozenset()
        assert cache.recently_rejected(lone("without owner")) == frozenset()
        clock.advance(AVOID_SECONDS - 1)
        assert cache.recently_rejected(owned(lone("next"))) == {"n1"}
        clock.advance(1)
        assert cache.recently_rejected(owned(lone("next"))) == frozenset()

    def test_the_same_event_again_is_no_new_rejection(self, cache: Cache) -> None:
        self.reject(cache, owned(lone("p", on="n1")))
        again = cache.update_pod(failed(owned(lone("p", on="n1")), "OutOfcpu"))
        assert not again.rejected

    def test_old_failures_seen_at_start_reject_nothing(self, cache: Cache) -> None:
        assert not cache.update_pod(failed(owned(lone("p", on="n1")), "OutOfcpu")).rejected
        assert cache.recently_rejected(owned(lone("next"))) == frozenset()


class TestNodes:
    @pytest.mark.parametrize(
        ("change", "helps", "settings"),
        [
            pytest.param({}, False, False, id="heartbeat"),
            pytest.param({"cpu": 8}, True, False, id="more-room"),
            pytest.param({"labels": {"disk": "ssd"}}, True, False, id="label"),
            pytest.param({"taints": ["a=b:NoSchedule"]}, True, False, id="taint"),
            pytest.param({"unschedulable": True}, True, False, id="cordon"),
        ],
    )
    def test_changes(self, cache: Cache, change: dict[str, Any], helps: bool, settings: bool) -> None:
        assert cache.update_node(zoned("n1", **change)) == (helps, settings)

    @pytest.mark.parametrize(
        ("annotation", "changed"),
        [pytest.param("berth.dev/price-cpu", True, id="ours"), pytest.param("example.com/x", False, id="foreign")],
    )
    def test_annotations(self, cache: Cache, annotation: str, changed: bool) -> None:
        node = zoned("n1")
        node.metadata.annotations = {annotation: "1"}
        assert cache.update_node(node) == (changed, changed)

    def test_new_features(self, cache: Cache) -> None:
        node = zoned("n1")
        node.status.declared_features = ["InPlacePodResize"]
        assert cache.update_node(node) == (True, False)

    def test_a_new_node_helps(self, cache: Cache) -> None:
        assert cache.update_node(zoned("n3")) == (True, True)


class TestGroups:
    def test_only_what_placement_reads_counts(self, cache: Cache) -> None:
        first = group_object("shop", *chain("a", "b"))
        assert cache.update_group(first, None) == SHOP
        second = group_object("shop", *chain("a", "b"))
        second.status["runningWorkloads"] = 2
        assert cache.update_group(second, first) is None
        third = group_object("shop", *chain("a", "b"), order=["b", "a"])
        assert cache.update_group(third, second) == SHOP
        assert cache.groups[SHOP].index == {"b": 1, "a": 2}
        assert cache.update_group(group_object("shop", *chain("a", "b", "c")), third) == SHOP
        cache.delete_group(SHOP)
        cache.delete_group(SHOP)
        assert cache.groups == {}

    def test_bandwidth_follows_groups_and_labels(self, cache: Cache) -> None:
        def used() -> dict[str, float]:
            cache.bandwidth_allocations.refresh(cache.groups)
            return dict(cache.bandwidth_allocations.nodes)

        cache.update_group(group_object("shop", *chain("a", "b", minBandwidth="10M")), None)
        cache.update_pod(member("a1", "a", on="n1"))
        cache.update_pod(member("b1", "b", on="n2"))
        assert used() == {"n1": 10e6, "n2": 10e6}
        cache.update_pod(member("b1", "x", on="n2"))
        assert used() == {}
        cache.update_pod(member("b1", "b", on="n2"))
        assert used() == {"n1": 10e6, "n2": 10e6}
        cache.update_pod(lone("b1", on="n2"))
        assert used() == {}
        cache.update_pod(member("b1", "b", on="n2"))
        cache.delete_pod(member("a1", "a", on="n1"))
        assert used() == {}

    def test_a_waiting_replica_takes_its_share(self, cache: Cache) -> None:
        cache.update_group(group_object("shop", *chain("a", "b", minBandwidth="10M")), None)
        cache.update_pod(member("a1", "a", on="n1"))
        cache.update_pod(member("b1", "b", on="n2"))
        cache.update_pod(member("b2", "b"))
        cache.bandwidth_allocations.refresh(cache.groups)
        assert cache.bandwidth_allocations.nodes["n1"] == 5e6


def topology(name: str = "net", *, cost: Any = 5, namespace: str = "default") -> CustomObject:
    body = kinds.network_topology(kinds.weight_set(z1={"z2": cost}), name=name)
    return CustomObject(metadata=builders.ObjectMeta(name=name, namespace=namespace), spec=body["spec"])


class TestTopologies:
    def test_costs_stay_the_same_object_until_they_change(self, cache: Cache) -> None:
        assert cache.costs_for("default", Profile()) is NO_COSTS
        assert cache.update_topology(topology()) == (None, True)
        costs = cache.costs_for("default", Profile())
        assert costs.zones == {("z1", "z2"): 5.0}
        assert cache.costs_for("elsewhere", Profile()) is costs
        assert cache.update_topology(topology(cost=6)) == (None, True)
        assert cache.costs_for("default", Profile()).zones == {("z1", "z2"): 6.0}
        cache.delete_topology("default/net")
        assert cache.costs_for("default", Profile()) is NO_COSTS

    @pytest.mark.parametrize(
        ("cost", "changed", "same"),
        [
            pytest.param({"networkCost": 5, "bandwidthAllocated": "1G"}, False, True, id="bandwidth-only"),
            pytest.param({"networkCost": 6}, True, False, id="cost"),
        ],
    )
    def test_news_that_placement_waits_for(self, cache: Cache, cost: dict[str, Any], changed: bool, same: bool) -> None:
        cache.update_topology(topology(cost={"networkCost": 5}))
        costs = cache.costs_for("default", Profile())
        assert cache.update_topology(topology(cost=cost)) == (None, changed)
        assert (cache.costs_for("default", Profile()) is costs) is same

    def test_a_new_measurement_of_the_same_costs_wakes_nobody(self, cache: Cache) -> None:
        cache.update_topology(topology())
        before = cache.costs_for("default", Profile())
        again = topology()
        again.status = {"weightCalculationTime": "2026-01-02T03:04:05Z"}
        assert cache.update_topology(again) == (None, False)
        after = cache.costs_for("default", Profile())
        assert (before.data_time, after.data_time) == ("", "2026-01-02T03:04:05Z")

    def test_a_profile_may_name_one(self, cache: Cache) -> None:
        cache.update_topology(topology("a", cost=1))
        cache.update_topology(topology("b", cost=2))
        profile = Profile(network_topology=TopologyReference(namespace="default", name="b"))
        assert cache.costs_for("default", profile).source == "default/b"
        assert cache.costs_for("default", Profile()).source == "default/a"

    def test_profiles_with_other_weight_sets_do_not_share(self, cache: Cache) -> None:
        cache.update_topology(topology())
        assert cache.costs_for("default", Profile(weight_sets=["Dijkstra"])).zones == {}
        assert cache.costs_for("default", Profile()).zones == {("z1", "z2"): 5.0}

    def test_one_that_cannot_be_read_is_named_and_no_longer_used(self, cache: Cache) -> None:
        cache.update_topology(topology())
        problem, changed = cache.update_topology(topology(cost="near"))
        assert changed
        assert problem is not None
        assert "NetworkTopology default/net" in problem
        assert "networkCost" in problem
        assert cache.costs_for("default", Profile()) is NO_COSTS
