"""A workload whose pods a latency controller moves, told late of everything: a model for histories by chance.

Objects are as an API server keeps them, each change with a version. The ReplicaSet and the controller each have a view
of their own that is up to some seconds late, of each kind by itself; the ReplicaSet waits until it sees what it has
done itself, as Kubernetes' own does. Time is the model's.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import log10
from typing import Any, Generic, TypeVar, cast

import pytest

from berth.api.latency_exchange import ProbeAnswer, UserRoundTrips
from berth.api.latencypolicy import API_VERSION, KIND
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.events import EventRecorder
from berth.kube.objects import CustomObject
from berth.runtime.workqueue import WorkQueue
from berth.scheduling.cache.cache import Cache
from controllers.latency import reconciler
from controllers.latency.candidates import Candidates
from controllers.latency.clock import SlewedClock
from controllers.latency.evictions import Evictions
from controllers.latency.observations import Observations
from controllers.latency.orders import Orders
from controllers.latency.places import Places
from controllers.latency.policies import Policies
from controllers.latency.workloads import Workloads
from tests.support import builders
from tests.support.desk import Notes
from tests.support.latency import later
from tests.unit.controllers.latency.test_reconciler import network_node, pod, running

KEY = "shop/web"
LATE = 2.0
"""Seconds by which a view is late at the most."""
OPEN = frozenset({"Creating", "Trying", "Evicting"})
T = TypeVar("T")


@dataclass(frozen=True)
class Web:
    """A pod of the workload."""

    name: str
    created: float
    node: str = ""
    ready: bool = False
    since: float = 0.0
    """when it got ready, or will"""
    going: bool = False
    gone: bool = False

    @property
    def serves(self) -> bool:
        return self.ready and not self.going


@dataclass
class Late(Generic[T]):
    """What somebody has seen of changes of one kind."""

    changes: list[tuple[float, T]]
    chance: random.Random
    seen: int = 0

    def news(self, now: float) -> Iterator[T]:
        while self.seen < len(self.changes):
            time, what = self.changes[self.seen]
            if now - time < LATE and self.chance.random() < 0.5:
                return
            self.seen += 1
            yield what


class CrashError(Exception):
    """The controller's process ends, before or after a write."""


class Queue(WorkQueue[str]):
    """Keeps when the policy is due."""

    def __init__(self, history: History) -> None:
        super().__init__(lambda key: key.partition("/")[0])
        self.history, self.due = history, 0.0

    def add(self, _: str, *, delay: float = 0.0) -> None:
        self.due = min(self.due, self.history.now + delay)


