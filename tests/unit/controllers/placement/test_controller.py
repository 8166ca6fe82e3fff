"""How watch events and binding results travel through the controller. Nothing here talks to an API server."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes_asyncio.client import Configuration

from berth.kube.client import ApiClient
from berth.kube.connection import Connection
from berth.kube.events import Note
from berth.kube.objects import CustomObject, Namespace, ObjectMeta, OwnerReference, Pod
from berth.network.costs import NO_COSTS
from berth.runtime.component import ComponentContext
from berth.runtime.health import Checks
from berth.scheduling.decision import Decision
from berth.scheduling.queue import Unit
from controllers.placement.binder import BindOutcome, BindResult
from controllers.placement.controller import PlacementController
from controllers.placement.settings import PlacementSettings
from tests.support import builders, kinds
from tests.support.kube import ChangeType
from tests.support.placement import chain, group_object, lone, member, zoned

ADDED, MODIFIED, DELETED = ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED
HOST = "kubernetes.io/hostname"


class Notes:
    """Keeps what would become Events."""

    def __init__(self) -> None:
        self.notes: list[Note] = []

    def record(self, note: Note) -> None:
        self.notes.append(note)

    @property
    def reasons(self) -> list[str]:
        return [note.reason for note in self.notes]


class Desk:
    """A controller that is never run; events are handed to it one by one."""

    def __init__(self) -> None:
        self.said = Notes()
        connection = Connection(configuration=Configuration(host="https://unused.invalid"), namespace="default")
        context = ComponentContext(
            connection=connection,
            client=ApiClient(connection),
            recorder=self.said,
            checks=Checks(),
            identity="test",
        )
        self.controller = PlacementController(context, PlacementSettings())
        self.controller._make_watches()
        for number in (1, 2):
            self.controller._on_node(*ADDED.sides(zoned(f"n{number}")))

    @property
    def queue(self) -> Any:
        return self.controller.queue

    def pod(self, change: ChangeType, pod: Pod) -> None:
        """Hand over a watch event, and keep the watch's copy as it would."""
        objects = self.controller._watches["pods"].objects
        if change is DELETED:
            objects.pop(pod.key, None)
        else:
            objects[pod.key] = pod
        self.controller._on_pod(*change.sides(pod))

    def decide(self) -> list[Decision]:
        """Look at every unit that is due."""
        while (unit := self.queue.pop()) is not None:
            self.controller.cycle.look_at(unit)
        decisions = []
        while not self.controller._unbound.empty():
            decisions.append(self.controller._unbound.get_nowait()[0])
        return decisions

    def fail(self, pod: Pod) -> Unit:
        """Have a pod wait and fail; returns its sleeping unit."""
        self.pod(ADDED, pod)
        assert self.decide() == []
        unit: Unit = self.queue.unit_of(pod.metadata.uid)
        assert unit.asleep
        unit.not_before = 0.0  # its backoff is over
        return unit


@pytest.fixture
def desk() -> Desk:
    return Desk()


def spreading(name: str) -> Pod:
    term = builders.pod_term(HOST, {"app": "db"})
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return lone(name, spec={"affinity": affinity})


class TestPods:
    def test_only_ours_wait(self, desk: Desk) -> None:
        desk.pod(ADDED, lone("ours"))
        desk.pod(ADDED, lone("other", spec={"schedulerName": "default-scheduler"}))
        assert [decision.pod.metadata.name for decision in desk.decide()] == ["ours"]

    def test_a_deleted_pod_is_forgotten(self, desk: Desk) -> None:
        desk.pod(ADDED, lone("p"))
        desk.pod(DELETED, lone("p"))
        assert desk.decide() == []
        assert len(desk.queue) == 0

    @pytest.mark.parametrize(
        ("event", "wakes"),
        [
            pytest.param((DELETED, lone("other", on="n1", cpu="1")), True, id="deleted"),
            pytest.param((MODIFIED, lone("other", on="n1", cpu="1", phase="Succeeded")), True, id="finished"),
            pytest.param((MODIFIED, lone("other", on="n1", cpu="1")), False, id="heartbeat"),
        ],
    )
    def test_room_that_becomes_free_wakes(self, desk: Desk, event: tuple[ChangeType, Pod], wakes: bool) -> None:
        desk.pod(ADDED, lone("other", on="n1", cpu="1"))
        desk.fail(lone("big", cpu="100"))
        desk.pod(*event)
        assert (desk.queue.pop() is not None) is wakes

    def test_a_pod_that_gets_a_node_wakes_those_that_look_at_pods(self, desk: Desk) -> None:
        desk.fail(lone("big", cpu="100"))
        desk.fail(spreading("friend"))
        desk.pod(ADDED, lone("db", on="n2", labels={"app": "db"}))
        (decision,) = desk.decide()
        assert (decision.pod.metadata.name, decision.node) == ("friend", "n2")

    def test_a_member_bound_by_somebody_else_completes_the_group(self, desk: Desk) -> None:
        desk.controller._on_group(*ADDED.sides(group_object("shop", *chain("a", "b"))))
        desk.pod(ADDED, member("a1", "a"))
        assert desk.decide() == []
        desk.pod(ADDED, member("b1", "b", on="n2", spec={"schedulerName": "default-scheduler"}))
        (decision,) = desk.decide()
        assert decision.node == "n2"

    def test_a_kubelets_rejection_is_told_and_remembered(self, desk: Desk) -> None:
        def owned(pod: Pod) -> Pod:
            pod.metadata.owner_references = [OwnerReference(kind="ReplicaSet", name="rs", uid="rs", controller=True)]
            return pod

        desk.pod(ADDED, owned(lone("p", on="n1")))
        rejected = owned(lone("p", on="n1", phase="Failed"))
        rejected.status.reason = "OutOfcpu"
        desk.pod(MODIFIED, rejected)
        assert desk.said.reasons == ["RejectedByNode"]
        desk.pod(ADDED, owned(lone("next")))
        assert [decision.node for decision in desk.decide()] == ["n2"]


