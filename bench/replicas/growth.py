"""An application that is placed lives on: it grows, shrinks and is rolled out, and no pod is moved.

Every step is planned on top of what is bound then, and judged beside a plan of as many replicas from scratch.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final
from uuid import UUID

import yaml

from bench.replicas.boutique import GROUP, Case, manifests
from bench.replicas.cluster import DELETION_COST, GROUP_LABEL, WORKLOAD_LABEL, Manifest, deletion_cost, read_cluster
from bench.replicas.evaluator import Evaluation, evaluate
from bench.replicas.rules import violations
from berth.cli.plan.run import FORECASTS, plan

Planner = Callable[[Sequence[Manifest]], Mapping[str, str]]
"""Makes of manifests the node of every pod that gets one, and writes into them what it is bound with."""
STEPS: Final = ("3 replicas", "grown to 6", "shrunk to 2", "rolled out")


@dataclass(frozen=True, slots=True)
class Step:
    """The application after a step, and as many replicas of it placed from scratch."""

    name: str
    lived: Evaluation
    fresh: Evaluation
    waiting: int
    """pods that found no node in this step"""
    broken: int
    """hard rules that the placement breaks"""


def by_berth_plan(documents: Sequence[Manifest], *, strategy: str | None = None) -> dict[str, str]:
    """What `berth plan` makes of manifests, by another strategy than the default one if it is named."""
    text = yaml.dump_all(documents, Dumper=yaml.CSafeDumper)
    made = plan([("step.yaml", text)], forecasts=FORECASTS, strategy=strategy)
    costs = {pod["name"]: pod["podDeletionCost"] for pod in made["pods"] if "podDeletionCost" in pod}
    for item in documents:
        if item["metadata"]["name"] in costs and item["kind"] == "Pod":
            item["metadata"].setdefault("annotations", {})[DELETION_COST] = str(costs[item["metadata"]["name"]])
    return {pod["name"]: pod["node"] for pod in made["pods"]}


def by_scores(documents: Sequence[Manifest]) -> dict[str, str]:
    """What `berth plan` makes of manifests whose pods are of no AppGroup: one by one, by kube-scheduler's scores.

    Their labels have other names, so that selectors mean whom they meant.
    """
    single = [item for item in documents if item["kind"] != "AppGroup"]
    return by_berth_plan(json.loads(json.dumps(single).replace(GROUP_LABEL, "grouped")))


@dataclass(slots=True)
class Application:
    """Online Boutique with the pods that are bound now."""

    planner: Planner
    base: list[Manifest]
    """everything but pods and Deployments"""
    templates: dict[str, Manifest]
    """pod template by Deployment"""
    pods: list[dict[str, Any]] = field(default_factory=list)
    """bound pods, the oldest first"""
    made: int = 0
    day: int = 0
    waiting: int = 0

    @classmethod
    def of(cls, case: Case, planner: Planner) -> Application:
        """Start without pods."""
        documents = manifests(case)
        templates = {
            item["metadata"]["name"]: item["spec"]["template"] for item in documents if item["kind"] == "Deployment"
        }
        return cls(planner, [item for item in documents if item["kind"] != "Deployment"], templates)

    def add(self, count: int, *, revision: str) -> None:
        """Create so many pods of every Deployment, a day after the last, and bind what finds a node."""
        self.day += 1
        new = [self._pod(name, revision) for name in self.templates for _ in range(count)]
        nodes = self.planner([*self.base, *self.pods, *new])
        for pod in new:
            if node := nodes.get(pod["metadata"]["name"]):
                pod["spec"]["nodeName"], pod["status"] = node, {"phase": "Running"}
                self.pods.append(pod)
            else:
                self.waiting += 1

    def remove(self, count: int, *, revision: str) -> None:
        """Delete so many pods of a revision of every Deployment at once, as a ReplicaSet chooses them.

        Those with the least pod-deletion-cost go first, of these the ones that share their node with most others of
        their Deployment, of these the youngest, of these the ones with the lowest UID. Who shares a node is counted
        before any of them goes.
        """
        for name in self.templates:
            own = [pod for pod in self.pods if pod["metadata"]["labels"][WORKLOAD_LABEL] == name]
            on = Counter(pod["spec"]["nodeName"] for pod in own)
            choice = [pod for pod in own if pod["metadata"]["labels"]["pod-template-hash"] == revision]
            choice.sort(key=lambda pod: pod["metadata"]["uid"])
            choice.sort(key=lambda pod: pod["metadata"]["creationTimestamp"], reverse=True)
            choice.sort(key=lambda pod: on[pod["spec"]["nodeName"]], reverse=True)
            choice.sort(key=deletion_cost)
            for pod in choice[:count]:
                self.pods.remove(pod)

    def _pod(self, name: str, revision: str) -> dict[str, Any]:
        self.made += 1
        template = self.templates[name]
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": f"{name}-{revision}",
            "uid": f"{name}-{revision}",
        }
        metadata = {
            "name": f"{name}-{revision}-{self.made}",
            "namespace": GROUP[0],
            "uid": str(UUID(int=Random(self.made).getrandbits(128))),
            "creationTimestamp": f"2026-01-{self.day:02}T00:00:00Z",
            "labels": {**template["metadata"]["labels"], "pod-template-hash": revision},
            "ownerReferences": [{**owner, "controller": True}],
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": dict(template["spec"])}


def grow(case: Case, planner: Planner = by_berth_plan) -> list[Step]:
    """Take an application through :data:`STEPS`; the case's replicas do not count."""
    application = Application.of(case, planner)
    application.add(3, revision="v1")
    steps = [_judged(application, STEPS[0], case, 3)]
    application.add(3, revision="v1")
    steps.append(_judged(application, STEPS[1], case, 6))
    application.remove(4, revision="v1")
    steps.append(_judged(application, STEPS[2], case, 2))
    for _ in range(2):
        # 25 % of two replicas: one more while the new ones come (rounded up), none less (rounded down).
        application.add(1, revision="v2")
        application.remove(1, revision="v1")
    steps.append(_judged(application, STEPS[3], case, 2))
    return steps


def _judged(application: Application, name: str, case: Case, replicas: int) -> Step:
    fresh = Application.of(replace(case, replicas=replicas), application.planner)
    fresh.add(replicas, revision="v1")
    now, scratch = (read_cluster([*one.base, *one.pods]) for one in (application, fresh))
    waiting, application.waiting = application.waiting, 0
    return Step(name, evaluate(now, GROUP), evaluate(scratch, GROUP), waiting, len(violations(now)))
