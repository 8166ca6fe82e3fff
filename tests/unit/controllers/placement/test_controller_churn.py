"""A churn of tenants leaves nothing behind: every registry of the placement controller is counted."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from berth.kube.objects import CustomObject, Namespace, Pod, Service
from berth.scheduling.heaps import STALE
from berth.scheduling.planning_share import FORGET_BEYOND
from controllers.placement.binder import BindOutcome, BindResult
from tests.support import kinds
from tests.support.builders import pod_term, required_affinity, spread
from tests.support.desk import Desk
from tests.support.placement import Clock, chain, group_object, lone, member

ROUNDS = 20
BOUNDED = {
    "_refusals": 10_000,
    "_waits": 10_000,
    "_rejections": 10_000,
    "_results": 14 * 2**10,
    "_tolerated": 1024,
    "_affinity": 1024,
    "_columns": 512,
    "_items": 4 * STALE,
    "_used": FORGET_BEYOND,
}
"""Registries that remember what was used last, by the attribute that holds them, and how many entries they may have."""


def registries(root: object) -> Iterator[tuple[str, int]]:
    """Every container that is reachable through objects of ours: the attribute that holds it, and its length."""
    seen: set[int] = set()
    left: list[tuple[str, object]] = [("", root)]
    while left:
        name, found = left.pop()
        if id(found) in seen or isinstance(found, (msgspec.Struct, type)):
            continue
        seen.add(id(found))
        if hasattr(found, "_Cache__data"):  # of cachetools
            found = found._Cache__data
        if isinstance(found, (dict, list, set, deque)):
            yield name, len(found)
            left += [(name, item) for item in (found.values() if isinstance(found, dict) else found)]
        elif type(found).__module__.startswith(("berth.", "controllers.")):
            left += [(held, getattr(found, held)) for held in _attributes(found)]


def _attributes(found: object) -> Iterator[str]:
    for kind in type(found).__mro__:
        names = vars(kind).get("__slots__", ())
        yield from (name for name in names if hasattr(found, name))
    yield from vars(found) if hasattr(found, "__dict__") else ()


def census(root: object) -> Counter[str]:
    """Entries of all registries by the attribute that holds them."""
    counts: Counter[str] = Counter()
    for name, length in registries(root):
        counts[name] += length
    return counts


class Tenant:
    """What one tenant does in its namespace in a round; names, labels and owners are its own."""

    def __init__(self, desk: Desk, number: int) -> None:
        self.desk = desk
        self.number = number
        self.name = f"tenant-{number}"
        self.pods: dict[str, Pod] = {}

    def show(self, pod: Pod) -> None:
        """Have the watch of pods read a line, as from the API server."""
        kind = "MODIFIED" if pod.metadata.name in self.pods else "ADDED"
        self._line(kind, pod)
        self.pods[pod.metadata.name] = pod

    def _line(self, kind: str, pod: Pod) -> None:
        watch = self.desk.controller.watches["pods"]
        watch._apply(msgspec.json.encode({"type": kind, "object": pod}))
        watch._end_batch()

    def metadata(self, name: str) -> dict[str, Any]:
        return {"namespace": self.name, "name": name, "uid": f"{self.name}-{name}"}

    def custom(self, body: dict[str, Any], name: str) -> CustomObject:
        return CustomObject.of({**body, "metadata": self.metadata(name)})

    def group(self, bandwidth: str) -> CustomObject:
        found = group_object("shop", *chain("a", "b", "none", minBandwidth=bandwidth), numMembers=2)
        found.metadata.namespace, found.metadata.uid = self.name, f"{self.name}-shop"
        return found

    def come(self) -> None:
        """Pods with rules of all kinds, in an AppGroup and alone, some of which never fit."""
        desk, own = self.desk, {"own": self.name}
        topology = kinds.network_topology(kinds.weight_set(z1={"z2": self.number}, z2={"z1": 1}))
        desk.see("namespaces", msgspec.convert({"metadata": {**self.metadata(""), "name": self.name}}, Namespace))
        desk.see("appgroups", self.group("1M"))
        desk.see("networktopologies", self.custom(topology, "net"))
        service = {"metadata": self.metadata("web"), "spec": {"selector": own}}
        desk.see("services", msgspec.convert(service, Service))
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        term = pod_term("kubernetes.io/hostname", own)
        specs: dict[str, dict[str, Any]] = {
            "plain": {},
            "near": {"affinity": {"podAffinity": {required: [term]}}},
            "apart": {"affinity": {"podAntiAffinity": {required: [term]}}},
            "spread": {"topologySpreadConstraints": [spread("topology.kubernetes.io/zone", own)]},
            "choosy": {"nodeSelector": {f"{self.name}-{n}": "x" for n in range(20)}},
            "picky": {"affinity": required_affinity((self.name, "Exists", []))},
            "tolerant": {"tolerations": [{"key": self.name, "operator": "Exists"}]},
            "urgent": {"priority": self.number},
        }
        for kind, spec in specs.items():
            for workload in ("a", "b", ""):
                name = f"{kind}-{workload}" if workload else kind
                fields: dict[str, Any] = {"namespace": self.name, "labels": own, "spec": spec, "cpu": "50m"}
                made = member(name, workload, **fields) if workload else lone(name, **fields)
                owner = {"kind": "Job", "name": name, "uid": f"{self.name}-{name}"}
                made.metadata.owner_references = msgspec.convert([owner], type(made.metadata.owner_references))
                made.metadata.uid = f"{self.name}-{name}"
                self.show(made)
        for n in range(4):
            odd = {f"example_com__{self.name}-{k}": "1" for k in range(20)}
            never = lone(f"never-{n}", namespace=self.name, labels={"n": str(n), **own}, cpu="900", **odd)
            never.metadata.uid = f"{self.name}-never-{n}"
            self.show(never)

    def changed(self, pod: Pod, **status: Any) -> Pod:
        """A copy of a pod, with other fields of its status."""
        made = msgspec.convert(msgspec.to_builtins(pod), Pod)
        for field, value in status.items():
            setattr(made.status, field, value)
        return made

    def edit(self) -> None:
        """Other labels, another AppGroup, other costs."""
        self.desk.see("appgroups", self.group("2M"))
        for name in ("never-0", "plain-a"):
            pod = self.changed(self.pods[name])
            pod.metadata.labels = {**pod.metadata.labels, "turn": self.name}
            self.show(pod)

    def settle(self) -> None:
        """What was decided is bound, refused, or bound elsewhere; kubelets refuse some, and some end."""
        controller = self.desk.controller
        for number, assumed in enumerate(self.desk.decide()):
            decision = assumed.decision
            pod = self.changed(self.pods[decision.pod.metadata.name])
            outcome = list(BindOutcome)[number % 4]
            if outcome in (BindOutcome.BOUND, BindOutcome.ELSEWHERE):
                pod.spec.node_name = decision.node if outcome is BindOutcome.BOUND else "n2"
                self.show(pod)
                ends = ({}, {"phase": "Succeeded"}, {"phase": "Failed", "reason": "OutOfcpu"})[number % 3]
                if ends:
                    self.show(self.changed(pod, **ends))
            controller.binding.settle(assumed, BindResult(outcome, "no"))

    def go(self) -> None:
        """Everything is deleted, the namespace first as watches have no order between them."""
        desk = self.desk
        for plural in ("namespaces", "appgroups", "networktopologies", "services"):
            for item in list(desk.controller.watches[plural].objects.values()):
                desk.lose(plural, item)
        for pod in self.pods.values():
            self._line("DELETED", pod)


async def background(desk: Desk) -> None:
    """What the controller does now and then while it runs: conditions are written, metrics of AppGroups refreshed."""
    conditions = desk.controller._conditions
    while (turn := conditions._queue.take()) is not None:
        conditions._waiting.pop(turn.item)
        conditions._queue.done(turn)
    await desk.controller.groups.refresh()


async def play(desk: Desk, clock: Clock, first: int, rounds: int) -> None:
    """Tenants come, are placed as far as that goes, and leave."""
    for number in range(first, first + rounds):
        tenant = Tenant(desk, number)
        tenant.come()
        for _ in range(3):
            tenant.settle()
            clock.advance(11.0)
            tenant.edit()
        clock.advance(31.0)
        tenant.settle()
        tenant.go()
        clock.advance(61.0)
        desk.decide()
        await background(desk)


@pytest.fixture
async def desk() -> Desk:
    return Desk()


async def test_a_churn_of_tenants_leaves_nothing_behind(desk: Desk) -> None:
    clock = Clock()
    desk.cache.clock = desk.queue._clock = clock
    await play(desk, clock, 0, 3)
    before = census(desk.controller)
    await play(desk, clock, 3, ROUNDS)
    after = census(desk.controller)
    grown = {name: (before[name], count) for name, count in after.items() if count > before[name]}
    assert {name: count for name, count in grown.items() if name not in BOUNDED} == {}
    for name, bound in BOUNDED.items():
        assert after[name] <= bound, name
    assert {"Scheduled", "FailedScheduling", "BindingFailed", "RejectedByNode", "Placed"} <= {*desk.said.reasons}


def test_the_census_sees_what_is_kept() -> None:
    desk = asyncio.run(_made())
    before = census(desk.controller)
    desk.cache.members._gathered[object()] = object()  # type: ignore[index, assignment]
    desk.queue._entry_of["x"] = object()  # type: ignore[assignment]
    grown = census(desk.controller) - before
    assert grown == Counter({"_gathered": 1, "_entry_of": 1})


async def _made() -> Desk:
    return Desk()