class TestOtherEvents:
    @pytest.mark.parametrize("cpu", ["4", "200"], ids=["same", "larger"])
    def test_nodes(self, desk: Desk, cpu: str) -> None:
        desk.fail(lone("big", cpu="100"))
        desk.controller._on_node(*MODIFIED.sides(zoned("n1", cpu=cpu)))
        assert (desk.queue.pop() is not None) is (cpu == "200")

    def test_a_bad_annotation_is_told_on_its_node_once_per_change(self, desk: Desk) -> None:
        node = zoned("n1")
        node.metadata.annotations = {"berth.dev/price-cpu": "cheap", "berth.dev/usage-threshold": "0.5"}
        desk.controller._on_node(*MODIFIED.sides(node))
        desk.controller._on_node(*MODIFIED.sides(node))
        assert desk.said.reasons == ["BadAnnotation"]
        assert desk.said.notes[0].regarding.name == "n1"
        assert "price-cpu='cheap' is ignored" in desk.said.notes[0].message

    def test_a_deleted_node(self, desk: Desk) -> None:
        desk.controller._on_node(*DELETED.sides(zoned("n1")))
        assert desk.controller.cache.state.node_count == 1

    def test_namespaces(self, desk: Desk) -> None:
        namespace = builders.namespace("team", tier="gold")
        desk.controller._on_namespace(*ADDED.sides(namespace))
        assert desk.controller.cache.state.namespace_labels("team") == namespace.metadata.labels
        desk.controller._on_namespace(*DELETED.sides(Namespace(metadata=ObjectMeta(name="team"))))
        assert desk.controller.cache.state.namespace_labels("team") is None

    def test_a_group_that_appears_starts_its_pods(self, desk: Desk) -> None:
        desk.pod(ADDED, member("a1", "a"))
        assert desk.decide() == []
        desk.controller._on_group(*ADDED.sides(group_object("shop", *chain("a"))))
        assert len(desk.decide()) == 1

    def test_topologies_wake_when_their_costs_change(self, desk: Desk) -> None:
        def news(cost: Any, change: ChangeType = MODIFIED) -> bool:
            body = kinds.network_topology(kinds.weight_set(z1={"z2": cost}))
            obj = CustomObject(metadata=ObjectMeta(name="net", namespace="default"), spec=body["spec"])
            desk.controller._on_topology(*change.sides(obj))
            woken = desk.queue.pop()
            if woken is not None:
                desk.controller.cycle.look_at(woken)
                woken.not_before = 0.0
            return woken is not None

        desk.fail(lone("big", cpu="100"))
        assert news(5, ADDED)
        assert not news(5)
        assert not news({"networkCost": 5, "bandwidthAllocated": "1M"})
        assert news(6)
        assert news("near")
        assert desk.controller.cache.topologies == {}
        assert news(6)
        assert news(6, DELETED)
        assert desk.controller.cache.topologies == {}

    def test_a_deleted_group_is_looked_at(self, desk: Desk) -> None:
        group = group_object("shop", *chain("a", "b"))
        desk.controller._on_group(*ADDED.sides(group))
        desk.pod(ADDED, member("a1", "a"))
        desk.decide()
        desk.controller._on_group(*DELETED.sides(group))
        desk.decide()
        assert desk.said.reasons == ["WaitingForMembers", "AppGroupMissing"]


