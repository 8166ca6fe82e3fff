"""The steps between a decision and its Binding, and what every outcome means. No API server."""

from __future__ import annotations

from typing import Any, cast

import pytest

from berth.kube.objects import Pod
from controllers.placement.binder import BindOutcome, BindResult
from controllers.placement.binding_cycle import CONFIRM_SECONDS
from controllers.placement.claims import VolumeError, Written
from tests.support.desk import Desk
from tests.support.placement import Clock, chain, group_object, lone, member, zoned
from tests.support.volumes import claim, storage_class, using, volume

HOST = "kubernetes.io/hostname"
ON_N1 = {"nodeSelector": {HOST: "n1"}}
REFUSED = BindResult(BindOutcome.REFUSED, "403 Forbidden")


def occupied(desk: Desk) -> dict[str, str]:
    """Node by pod."""
    return {record.key: name for name in ("n1", "n2") for record in desk.cache.state.pods_on(name)}


def waiting(desk: Desk) -> list[str]:
    return [pod.metadata.name for entry in desk.queue.entries() for pod in entry.pods.values()]


class TestOutcomes:
    def test_bound(self, desk: Desk) -> None:
        assumed = desk.place(lone("p", cpu="1"))
        desk.controller.binding.settle(assumed, BindResult(BindOutcome.BOUND))
        assert desk.said.reasons == ["Scheduled"]
        assert occupied(desk) == {"default/p": assumed.decision.node}

    def test_refused_waits_for_its_backoff(self, desk: Desk) -> None:
        assumed = desk.place(lone("p", cpu="1"))
        desk.controller.binding.settle(assumed, REFUSED)
        assert desk.said.reasons == ["BindingFailed"]
        assert occupied(desk) == {}
        assert desk.queue.pop() is None
        (entry,) = desk.queue.entries()
        assert entry.due == entry.not_before

    @pytest.mark.parametrize(
        "pod",
        [
            pytest.param(lone("p", cpu="1", on="n2"), id="bound-by-now"),
            pytest.param(lone("p", cpu="1", phase="Failed"), id="failed-by-now"),
        ],
    )
    def test_refused_of_a_pod_that_waits_no_more(self, desk: Desk, pod: Pod) -> None:
        assumed = desk.place(lone("p", cpu="1"))
        desk.pods(pod)
        desk.controller.binding.settle(assumed, REFUSED)
        assert waiting(desk) == []
        assert occupied(desk) == ({"default/p": "n2"} if pod.spec.node_name else {})

    def test_refused_of_a_pod_that_was_replaced(self, desk: Desk) -> None:
        assumed = desk.place(lone("p", cpu="1"))
        desk.lose("pods", assumed.decision.pod)
        successor = lone("p", cpu="1", spec=ON_N1)
        successor.metadata.uid = "another"
        desk.pods(successor)
        desk.controller.binding.settle(assumed, REFUSED)
        (entry,) = desk.queue.entries()
        assert list(entry.pods) == ["another"]
        assert desk.queue.pop() is entry

    def test_bound_elsewhere_keeps_the_room_until_the_event_comes(self, desk: Desk) -> None:
        assumed = desk.place(lone("p", cpu="1"))
        desk.controller.binding.settle(assumed, BindResult(BindOutcome.ELSEWHERE))
        assert occupied(desk) == {"default/p": assumed.decision.node}
        other = {"n1": "n2", "n2": "n1"}[assumed.decision.node]
        desk.pods(lone("p", cpu="1", on=other))
        assert occupied(desk) == {"default/p": other}

    def test_gone_frees_the_room_and_helps_those_who_wait_for_it(self, desk: Desk) -> None:
        assumed = desk.place(lone("p", cpu="3", spec=ON_N1))
        desk.fail(lone("next", cpu="3", spec=ON_N1))
        desk.controller.binding.settle(assumed, BindResult(BindOutcome.GONE))
        desk.lose("pods", assumed.decision.pod)
        assert [found.decision.pod.metadata.name for found in desk.decide()] == ["next"]

    def test_gone_that_the_watch_goes_on_showing_waits_for_its_backoff(self, desk: Desk) -> None:
        """A 404 may be wrong, and a pod that nobody plans any more would wait for ever."""
        assumed = desk.place(lone("p", cpu="1"))
        desk.controller.binding.settle(assumed, BindResult(BindOutcome.GONE))
        assert (desk.said.reasons, occupied(desk), waiting(desk)) == ([], {}, ["p"])
        (entry,) = desk.queue.entries()
        assert entry.due == entry.not_before

    def test_gone_again_and_again_wakes_nobody_else(self, desk: Desk) -> None:
        """It would have everybody tried again each time, for one pod of which an answer is wrong."""
        assumed = desk.place(lone("p", cpu="1"))
        desk.fail(lone("large", cpu="100"))
        woken = []
        for _ in range(3):
            desk.controller.binding.settle(assumed, BindResult(BindOutcome.GONE))
            woken += desk.tried()
        assert woken == ["large"]


