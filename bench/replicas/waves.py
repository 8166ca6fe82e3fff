"""Deployments that live on, on a clock of their own: pods come as controllers create them, and are planned then.

Writes of controllers are let through at a rate, so that Deployments which are changed at once have their new pods one
after the other. Pods that go are gone at once.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count, cycle
from random import Random
from typing import Any, Final
from uuid import UUID

from bench.replicas.boutique import GROUP, Case, manifests
from bench.replicas.deployments import Deployment, Pod
from bench.replicas.growth import Planner
from berth.scheduling.settling import (
    DEPLOYMENTS_GATHER_AT_MOST_SECONDS,
    DEPLOYMENTS_GATHER_SECONDS,
    GATHER_AT_MOST_SECONDS,
    GATHER_SECONDS,
)

WRITES: Final = (20.0, 30.0)
"""Requests a second of each of kube-controller-manager's controllers, and how many at once after a pause."""
AGAIN_SECONDS: Final = 1.0
"""After which pods without a node are planned again."""
REST_SECONDS: Final = 60.0
"""After a first placement."""
MOST_SECONDS: Final = 3600.0
"""That anything takes."""
_DAY: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Cluster:
    """Nodes, an application, its controllers and the time."""

    case: Case
    limits: Sequence[tuple[int, int]]
    """maxSurge and maxUnavailable of its Deployments, in turn"""
    pace: tuple[float, float]
    """seconds that a pod takes to be ready, the least and the most"""
    chance: Random
    planner: Planner
    base: list[dict[str, Any]] = field(init=False)
    templates: dict[str, dict[str, Any]] = field(init=False)
    deployments: list[Deployment] = field(init=False)
    now: float = 0.0
    plans: int = 0
    _writes: dict[str, float] = field(init=False, default_factory=lambda: defaultdict(float))
    """when all writes of a controller up to now would have been let through at their rate"""
    _events: list[tuple[float, int, str, Any]] = field(init=False, default_factory=list)
    _numbers: count[int] = field(init=False, default_factory=count)
    _came: tuple[float, float] | None = None
    """when the first and the last of the waiting pods came"""

    def __post_init__(self) -> None:
        """Begin without pods."""
        documents, limits, wanted = manifests(self.case), cycle(self.limits), self.case.replicas
        self.base = [item for item in documents if item["kind"] != "Deployment"]
        found = {item["metadata"]["name"]: item["spec"] for item in documents if item["kind"] == "Deployment"}
        self.templates = {name: spec["template"] for name, spec in found.items()}
        self.deployments = [
            Deployment(name, wanted, *most, "v1", {"v1": wanted}) for name, most in zip(found, limits, strict=False)
        ]

    @property
    def settled(self) -> bool:
        """Whether all are as they are to be."""
        return all(deployment.settled for deployment in self.deployments)

    def sync(self, deployments: Sequence[Deployment] | None = None) -> None:
        """Have the controllers look at Deployments soon, at all of them by default."""
        for deployment in self.deployments if deployments is None else deployments:
            self._at(self.now + self.chance.uniform(0.005, 0.1), "sync", deployment)

    def place(self) -> None:
        """Have all of the application come at once, be ready and rest."""
        for deployment in self.deployments:
            deployment.pods = [
                self._pod(deployment.name, name, self.now)
                for name, wanted in deployment.wanted.items()
                for _ in range(wanted)
            ]
        self._came = self.now, self.now
        self._at(self.now + GATHER_SECONDS, "plan")
        self.run()
        self.now += REST_SECONDS

    def run(self, until: float = MOST_SECONDS) -> None:
        """Let time pass until nothing happens any more, or so many seconds of it."""
        end = self.now + until
        while self._events and self._events[0][0] <= end:
            self.now, _, what, about = heapq.heappop(self._events)
            if what == "sync":
                self._sync(about)
            elif what == "plan":
                self._plan()
            elif what == "come":
                self._come()
            else:
                about.ready = self.now
                about.manifest["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
                self.sync([deployment for deployment in self.deployments if about in deployment.pods])
        self.now = max(self.now, end) if self._events else self.now

    def kill(self, share: float) -> None:
        """Delete some pods, as evictions would."""
        for deployment in self.deployments:
            deployment.pods = [pod for pod in deployment.pods if self.chance.random() > share]
        self.sync()

    def documents(self) -> list[dict[str, Any]]:
        """All manifests, pods included."""
        pods = (pod for deployment in self.deployments for pod in deployment.pods)
        return [*self.base, *(pod.manifest for pod in pods if pod.node or self._waits(pod))]

    def _waits(self, pod: Pod) -> bool:
        return not pod.node and pod.created <= self.now

    def _at(self, when: float, what: str, about: Any = None) -> None:
        heapq.heappush(self._events, (when, next(self._numbers), what, about))

    def _sync(self, deployment: Deployment) -> None:
        scaled = self.now
        while deployment.step():
            scaled = self._write("Deployment", 2)  # a ReplicaSet, and what the Deployment's status says of it
        gone = deployment.surplus()
        deployment.pods = [pod for pod in deployment.pods if pod not in gone]
        self._write("ReplicaSet", len(gone) + 1)  # and a status
        for revision in deployment.missing():
            pod = self._pod(deployment.name, revision, max(scaled, self._write("ReplicaSet", 1)))
            deployment.pods.append(pod)
            self._at(pod.created, "come", pod)

    def _come(self) -> None:
        self._came = (self._came or (self.now,))[0], self.now
        self._at(self.now + GATHER_SECONDS, "plan")

    def _gather(self) -> tuple[float, float]:
        """How long waiting pods wait for others, and at the most: longer than the first ones."""
        if any(pod.node for deployment in self.deployments for pod in deployment.pods):
            return DEPLOYMENTS_GATHER_SECONDS, DEPLOYMENTS_GATHER_AT_MOST_SECONDS
        return GATHER_SECONDS, GATHER_AT_MOST_SECONDS

    def _write(self, controller: str, number: int) -> float:
        """Have a controller make requests, and return when they are let through."""
        rate, burst = WRITES
        self._writes[controller] = max(self._writes[controller], self.now - burst / rate) + number / rate
        return max(self.now, self._writes[controller])

    def _plan(self) -> None:
        """Plan what waits, unless more came a moment ago."""
        if self._came is None:
            return
        first, last = self._came
        gather, at_most = self._gather()
        due = min(last + gather, first + at_most)
        if self.now < due - 1e-6:
            self._at(due, "plan")
            return
        self._came = None
        waiting = [(each, pod) for each in self.deployments for pod in each.pods if self._waits(pod)]
        if not waiting:
            return
        nodes = self.planner(self.documents())
        self.plans += 1
        for _, pod in waiting:
            if node := nodes.get(pod.manifest["metadata"]["name"], ""):
                pod.node = pod.manifest["spec"]["nodeName"] = node
                pod.manifest["status"] = {"phase": "Running"}
                self._at(self.now + self.chance.uniform(*self.pace), "ready", pod)
        if any(not pod.node for _, pod in waiting):
            self._came = self.now, self.now
            self._at(self.now + AGAIN_SECONDS, "plan")

    def _pod(self, name: str, revision: str, created: float) -> Pod:
        template, uid = self.templates[name], str(UUID(int=self.chance.getrandbits(128)))
        replica_set = f"{name}-{revision}"
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set, "uid": replica_set}
        metadata = {
            "name": f"{name}-{revision}-{next(self._numbers)}",
            "namespace": GROUP[0],
            "uid": uid,
            "creationTimestamp": f"{_DAY + timedelta(seconds=int(created)):%Y-%m-%dT%H:%M:%SZ}",
            "labels": {**template["metadata"]["labels"], "pod-template-hash": revision},
            "ownerReferences": [{**owner, "controller": True}],
        }
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": dict(template["spec"])}
        return Pod(revision, uid, created, manifest)
