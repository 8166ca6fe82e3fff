"""What watch events change in the cache, and whom they have tried again. The watches are not run, but told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import structlog

from berth.api.spread import SpreadLevel
from berth.kube.custom_object import decoded, encoded
from berth.kube.objects import CustomObject, Node, OwnerReference, Pod, Service
from berth.network.groups import GroupKey
from berth.network.routing import Routing
from berth.scheduling.configuration import Profile
from controllers.placement.event_handlers import assigned, may_take_more, rejected_by_kubelet
from controllers.placement.metrics import NODE_REJECTIONS
from tests.support import builders, kinds
from tests.support.desk import Desk
from tests.support.placement import chain, group_object, lone, member, zoned
from tests.support.volumes import claim, storage_class, using, volume

HOST = "kubernetes.io/hostname"
OTHERS = {"schedulerName": "default-scheduler"}


def friend(name: str) -> Pod:
    """A pod that wants to be near one with the label app=db."""
    term = builders.pod_term(HOST, {"app": "db"})
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return lone(name, spec={"affinity": affinity})


def failed(pod: Pod, reason: str) -> Pod:
    pod.metadata.owner_references = [OwnerReference(kind="ReplicaSet", name="rs", uid="rs", controller=True)]
    pod.status.phase, pod.status.reason = "Failed", reason
    return pod


class TestPods:
    def test_only_ours_wait(self, desk: Desk) -> None:
        desk.pods(lone("ours"), lone("other", spec=OTHERS))
        assert [found.decision.pod.metadata.name for found in desk.decide()] == ["ours"]

    def test_a_deleted_pod_is_forgotten(self, desk: Desk) -> None:
        desk.pods(lone("p"))
        desk.lose("pods", lone("p"))
        assert desk.decide() == []
        assert len(desk.queue) == 0

    @pytest.mark.parametrize(
        ("other", "tried"),
        [
            pytest.param(None, ["big"], id="deleted"),
            pytest.param(lone("other", on="n1", cpu="1", phase="Succeeded"), ["big"], id="finished"),
            pytest.param(lone("other", on="n2", cpu="1"), ["big"], id="moved"),
            pytest.param(lone("other", on="n1", cpu="1"), [], id="heartbeat"),
        ],
    )
    def test_room_that_becomes_free_helps_all(self, desk: Desk, other: Pod | None, tried: list[str]) -> None:
        before = lone("other", on="n1", cpu="1")
        desk.pods(before)
        desk.fail(lone("big", cpu="100"))
        if other is None:
            desk.lose("pods", before)
        else:
            desk.pods(other)
        assert desk.tried() == tried

    def test_one_that_an_etcd_restore_unbinds_waits_again(self, desk: Desk) -> None:
        desk.pods(lone("unbound", on="n1", cpu="1"))
        desk.fail(lone("big", cpu="100"))
        desk.pods(lone("unbound", cpu="1"))
        assert sorted(desk.tried()) == ["big", "unbound"]

    @pytest.mark.parametrize(("cpu", "tried"), [pytest.param("1", ["big"], id="down"), pytest.param("3", [], id="up")])
    def test_a_resize_in_place_helps_when_it_frees_room(self, desk: Desk, cpu: str, tried: list[str]) -> None:
        desk.pods(lone("other", on="n1", cpu="2"))
        desk.fail(lone("big", cpu="100"))
        desk.pods(lone("other", on="n1", cpu=cpu))
        assert desk.tried() == tried

    def test_an_assumed_pod_that_goes_helps_all(self, desk: Desk) -> None:
        assumed = desk.place(lone("p", cpu="1"))
        desk.fail(lone("big", cpu="100"))
        desk.lose("pods", assumed.decision.pod)
        assert desk.tried() == ["big"]

    def test_a_pod_that_gets_a_node_helps_those_that_follow_pods(self, desk: Desk) -> None:
        desk.fail(lone("big", cpu="100"))
        desk.fail(friend("friend"))
        (found,) = (desk.pods(lone("db", on="n2", labels={"app": "db"})), desk.decide())[1]
        assert (found.decision.pod.metadata.name, found.decision.node) == ("friend", "n2")

    def test_a_member_bound_by_somebody_else_completes_the_group(self, desk: Desk) -> None:
        desk.see("appgroups", group_object("shop", *chain("a", "b")))
        desk.pods(member("a1", "a"))
        assert desk.decide() == []
        desk.pods(member("b1", "b", on="n2", spec=OTHERS))
        (found,) = desk.decide()
        assert found.decision.node == "n2"

    def test_a_kubelets_rejection_is_told_and_remembered(self, desk: Desk) -> None:
        desk.pods(lone("p", on="n1"), failed(lone("p", on="n1"), "OutOfcpu"), failed(lone("p", on="n1"), "OutOfcpu"))
        assert desk.said.reasons == ["RejectedByNode"]
        following = failed(lone("next"), "")
        following.status.phase = "Pending"
        assert desk.place(following).decision.node == "n2"

    @pytest.mark.parametrize(
        "pods",
        [
            pytest.param([failed(lone("p", on="n1"), "OutOfcpu")], id="old-when-first-seen"),
            pytest.param([lone("p", on="n1"), failed(lone("p", on="n1"), "Evicted")], id="not-by-its-kubelet"),
        ],
    )
    def test_what_is_no_rejection(self, desk: Desk, pods: list[Pod]) -> None:
        desk.pods(*pods)
        assert desk.said.reasons == []
        assert desk.cache.recently_rejected(pods[-1]) == frozenset()

    def test_a_rejection_of_another_schedulers_pod_is_not_remembered(self, desk: Desk) -> None:
        desk.pods(lone("p", on="n1", spec=OTHERS), failed(lone("p", on="n1", spec=OTHERS), "OutOfcpu"))
        assert desk.said.reasons == []
        assert desk.cache.recently_rejected(failed(lone("next"), "")) == frozenset()


def test_rejections_for_reasons_that_a_tenant_made_up_are_one_series(desk: Desk) -> None:
    def series() -> dict[str, float]:
        samples = [sample for metric in NODE_REJECTIONS.collect() for sample in metric.samples]
        return {sample.labels["reason"]: sample.value for sample in samples if sample.name.endswith("_total")}

    before = series()
    for reason in ("OutOfcpu", "OutOfexample.com/gpu", *(f"OutOf{number}" for number in range(10))):
        desk.pods(lone(reason.lower(), on="n1"), failed(lone(reason.lower(), on="n1"), reason))
    after = series()
    assert set(after) - set(before) <= {"OutOfcpu", "OutOfOther"}
    assert after["OutOfcpu"] - before.get("OutOfcpu", 0) == 1
    assert after["OutOfOther"] - before.get("OutOfOther", 0) == 11


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
def test_rejected_by_kubelet(reason: str, phase: str, rejected: bool) -> None:
    pod = lone("p", phase=phase)
    pod.status.reason = reason
    assert rejected_by_kubelet(pod) is rejected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, lone("p"), False, id="waits"),
        pytest.param(None, lone("p", on="n1"), True, id="first-seen-on-a-node"),
        pytest.param(lone("p"), lone("p", on="n1"), True, id="bound"),
        pytest.param(lone("p", on="n1"), lone("p", on="n1"), False, id="heartbeat"),
        pytest.param(lone("p", on="n1"), lone("p", on="n1", labels={"app": "db"}), True, id="other-labels"),
        pytest.param(lone("p", on="n1"), lone("p", on="n1", phase="Failed", labels={"a": "b"}), False, id="finished"),
    ],
)
def test_assigned(old: Pod | None, new: Pod, expected: bool) -> None:
    assert assigned(old, new) is expected


def with_features(node: Node) -> Node:
    node.status.declared_features = ["InPlacePodResize"]
    return node


@pytest.mark.parametrize(
    ("node", "helps"),
    [
        pytest.param(zoned("n1"), False, id="heartbeat"),
        pytest.param(zoned("n1", cpu=8), True, id="room"),
        pytest.param(zoned("n1", labels={"disk": "ssd"}), True, id="label"),
        pytest.param(zoned("n1", taints=["a=b:NoSchedule"]), True, id="taint"),
        pytest.param(zoned("n1", unschedulable=True), True, id="cordon"),
        pytest.param(with_features(zoned("n1")), True, id="feature"),
    ],
)
def test_may_take_more(node: Node, helps: bool) -> None:
    assert may_take_more(zoned("n1"), node) is helps


class TestNodes:
    @pytest.mark.parametrize("cpu", ["4", "200"], ids=["same", "larger"])
    def test_a_changed_node_helps_all(self, desk: Desk, cpu: str) -> None:
        desk.see("nodes", zoned("n1", cpu="4"))
        desk.fail(lone("big", cpu="100"))
        desk.see("nodes", zoned("n1", cpu=cpu))
        assert (desk.queue.pop() is not None) is (cpu == "200")

    @pytest.mark.parametrize(
        ("annotation", "tried"),
        [pytest.param("berth.dev/price-cpu", ["big"], id="ours"), pytest.param("example.com/x", [], id="foreign")],
    )
    def test_a_setting_helps_all(self, desk: Desk, annotation: str, tried: list[str]) -> None:
        desk.fail(lone("big", cpu="100"))
        node = zoned("n1")
        node.metadata.annotations = {annotation: "1"}
        desk.see("nodes", node)
        assert desk.tried() == tried

    def test_a_bad_annotation_is_told_on_its_node_once_per_change(self, desk: Desk) -> None:
        for _ in range(2):
            node = zoned("n1")
            node.metadata.annotations = {"berth.dev/price-cpu": "cheap", "berth.dev/usage-threshold": "0.5"}
            desk.see("nodes", node)
        assert desk.said.reasons == ["BadAnnotation"]
        assert desk.said.notes[0].regarding.name == "n1"
        assert "price-cpu='cheap' is ignored" in desk.said.notes[0].message

    def test_a_deleted_node_helps_those_that_follow_pods(self, desk: Desk) -> None:
        desk.fail(lone("big", cpu="100"))
        desk.fail(friend("friend"))
        desk.lose("nodes", zoned("n1"))
        assert list(desk.cache.state.node_index) == ["n2"]
        assert desk.tried() == ["friend"]


class TestOtherKinds:
    def test_namespaces(self, desk: Desk) -> None:
        desk.fail(lone("big", cpu="100"))
        namespace = builders.namespace("team", tier="gold")
        desk.see("namespaces", namespace)
        assert desk.tried() == ["big"]
        assert desk.cache.state.namespace_labels("team") == namespace.metadata.labels
        desk.lose("namespaces", namespace)
        assert desk.cache.state.namespace_labels("team") is None
        assert desk.tried() == []

    def test_a_group_that_appears_starts_its_pods(self, desk: Desk) -> None:
        desk.pods(member("a1", "a"))
        assert desk.decide() == []
        desk.see("appgroups", group_object("shop", *chain("a")))
        assert len(desk.decide()) == 1

    def test_of_a_group_only_what_placement_reads_counts(self, desk: Desk) -> None:
        def shop(*selectors: str, order: tuple[str, ...] = ()) -> CustomObject:
            return group_object("shop", *chain(*selectors), order=order)

        desk.see("appgroups", shop("a", "b"))
        desk.pods(member("b1", "b", on="n1"))
        desk.fail(member("a1", "a", cpu="100"))
        reported = shop("a", "b")
        reported.status = encoded({**decoded(reported.status), "runningWorkloads": 2})
        desk.see("appgroups", reported)
        assert desk.tried() == []
        for changed in (shop("a", "b", order=("b", "a")), shop("a", "b", "c", order=("b", "a"))):
            desk.see("appgroups", changed)
            assert desk.tried() == ["a1"]

    def test_what_a_group_must_survive_is_read_again(self, desk: Desk) -> None:
        def shop(**annotations: str) -> CustomObject:
            group = group_object("shop", *chain("a"))
            group.metadata.annotations = annotations
            return group

        desk.see("appgroups", shop())
        for text, level in (("zone", SpreadLevel.ZONE), ("zones", None), ("none", SpreadLevel.NONE)):
            desk.see("appgroups", shop(**{"berth.dev/spread": text}))
            assert desk.cache.groups[GroupKey("default", "shop")].spread is level

    @pytest.mark.parametrize(
        ("cost", "tried"), [pytest.param(6, ["a1"], id="a-higher-limit"), pytest.param(4, [], id="a-lower-limit")]
    )
    def test_only_an_edit_that_can_help_ends_the_backoff(self, desk: Desk, cost: int, tried: list[str]) -> None:
        desk.see("appgroups", group_object("shop", *chain("a", "b", maxNetworkCost=5)))
        desk.pods(member("b1", "b", on="n1"))
        desk.fail(member("a1", "a", cpu="100")).not_before = desk.cache.clock() + 9
        desk.see("appgroups", group_object("shop", *chain("a", "b", maxNetworkCost=cost)))
        assert desk.tried() == tried

    def test_pods_of_a_deleted_group_are_tried(self, desk: Desk) -> None:
        group = group_object("shop", *chain("a", "b"))
        desk.see("appgroups", group)
        desk.pods(member("a1", "a"))
        desk.decide()
        desk.lose("appgroups", group)
        desk.decide()
        assert desk.said.reasons == ["WaitingForMembers", "WaitingForMembers", "AppGroupMissing"]

    def test_topologies_help_when_their_costs_change(self, desk: Desk) -> None:
        def network(cost: Any) -> CustomObject:
            body = kinds.network_topology(kinds.weight_set(z1={"z2": cost}))
            return CustomObject.of({"metadata": {"name": "net", "namespace": "default"}, "spec": body["spec"]})

        def news(cost: Any) -> list[str]:
            desk.see("networktopologies", network(cost))
            return desk.tried()

        desk.fail(lone("big", cpu="100"))
        assert news(5) == ["big"]
        assert news(5) == []
        assert news({"networkCost": 5, "bandwidthAllocated": "1M"}) == []
        assert news(6) == ["big"]
        assert news("near") == ["big"]
        assert not desk.cache.costs_for("default", Profile()).available
        assert news(6) == ["big"]
        desk.lose("networktopologies", network(6))
        assert desk.tried() == ["big"]
        assert not desk.cache.costs_for("default", Profile()).available

    @pytest.mark.parametrize(
        ("namespace", "level"),
        [
            pytest.param("default", "debug", id="somebody's"),
            pytest.param("berth-system", "warning", id="that serves all"),
        ],
    )
    def test_an_unusable_topology_is_logged_for_its_readers(self, desk: Desk, namespace: str, level: str) -> None:
        meta = {"name": "net", "namespace": namespace}
        with structlog.testing.capture_logs() as lines:
            desk.see("networktopologies", CustomObject.of({"metadata": meta, "spec": {"weights": "none"}}))
        assert [(line["event"], line["log_level"]) for line in lines] == [("network topology ignored", level)]

    def test_storage_helps_those_with_volumes(self, desk: Desk) -> None:
        desk.fail(lone("big", cpu="100"))
        desk.fail(lone("user", spec=using("c")))
        for plural, item in (
            ("storageclasses", storage_class()),
            ("persistentvolumes", volume("v")),
            ("persistentvolumeclaims", claim("other")),
        ):
            desk.see(plural, item)
            assert desk.tried() == ["user"]
            desk.lose(plural, item)
            assert desk.tried() == ["user"]
        table = desk.cache.state.volumes
        assert (table.classes, table.volumes, table.claims) == ({}, {}, {})


class TestServices:
    SERVICE = msgspec.convert(
        {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"app": "web"}, "trafficDistribution": "PreferSameZone"},
        },
        Service,
    )

    def test_they_come_and_go(self, desk: Desk) -> None:
        desk.pods(member("w1", "web", labels={"app": "web"}))
        table, key = desk.cache.services, GroupKey("default", "shop")
        desk.see("services", self.SERVICE)
        assert table.routing(key, "web").routing is Routing.SAME_ZONE
        desk.lose("services", self.SERVICE)
        assert table.routing(key, "web").routing is Routing.ALL

    @pytest.mark.parametrize(
        ("demand", "namespace", "tried"),
        [
            pytest.param({"maxNetworkCost": 1}, "default", ["w1"], id="of-limited-calls"),
            pytest.param({"minBandwidth": "1M"}, "default", ["w1"], id="of-calls-with-bandwidth"),
            pytest.param({}, "default", [], id="of-other-calls"),
            pytest.param({"maxNetworkCost": 1}, "elsewhere", [], id="of-another-namespace"),
        ],
    )
    def test_they_help_groups_of_their_namespace_whose_calls_are_judged(
        self, desk: Desk, demand: dict[str, Any], namespace: str, tried: list[str]
    ) -> None:
        desk.see("appgroups", group_object("shop", *chain("web", "db", **demand)))
        desk.pods(member("db1", "db", on="n1"), lone("other", cpu="100"))
        desk.fail(member("w1", "web", cpu="100", labels={"app": "web"}))
        desk.decide()
        service = msgspec.convert(msgspec.to_builtins(self.SERVICE), Service)
        service.metadata.namespace = namespace
        desk.see("services", service)
        assert desk.tried() == tried
        desk.see("services", service)
        assert desk.tried() == []
        desk.lose("services", service)
        assert desk.tried() == tried