class TestLostBindings:
    """Written, and lost in a restore of etcd before the watch showed them: the same pod is listed, without its node."""

    @pytest.fixture
    def asked(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Pods that the API server is asked about; it says that they are free."""
        names: list[str] = []

        async def find_out(pod: Pod, _node: str, _watched: object) -> BindResult:
            names.append(pod.metadata.name)
            return REFUSED

        monkeypatch.setattr(desk.controller.binding._binder, "find_out", find_out)
        monkeypatch.setattr(desk.cache, "clock", Clock())
        return names

    @staticmethod
    async def later(desk: Desk, seconds: float) -> None:
        cast("Clock", desk.cache.clock).advance(seconds)
        await desk.controller.binding.confirm()

    @pytest.mark.parametrize("outcome", [BindOutcome.BOUND, BindOutcome.ELSEWHERE])
    async def test_the_pod_waits_again(self, desk: Desk, asked: list[str], outcome: BindOutcome) -> None:
        assumed = desk.place(lone("p", cpu="1"))
        desk.controller.binding.settle(assumed, BindResult(outcome))
        await self.later(desk, CONFIRM_SECONDS - 1)
        assert (asked, waiting(desk)) == ([], [])
        await self.later(desk, 1)
        assert (asked, waiting(desk), occupied(desk)) == (["p"], ["p"], {})
        await self.later(desk, CONFIRM_SECONDS)
        assert asked == ["p"]

    async def test_who_has_been_shown_with_a_node_is_not_asked_about(self, desk: Desk, asked: list[str]) -> None:
        assumed = desk.place(lone("p", cpu="1"))
        desk.controller.binding.settle(assumed, BindResult(BindOutcome.BOUND))
        desk.pods(lone("p", cpu="1", on=assumed.decision.node))
        await self.later(desk, CONFIRM_SECONDS)
        assert (asked, occupied(desk)) == ([], {"default/p": assumed.decision.node})

    async def test_who_is_being_bound_anew_is_not_asked_about(self, desk: Desk, asked: list[str]) -> None:
        assumed = desk.place(lone("p", cpu="1"))
        desk.controller.binding.settle(assumed, BindResult(BindOutcome.BOUND))
        desk.pods(lone("p", cpu="1", on=assumed.decision.node))
        desk.place(lone("p", cpu="1"))
        await self.later(desk, CONFIRM_SECONDS)
        assert asked == []


class TestVolumes:
    @pytest.fixture
    def problem(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """What the volume binder says; it is told here instead of asking an API server."""
        problems: list[str] = []

        async def wait(_pod: Pod, _node: str, _written: object) -> None:
            if problems:
                raise VolumeError(problems[0])

        monkeypatch.setattr(desk.volumes, "wait", wait)
        return problems

    async def test_bound_is_next(self, desk: Desk, problem: list[str]) -> None:
        assert problem == []
        assumed = desk.place(lone("p", cpu="1"))
        await desk.controller.binding.wait_for_volumes(assumed, Written())
        assert desk.said.reasons == []
        assert desk.decide() == [assumed]
        assert waiting(desk) == []

    async def test_failed_waits_again(self, desk: Desk, problem: list[str]) -> None:
        problem.append("no space")
        assumed = desk.place(lone("p", cpu="1"))
        await desk.controller.binding.wait_for_volumes(assumed, Written())
        assert desk.said.reasons == ["VolumesNotBound"]
        assert desk.decide() == []
        assert waiting(desk) == ["p"]

    async def test_failed_because_the_pod_went(self, desk: Desk, problem: list[str]) -> None:
        problem.append("the pod was deleted")
        assumed = desk.place(lone("p", cpu="1"))
        desk.lose("pods", assumed.decision.pod)
        await desk.controller.binding.wait_for_volumes(assumed, Written())
        assert desk.said.reasons == []
        assert waiting(desk) == []


class TestBeforeBinding:
    """Steps that end before anything is sent: the client of these tests has no server."""

    async def test_a_pod_that_ended_gives_its_volume_back(self, desk: Desk) -> None:
        for plural, item in (
            ("storageclasses", storage_class()),
            ("persistentvolumes", volume("v")),
            ("persistentvolumeclaims", claim("c")),
        ):
            desk.see(plural, item)
        assumed = desk.place(lone("p", spec=using("c")))
        desk.lose("pods", assumed.decision.pod)
        assert desk.cache.state.volumes.reserved_for("v") == "default/c"
        await desk.bind(assumed)
        assert desk.cache.state.volumes.reserved_for("v") is None
        assert desk.said.reasons == []

    @pytest.mark.parametrize(("size", "carried"), [(1000, True), (262_000, False)], ids=["small", "over-the-limit"])
    async def test_the_decision_is_left_out_where_annotations_are_full(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch, size: int, carried: bool
    ) -> None:
        sent: list[str] = []

        async def bind(
            _pod: Pod, _node: str, *, decision: str, admitted: str, socket: str, deletion_cost: str
        ) -> BindResult:
            assert socket == ""
            assert admitted == "", "a pod outside any AppGroup is admitted with nothing"
            sent.append(decision)
            return BindResult(BindOutcome.BOUND)

        monkeypatch.setattr(desk.controller.binding._binder, "bind", bind)
        pod = lone("p")
        pod.metadata.annotations = {"note": "x" * size}
        await desk.bind(desk.place(pod))
        assert [bool(decision) for decision in sent] == [carried]

    @pytest.mark.parametrize(
        ("size", "admitted", "decided"),
        [
            pytest.param(1000, '{"b":10000000}', True, id="both"),
            pytest.param(262_060, '{"b":10000000}', False, id="the-decision-gives-way"),
            pytest.param(262_130, "", False, id="neither"),
        ],
    )
    async def test_a_member_carries_what_it_was_admitted_with(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch, size: int, admitted: str, decided: bool
    ) -> None:
        sent: list[tuple[str, bool]] = []

        async def bind(
            _pod: Pod, _node: str, *, decision: str, admitted: str, socket: str, deletion_cost: str
        ) -> BindResult:
            sent.append((admitted, bool(decision)))
            return BindResult(BindOutcome.BOUND)

        monkeypatch.setattr(desk.controller.binding._binder, "bind", bind)
        desk.see("appgroups", group_object("shop", *chain("a", "b", minBandwidth="10M")))
        pod = member("a1", "a")
        # Somebody has written an annotation of this name: it is replaced, and is nothing that counts.
        pod.metadata.annotations = {"note": "x" * size, "berth.dev/admitted-bandwidth": '{"b":999999999}'}
        desk.pods(member("b1", "b", on="n2"), pod)
        (assumed,) = desk.decide()
        # What the AppGroup states later is not what was admitted.
        desk.see("appgroups", group_object("shop", *chain("a", "b", minBandwidth="1e30")))
        await desk.bind(assumed)
        assert sent == [(admitted, decided)]

    async def test_a_node_that_changed_is_told_and_the_pod_waits(self, desk: Desk) -> None:
        assumed = desk.place(lone("p", spec=ON_N1))
        desk.see("nodes", zoned("n1", unschedulable=True))
        await desk.bind(assumed)
        assert desk.said.reasons == ["NodeChanged"]
        assert (occupied(desk), waiting(desk)) == ({}, ["p"])

    @pytest.mark.parametrize(
        ("node", "problem"),
        [
            pytest.param(zoned("n1"), None, id="as-it-was"),
            pytest.param(None, "the node was deleted", id="deleted"),
            pytest.param(zoned("n1", unschedulable=True), "the node was cordoned", id="cordoned"),
            pytest.param(
                zoned("n1", taints=["gone:NoExecute"]),
                "the node has a new taint that the pod does not tolerate",
                id="tainted",
            ),
            pytest.param(zoned("n1", taints=["slow:PreferNoSchedule"]), None, id="taint-that-asks-only"),
            pytest.param(
                zoned("n1", labels={HOST: "n3"}),
                "the node has other labels, which the pod does not select",
                id="relabelled",
            ),
            pytest.param(zoned("n1", labels={"disk": "ssd"}), None, id="labels-that-the-pod-does-not-ask-for"),
            pytest.param(zoned("n1", cpu=1), "the node has too little room left", id="shrunk"),
            pytest.param(zoned("n1", memory="1Ki"), None, id="short-of-what-the-pod-does-not-need"),
        ],
    )
    def test_what_happened_to_the_node(self, desk: Desk, node: Any, problem: str | None) -> None:
        assumed = desk.place(lone("p", cpu="2", spec=ON_N1))
        if node is None:
            desk.lose("nodes", zoned("n1"))
        else:
            desk.see("nodes", node)
        assert self.changed(desk, assumed.decision.pod) == problem

    def test_a_cordoned_node_keeps_the_pods_that_tolerate_that(self, desk: Desk) -> None:
        desk.see("nodes", zoned("n1", unschedulable=True))
        toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
        assumed = desk.place(lone("p", spec={**ON_N1, "tolerations": [toleration]}))
        assert self.changed(desk, assumed.decision.pod) is None

    def test_another_scheduler_took_the_room(self, desk: Desk) -> None:
        assumed = desk.place(lone("p", cpu="3", spec=ON_N1))
        desk.pods(lone("thief", cpu="2", on="n1", spec={"schedulerName": "default-scheduler"}))
        assert self.changed(desk, assumed.decision.pod) == "the node has too little room left"

    def changed(self, desk: Desk, pod: Pod) -> str | None:
        record = desk.cache.state.record(pod.metadata.uid)
        assert record is not None
        return desk.controller.binding.changed(pod, record)


@pytest.mark.parametrize("outcome", ["refused", "node changed"])
async def test_a_failed_binding_wakes_nobody_else(desk: Desk, outcome: str) -> None:
    desk.pods(lone("sleeper", cpu="1000"))
    assert desk.decide() == []
    (sleeper,) = desk.queue.entries()
    due = sleeper.due
    assumed = desk.place(lone("p", cpu="1", spec=ON_N1))
    if outcome == "refused":
        desk.controller.binding.settle(assumed, REFUSED)
    else:
        desk.controller.binding._requeue(assumed.decision.pod)
    assert sleeper.due == due


async def test_a_pod_that_was_resized_since_its_decision_is_planned_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk.controller.binding._binder, "bind", None)
    assumed = desk.place(lone("p", cpu="1", spec=ON_N1))
    desk.pods(lone("p", cpu="8", spec=ON_N1))
    await desk.bind(assumed)
    assert occupied(desk) == {}
    assert waiting(desk) == ["p"]
