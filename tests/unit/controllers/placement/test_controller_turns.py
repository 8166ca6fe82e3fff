"""Any sequence of watch events, turns and bindings: a pod is bound once at most, where it may be, and none is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from berth.kube.objects import CustomObject, Node, Pod
from berth.network.groups import GroupKey
from berth.scheduling.gang import batches, budget
from controllers.placement.binder import BindOutcome, BindResult
from controllers.placement.binding_cycle import Assumed
from tests.support import builders, kinds
from tests.support.desk import LoopDesk
from tests.support.placement import Clock, chain, group_object, lone, member, zoned
from tests.support.turns import check_binding, check_books, rules

PODS = st.sampled_from([f"p{n}" for n in range(10)])
NODES = st.sampled_from(["n1", "n2", "n3"])
GROUPS = st.sampled_from(["shop", "bank"])
WORKLOADS = st.sampled_from(["a", "b", "stranger"])
NAMESPACES = ["default", "other"]
GROUP_KEYS = [GroupKey(namespace, name) for namespace in NAMESPACES for name in ("shop", "bank")]
SHAPES = st.sampled_from(["plain", "plain", "plain", "alone", "spread", "near", "ssd"])
"""What rules a pod has about nodes and other pods."""


class Turns(RuleBasedStateMachine):
    """The API server is a dict of pods; the desk is shown every change at once, but for its own bindings."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(budget, "TURN_SECONDS", 0.0)
        self.patch.setattr(batches, "BATCH", 2)
        self.loop = asyncio.new_event_loop()
        self.desk = LoopDesk.within(self.loop)
        self.clock = self.desk.cache.clock = self.desk.queue._clock = Clock()
        # Whose turn it is would depend on how busy the machine is.
        self.desk.controller.cycle._timer = self.clock
        self.nodes: dict[str, Node] = {f"n{n}": zoned(f"n{n}") for n in (1, 2)}
        self.pods: dict[str, Pod] = {}
        self.shapes: dict[str, str] = {}
        self.decisions: dict[str, Assumed] = {}
        self.late: dict[str, Pod] = {}
        """bound by us, and not shown yet"""
        self.bindings: Counter[str] = Counter()
        self.serial = 0
        self.answer: BindResult | None = None
        self.patch.setattr(self.desk.controller.binding._binder, "bind", self._bind)

    def teardown(self) -> None:
        try:
            self.come_to_rest()
        finally:
            self.patch.undo()
            self.loop.close()

    @initialize(shape=SHAPES, count=st.integers(2, 8), cpu=st.sampled_from(["100m", "1"]), grouped=st.booleans())
    def begin(self, shape: str, count: int, cpu: str, grouped: bool) -> None:
        """An application, and some turns of its plan."""
        for node in self.nodes.values():
            self.desk.see("nodes", node)
        if grouped:
            self.desk.see("appgroups", group_object("shop", *chain("a", "b")))
        for n in range(count):
            self.make(f"p{n}", "shop", "ab"[n % 2], shape, cpu)
        self.clock.advance(31.0)

    # What others do

    def show(self, pod: Pod) -> None:
        self.pods[pod.metadata.name] = pod
        self.desk.pods(pod)

    @rule(
        name=PODS,
        group=GROUPS,
        workload=WORKLOADS,
        shape=SHAPES,
        cpu=st.sampled_from(["100m", "1", "3"]),
        alone=st.booleans(),
        priority=st.sampled_from([0, 100]),
        namespace=st.sampled_from(NAMESPACES),
    )
    def create(self, name: str, group: str, workload: str, shape: str, cpu: str, **more: Any) -> None:
        self.make(name, group, workload, shape, cpu, **more)

    @rule(count=st.integers(3, 8), group=GROUPS, shape=SHAPES, cpu=st.sampled_from(["100m", "500m"]))
    def scale_up(self, count: int, group: str, shape: str, cpu: str) -> None:
        for n in range(count):
            self.make(f"p{n}", group, "ab"[n % 2], shape, cpu)

    def make(
        self,
        name: str,
        group: str,
        workload: str,
        shape: str,
        cpu: str,
        *,
        alone: bool = False,
        priority: int = 0,
        namespace: str = "default",
    ) -> None:
        """Create a pod, if there is none of that name."""
        if name in self.pods:
            return
        more: dict[str, Any] = {"cpu": cpu, "labels": {"rule": shape}, "namespace": namespace}
        more["spec"] = {**rules(shape), "priority": priority}
        pod = lone(name, **more) if alone else member(name, workload, group=group, **more)
        self.serial += 1
        pod.metadata.uid = f"{name}-{self.serial}"
        self.shapes[pod.metadata.uid] = shape
        self.show(pod)

    def copy(self, name: str) -> Pod | None:
        if name not in self.pods or name in self.late:
            return None
        return msgspec.msgpack.decode(msgspec.msgpack.encode(self.pods[name]), type=Pod)

    @rule(name=PODS, group=GROUPS, workload=WORKLOADS, leave=st.booleans())
    def relabel(self, name: str, group: str, workload: str, leave: bool) -> None:
        pod = self.copy(name)
        if pod is not None:
            label = {"rule": pod.metadata.labels["rule"]}
            pod.metadata.labels = label if leave else {**member("x", workload, group=group).metadata.labels, **label}
            self.show(pod)

    @rule(name=PODS)
    def annotate(self, name: str) -> None:
        pod = self.copy(name)
        if pod is not None:
            pod.metadata.annotations = {"a": str(self.serial)}
            self.show(pod)

    @rule(name=PODS, cpu=st.sampled_from(["50m", "2"]))
    def resize(self, name: str, cpu: str) -> None:
        pod = self.copy(name)
        if pod is not None and not pod.spec.node_name:
            pod.spec.containers = [builders.container(cpu=cpu)]
            self.show(pod)

    @rule(name=PODS)
    def terminate(self, name: str) -> None:
        pod = self.copy(name)
        if pod is not None:
            pod.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
            self.show(pod)

    @rule(name=PODS)
    def delete(self, name: str) -> None:
        pod = self.copy(name)
        if pod is not None:
            del self.pods[name]
            self.desk.lose("pods", pod)

    @rule(name=PODS)
    def finish(self, name: str) -> None:
        pod = self.copy(name)
        if pod is not None:
            pod.status.phase = "Succeeded"
            self.show(pod)

    @rule(name=PODS, node=NODES)
    def bind_elsewhere(self, name: str, node: str) -> None:
        pod = self.copy(name)
        if pod is not None and not pod.spec.node_name and pod.metadata.deletion_timestamp is None and not pod.finished:
            pod.spec.node_name = node
            self.show(pod)

    @rule(
        name=NODES,
        cpu=st.sampled_from(["1", "4", "8"]),
        taint=st.sampled_from([[], [], ["odd:NoSchedule"]]),
        ssd=st.booleans(),
        extra=st.sampled_from([None, {"example.com/gpu": 2}]),
        pods=st.sampled_from([3, 110]),
        bandwidth=st.sampled_from([None, "1G"]),
        threshold=st.sampled_from([None, "0.5"]),
        unit=st.sampled_from([None, "2"]),
    )
    def node(
        self,
        name: str,
        cpu: str,
        taint: list[str],
        ssd: bool,
        extra: Any,
        pods: int,
        bandwidth: str | None,
        threshold: str | None,
        unit: str | None,
    ) -> None:
        more = dict(extra or {})
        if bandwidth:
            more["berth.dev/bandwidth"] = bandwidth
        node = zoned(name, cpu=cpu, taints=taint, labels={"disk": "ssd"} if ssd else {}, extra=more, pods=pods)
        if threshold:
            node.metadata.annotations["berth.dev/usage-threshold"] = threshold
        if unit:
            node.metadata.annotations["berth.dev/max-unit-cpu"] = unit
        self.nodes[name] = node
        self.desk.see("nodes", node)

    @rule(name=NODES)
    def lose_node(self, name: str) -> None:
        if name in self.nodes:
            self.desk.lose("nodes", self.nodes.pop(name))

    @rule(
        name=GROUPS,
        order=st.sampled_from(["ab", "ba", "abc"]),
        bandwidth=st.sampled_from([None, "100M", "900M"]),
        limit=st.sampled_from([None, 1]),
        members=st.sampled_from([1, 2, 6]),
    )
    def group(self, name: str, order: str, bandwidth: str | None, limit: int | None, members: int) -> None:
        demand: dict[str, Any] = {"minBandwidth": bandwidth} if bandwidth else {}
        demand |= {"maxNetworkCost": limit} if limit else {}
        self.desk.see("appgroups", group_object(name, *chain(*order, **demand), numMembers=members))

    @rule(name=GROUPS)
    def lose_group(self, name: str) -> None:
        known = self.desk.controller.watches["appgroups"].objects.get(f"default/{name}")
        if known is not None:
            self.desk.lose("appgroups", known)

    @rule(cost=st.sampled_from([1, 7]))
    def topology(self, cost: int) -> None:
        body = kinds.network_topology(kinds.weight_set(z1={"z2": cost}, z2={"z1": cost}))
        body["metadata"] |= {"namespace": "default", "uid": "net"}
        self.desk.see("networktopologies", CustomObject.of(body))

    @rule()
    def lose_topology(self) -> None:
        known = self.desk.controller.watches["networktopologies"].objects.get("default/net")
        if known is not None:
            self.desk.lose("networktopologies", known)

    @rule(seconds=st.sampled_from([0.1, 1.0, 11.0, 31.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    # What Berth does

    @rule()
    def turn(self) -> None:
        self.one_turn()

    @rule()
    def turns(self) -> None:
        for _ in range(4):
            self.one_turn()

    def one_turn(self) -> bool:
        entry = self.desk.queue.pop()
        if entry is None:
            return False
        self.desk.in_loop(self.desk.controller.cycle.schedule_one, entry)
        unbound = self.desk.controller.binding._unbound
        while (turn := unbound.take()) is not None:
            unbound.done(turn)
            assumed = turn.item
            uid = assumed.decision.pod.metadata.uid
            assert uid not in self.decisions, "decided twice"
            self.decisions[uid] = assumed
        return True

    @precondition(lambda self: self.decisions)
    @rule(data=st.data(), refuse=st.booleans())
    def bind(self, data: st.DataObject, refuse: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.decisions)))
        self.answer = BindResult(BindOutcome.REFUSED, "no") if refuse else None
        self.bind_one(uid)

    def bind_one(self, uid: str) -> None:
        assumed = self.decisions.pop(uid)
        self.loop.run_until_complete(self.desk.bind(assumed))

    async def _bind(self, pod: Pod, node: str, **_: str) -> BindResult:
        current = self.pods.get(pod.metadata.name)
        if current is None or current.metadata.uid != pod.metadata.uid:
            return BindResult(BindOutcome.GONE)
        if current.spec.node_name:
            same = current.spec.node_name == node
            return BindResult(BindOutcome.BOUND if same else BindOutcome.ELSEWHERE)
        if current.metadata.deletion_timestamp is not None:
            return BindResult(BindOutcome.REFUSED, "is being deleted")
        if self.answer is not None:
            return self.answer
        here = [one for one in self.pods.values() if one.spec.node_name == node and not one.finished]
        check_binding(current, self.nodes[node], here)
        bound = self.copy(pod.metadata.name)
        assert bound is not None
        bound.spec.node_name = node
        self.bindings[pod.metadata.uid] += 1
        assert self.bindings[pod.metadata.uid] == 1
        self.pods[pod.metadata.name] = self.late[pod.metadata.name] = bound
        return BindResult(BindOutcome.BOUND)

    @precondition(lambda self: self.late)
    @rule()
    def deliver(self) -> None:
        _, pod = self.late.popitem()
        self.desk.pods(pod)

    # What always holds

    def waiting(self) -> dict[str, Pod]:
        return {
            pod.metadata.uid: pod
            for pod in self.pods.values()
            if not pod.spec.node_name and not pod.finished and pod.metadata.deletion_timestamp is None
        }

    @invariant()
    def every_waiting_pod_is_somewhere(self) -> None:
        queue = self.desk.queue
        where = Counter(uid for entry in queue.entries() for uid in entry.pods)
        assert where.keys() == queue._entry_of.keys()
        for uid, count in where.items():
            assert count == 1
            assert uid in queue._entries[queue._entry_of[uid]].pods
        for uid in self.waiting():
            assert (uid in where) != (uid in self.decisions), f"{uid} is lost, or planned twice"
        assert where.keys() <= self.waiting().keys(), "what does not wait is in the queue"

    @invariant()
    def every_entry_will_be_tried(self) -> None:
        queue = self.desk.queue
        for entry in queue.entries():
            if entry.rank is not None:
                assert entry.rank in queue._active._items[entry.key.namespace]._items
            else:
                assert (entry.due, entry.key) in queue._timers._items, "an entry that nobody wakes"

    @invariant()
    def what_is_assumed_is_somebodys(self) -> None:
        cycle = self.desk.controller.cycle
        planned = {
            pod.metadata.uid
            for plan in cycle._under_way.values()
            if self.desk.queue.holds(plan.attempt.entry)
            for pod in plan.attempt.pods
        }
        shown_late = {pod.metadata.uid for pod in self.late.values()}
        for uid, record in self.desk.cache.state._records.items():
            if record.assumed and uid not in shown_late:
                assert uid in planned or uid in self.decisions, f"{uid} is assumed for nobody"

    @invariant()
    def the_books_are_right(self) -> None:
        check_books(self.desk.cache, GROUP_KEYS)

    def come_to_rest(self) -> None:
        """Everything is bound in the end, once there is room, and nothing is left."""
        self.answer = None
        for number in range(12):
            self.node_plain(f"big{number}")
        for _ in range(14):
            count = 0
            while self.one_turn():
                count += 1
                assert count < 5000, "it spins"
                self.every_waiting_pod_is_somewhere()
            # Before the bindings: a pod whose node has gone meanwhile is planned again at once.
            assert not self.desk.queue._active_in, "a plan without an end"
            for uid in list(self.decisions):
                self.bind_one(uid)
            for name in list(self.late):
                self.desk.pods(self.late.pop(name))
            self.every_waiting_pod_is_somewhere()
            self.every_entry_will_be_tried()
            self.what_is_assumed_is_somebodys()
            self.the_books_are_right()
            self.clock.advance(31.0)
        stuck = {uid: self.shapes[uid] for uid in self.waiting()}
        assert all(shape in ("near", "spread", "alone") for shape in stuck.values()), stuck

    def node_plain(self, name: str) -> None:
        node = zoned(name, cpu="16", labels={"disk": "ssd"})
        self.nodes[name] = node
        self.desk.see("nodes", node)


Turns.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
TestTurns = Turns.TestCase