@dataclass
class History:
    """What happens to one workload; :meth:`run` lets time pass."""

    seed: int
    replicas: int
    spec: dict[str, Any]
    restarts: float = 0.0
    """probability of another controller, and of a crash at a write, each time"""
    failures: float = 0.0
    """probability of a pod that fails for a while"""
    now: float = 0.0
    ahead: float = 0.0
    """seconds by which the controller's clock is wrong"""
    jumps: float = 0.0
    """probability of another such number, each time"""
    pods: dict[str, Web] = field(default_factory=dict)
    calm: bool = True
    """whether no pod has failed"""
    began: list[float] = field(default_factory=list)
    """when moves began"""

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.nodes = [f"n{number}" for number in range(self.replicas + 3)]
        self.go_elsewhere()
        self.version, self.made, self.scale = 10, 0, self.replicas
        self.pod_changes: list[tuple[float, Web]] = []
        self.scale_changes: list[tuple[float, tuple[int, int]]] = []
        self.policy_changes: list[tuple[float, dict[str, Any]]] = []
        for number in range(self.replicas):
            self._keep(Web(self._name(), 0.0, self.nodes[number], ready=True))
        self._scaled(self.replicas)
        metadata = {"name": "web", "namespace": "shop", "uid": "web", "generation": 1}
        self._written({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": self.spec, "status": {}})
        self.known = dict(self.pods)
        self.expected: set[str] = set()
        self.rs_pods = Late(self.pod_changes, self.chance, len(self.pod_changes))
        self.rs_scale, self.rs_wants = Late(self.scale_changes, self.chance), self.replicas
        self.begin()

    def go_elsewhere(self) -> None:
        """Users are as far from each node as chance has it."""
        users = range(1 if self.spec["users"]["mode"] == "Single" else 12)
        self.far = {f"u{user}": {node: self.chance.uniform(5, 200) for node in self.nodes} for user in users}

    def wall(self) -> datetime:
        """What the controller's clock says."""
        return later(self.now + self.ahead)

    # Objects

    def _name(self) -> str:
        self.made += 1
        return f"web-{self.made}"

    def _keep(self, web: Web) -> None:
        self.pods[web.name] = web
        if web.gone:
            del self.pods[web.name]
        self.pod_changes.append((self.now, web))

    def _delete(self, name: str) -> None:
        web = self.pods.get(name)
        if web is not None and not web.going:
            self._keep(replace(web, going=True, gone=not web.node))

    def _scaled(self, replicas: int) -> None:
        self.version += 1
        self.scale, self.scale_version = replicas, self.version
        self.scale_changes.append((self.now, (replicas, self.version)))

    def _written(self, document: dict[str, Any]) -> None:
        self.version += 1
        self.policy = document | {"metadata": document["metadata"] | {"resourceVersion": str(self.version)}}
        self.policy_changes.append((self.now, json.loads(json.dumps(self.policy))))

    @property
    def moves(self) -> list[dict[str, Any]]:
        return list(self.policy["status"].get("moves", []))

    # What the controller writes

    def _maybe_crash(self) -> None:
        if self.chance.random() < self.restarts:
            raise CrashError

    async def apply(self, *_: object, **__: object) -> bytes:
        body = cast("dict[str, Any]", _[2])
        self._maybe_crash()
        if body["metadata"]["resourceVersion"] != self.policy["metadata"]["resourceVersion"]:
            raise ApiError(status=409, reason="Conflict", message="changed")
        known = {(move["pod"], move["startTime"]) for move in self.moves}
        self._written(self.policy | {"status": body["status"]})
        self.began += [self.now for move in self.moves if (move["pod"], move["startTime"]) not in known]
        self._maybe_crash()
        return json.dumps(self.policy).encode()

    async def strategic_patch(self, *_: object, **__: object) -> bytes:
        body = cast("dict[str, Any]", _[2])
        self._maybe_crash()
        if body["metadata"]["resourceVersion"] != str(self.scale_version):
            raise ApiError(status=409, reason="Conflict", message="changed")
        self._scaled(body["spec"]["replicas"])
        self._maybe_crash()
        return json.dumps({"metadata": {"resourceVersion": str(self.scale_version)}}).encode()

    async def create(self, *_: object, name: str, **__: object) -> bytes:
        self._maybe_crash()
        if name not in self.pods:
            raise ApiError(status=404, reason="NotFound", message="gone")
        self._delete(name)
        self._maybe_crash()
        return b"{}"

    # Who plays the rest

    def _replica_set(self) -> None:
        for web in self.rs_pods.news(self.now):
            self.known[web.name] = web
            self.expected.discard(web.name if not web.going else f"-{web.name}")
            if web.gone:
                del self.known[web.name]
        self.rs_wants = next(iter([wants for wants, _ in self.rs_scale.news(self.now)][-1:]), self.rs_wants)
        there = [web for web in self.known.values() if not web.going]
        if self.expected:
            return
        for _ in range(self.rs_wants - len(there)):
            self._keep(Web(self._name(), self.now))
            self.expected.add(f"web-{self.made}")
        for web in sorted(there, key=self._rank)[: max(0, len(there) - self.rs_wants)]:
            self.expected.add(f"-{web.name}")
            self._delete(web.name)

    def _rank(self, web: Web) -> tuple[object, ...]:
        """The first goes first; of ready pods that have served for about as long it is any."""
        age = int(log10(max(1.0, self.now - web.since))) if web.ready else -1
        return (bool(web.node), web.ready, age, self.chance.random())

    def _others(self) -> None:
        """Places pods, has them get ready, fail and go."""
        for web in [*self.pods.values()]:
            if web.going and self.chance.random() < 0.3:
                self._keep(replace(web, gone=True))
            elif not web.node and not web.going and self.now - web.created > self.chance.uniform(0.2, 1.0):
                taken = {each.node for each in self.pods.values()}
                aims = [move["targetNode"] for move in self.moves if move["outcome"] == "Creating"]
                wanted = [node for node in aims or self.policy["status"].get("plan", []) if node not in taken]
                node = next(iter(wanted), self.chance.choice(self.nodes))
                self._keep(replace(web, node=node, since=self.now + self.chance.uniform(1, 6)))
            elif web.node and not web.ready and self.now >= web.since:
                self._keep(replace(web, ready=True))
            elif web.serves and self.chance.random() < self.failures:
                self.calm = False
                self._keep(replace(web, ready=False, since=self.now + self.chance.uniform(1, 20)))

    async def _users(self) -> None:
        each, serving = len(self.far) > 1, [web.node for web in self.pods.values() if web.serves]
        routed = {user["user"]: user["node"] for user in self.policy["status"].get("associations", [])}
        for number, (user, far) in enumerate(self.far.items()):
            if serving and self.chance.random() < 0.3:
                node = routed.get(user) if routed.get(user) in serving else self.chance.choice(serving)
                told = UserRoundTrips(user, (self._drawn(far[str(node)]),), 0.0, f"203.0.{number}.7")
                self.observations.served(KEY, str(node), [told], self.clock(), each=each)
                self.queue.add(KEY, delay=0.5)
        for node in self.nodes:
            for order in await self.orders.wait(node, 0):
                far = self.far[f"u{order.address.split('.')[2]}"]
                answer = ProbeAnswer(order.id, tuple(self._drawn(far[node]) for _ in range(3)))
                if self.orders.answer(node, answer) is not None:
                    self.observations.probed(KEY, node, order.address, answer.microseconds, self.clock())

    def _drawn(self, milliseconds: float) -> int:
        return round(milliseconds * 1000 * self.chance.uniform(0.95, 1.05))

    # The controller

    def begin(self) -> None:
        """Start one, which reads all that there is and remembers nothing."""
        self.clock = SlewedClock(self.wall, lambda: self.now)
        self.queue, self.policies, self.workloads = Queue(self), Policies(), Workloads()
        self.observations, self.places, self.orders = Observations(), Places([]), Orders(lambda: self.now)
        self.candidates, client = Candidates(Cache(clock=lambda: self.now)), cast("ApiClient", self)
        for name in self.nodes:
            node = network_node(builders.node(name, cpu="8"))
            self.candidates.node_changed(None, node)
            self.places.node_changed(None, node)
        self.reconciler = reconciler.Reconciler(
            client=client,
            recorder=cast("EventRecorder", Notes()),
            queue=self.queue,
            policies=self.policies,
            workloads=self.workloads,
            candidates=self.candidates,
            places=self.places,
            observations=self.observations,
            orders=self.orders,
            evictions=Evictions(client, lambda: self.now),
            status_interval=30.0,
            clock=self.clock,
        )
        for web in self.pods.values():
            self._show(web)
        self.workloads.deployment_changed(None, self._deployment(self.scale, self.scale_version))
        self.policies.update(CustomObject.of(self.policy))
        self.seen_pods = Late(self.pod_changes, self.chance, len(self.pod_changes))
        self.seen_scale = Late(self.scale_changes, self.chance, len(self.scale_changes))
        self.seen_policy = Late(self.policy_changes, self.chance, len(self.policy_changes))

    def _deployment(self, replicas: int, version: int) -> Any:
        found = running(replicas)
        found.metadata.resource_version = str(version)
        return found

    def _show(self, web: Web) -> None:
        shown = pod(web.name, web.name, web.node, ready=web.ready)
        shown.metadata.deletion_timestamp = "2026-01-31T12:00:00Z" if web.going else None
        for follower in (self.candidates, self.workloads):
            follower.pod_changed(shown if web.gone else None, None if web.gone else shown)

    async def _controller(self) -> None:
        for web in self.seen_pods.news(self.now):
            self._show(web)
            self.queue.add(KEY, delay=0.2)
        for replicas, version in self.seen_scale.news(self.now):
            self.workloads.deployment_changed(None, self._deployment(replicas, version))
            self.queue.add(KEY, delay=0.2)
        for document in self.seen_policy.news(self.now):
            self.policies.update(CustomObject.of(document))
            self.queue.add(KEY, delay=0.2)
        try:
            self._maybe_crash()
            if self.queue.due <= self.now:
                self.queue.due = self.now + 3600
                await self.reconciler.reconcile(KEY)
        except CrashError:
            self.begin()
        except ApiError:
            self.queue.add(KEY, delay=1.0)

    async def run(self, seconds: float, step: float = 0.6) -> None:
        """Let time pass."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reconciler, "monotonic", lambda: self.now)
            patch.setattr(reconciler, "rest_after", lambda _: 0.0)
            end = self.now + seconds
            while self.now < end:
                self.now += self.chance.uniform(step / 6, step)
                if self.chance.random() < self.jumps:
                    self.ahead = self.chance.choice([0.0, 3600.0, -3600.0])
                self._others()
                self._replica_set()
                await self._users()
                await self._controller()
                self.check()

    def check(self) -> None:
        """What holds at any time where no pod fails."""
        there = [web for web in self.pods.values() if not web.going]
        serving = sum(web.serves for web in there)
        assert not self.calm or serving >= self.replicas, f"{serving} serve at {self.now}"
        assert len(there) <= self.replicas + 1, f"{len(there)} pods at {self.now}"