class TestBindingResults:
    def decision(self, desk: Desk, name: str = "p") -> Decision:
        desk.pod(ADDED, lone(name, cpu="1"))
        (decision,) = desk.decide()
        return decision

    def test_bound(self, desk: Desk) -> None:
        decision = self.decision(desk)
        desk.controller._settle(decision, BindResult(BindOutcome.BOUND), 0.0)
        assert desk.said.reasons == ["Scheduled"]
        assert desk.controller.cache.state.pod_count == 1

    def test_refused_waits_for_its_backoff(self, desk: Desk) -> None:
        decision = self.decision(desk)
        desk.controller._settle(decision, BindResult(BindOutcome.REFUSED, "403 Forbidden"), 0.0)
        assert desk.said.reasons == ["BindingFailed"]
        assert desk.controller.cache.state.pod_count == 0
        assert desk.queue.pop() is None
        unit = desk.queue.unit_of(decision.pod.metadata.uid)
        assert unit.due == unit.not_before

    def test_refused_but_bound_by_now_is_left_alone(self, desk: Desk) -> None:
        decision = self.decision(desk)
        desk.pod(MODIFIED, lone("p", cpu="1", on="n2"))
        desk.controller._settle(decision, BindResult(BindOutcome.REFUSED, "409 Conflict"), 0.0)
        assert len(desk.queue) == 0
        assert [record.key for record in desk.controller.cache.state.pods_on("n2")] == ["default/p"]

    def test_bound_elsewhere_keeps_the_room_until_the_event_comes(self, desk: Desk) -> None:
        decision = self.decision(desk)
        desk.controller._settle(decision, BindResult(BindOutcome.ELSEWHERE), 0.0)
        assert desk.controller.cache.state.pod_count == 1
        other = {"n1": "n2", "n2": "n1"}[decision.node]
        desk.pod(MODIFIED, lone("p", cpu="1", on=other))
        assert list(desk.controller.cache.state.pods_on(decision.node)) == []

    def test_gone_frees_the_room(self, desk: Desk) -> None:
        decision = self.decision(desk)
        desk.controller._settle(decision, BindResult(BindOutcome.GONE), 0.0)
        assert desk.controller.cache.state.pod_count == 0
        assert len(desk.queue) == 0

    def test_gone_wakes_those_who_wait_for_the_room(self, desk: Desk) -> None:
        desk.pod(ADDED, lone("p", cpu="3", spec={"nodeSelector": {HOST: "n1"}}))
        (decision,) = desk.decide()
        desk.fail(lone("next", cpu="3", spec={"nodeSelector": {HOST: "n1"}}))
        desk.controller._settle(decision, BindResult(BindOutcome.GONE), 0.0)
        desk.pod(DELETED, decision.pod)
        assert [found.pod.metadata.name for found in desk.decide()] == ["next"]

    @pytest.mark.parametrize(
        ("problem", "reasons"),
        [pytest.param(None, [], id="ready"), pytest.param("no space", ["VolumesNotBound"], id="failed")],
    )
    def test_volumes(self, desk: Desk, problem: str | None, reasons: list[str]) -> None:
        decision = self.decision(desk)
        desk.controller._volumes_done(decision, NO_COSTS, 0.0, problem)
        assert desk.said.reasons == reasons
        assert desk.controller._unbound.empty() is (problem is not None)
        assert (decision.pod.metadata.uid in desk.queue) is (problem is not None)


class TestChangedNode:
    @pytest.mark.parametrize(
        ("node", "problem"),
        [
            pytest.param(zoned("n1"), None, id="as-it-was"),
            pytest.param(zoned("n1", unschedulable=True), "the node was cordoned", id="cordoned"),
            pytest.param(zoned("n1", cpu=1), "the node has too little room left", id="shrunk"),
            pytest.param(zoned("n1", memory="1Ki"), None, id="short-of-what-the-pod-does-not-need"),
        ],
    )
    def test_before_binding(self, desk: Desk, node: Any, problem: str | None) -> None:
        desk.pod(ADDED, lone("p", cpu="2", spec={"nodeSelector": {HOST: "n1"}}))
        (decision,) = desk.decide()
        desk.controller._on_node(*MODIFIED.sides(node))
        assert desk.controller._no_longer_possible(decision) == problem

    def test_deleted(self, desk: Desk) -> None:
        desk.pod(ADDED, lone("p", spec={"nodeSelector": {HOST: "n1"}}))
        (decision,) = desk.decide()
        desk.controller._on_node(*DELETED.sides(zoned("n1")))
        assert desk.controller._no_longer_possible(decision) == "the node was deleted"

    def test_another_scheduler_took_the_room(self, desk: Desk) -> None:
        desk.pod(ADDED, lone("p", cpu="3", spec={"nodeSelector": {HOST: "n1"}}))
        (decision,) = desk.decide()
        desk.pod(ADDED, lone("thief", cpu="2", on="n1", spec={"schedulerName": "default-scheduler"}))
        assert desk.controller._no_longer_possible(decision) == "the node has too little room left"


def test_health_and_readiness_cover_every_watch(desk: Desk) -> None:
    assert set(desk.controller._watches) == {
        "nodes", "namespaces", "pods", "appgroups", "networktopologies", "persistentvolumes", "persistentvolumeclaims",
        "storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments",
    }  # fmt: skip
