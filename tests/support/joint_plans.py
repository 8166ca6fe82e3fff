"""Joint plans of generated problems, and their pods one by one before kube-scheduler.

Any number of problems live in one cluster without touching each other: each has a namespace, node labels and topology
keys of its own. A pod is held to its planned node by an extended resource that only this node has, which no rule but
NodeResourcesFit looks at: neither a nodeSelector nor a taint, for topology spread counts by those.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import yaml

from bench.replicas.cluster import ZONE, flatten
from bench.replicas.problems import HOSTNAME, problem
from berth.cli.plan.run import FORECASTS, Options, configure
from berth.scheduling.simulation.inputs import assemble
from berth.scheduling.simulation.manifests import Source, read_documents
from berth.scheduling.simulation.simulate import simulate
from hack.harness.cluster import eventually
from hack.localcluster.rest import Api

Manifest = dict[str, Any]
Step = tuple[str, str, str]
"""Pod, the template's workload (or the pod itself), and its node."""


@dataclass(frozen=True, slots=True)
class JointPlan:
    """A problem and what Berth plans for it."""

    name: str
    documents: Sequence[Manifest]
    steps: Sequence[Step]
    """in the order in which they would be bound"""
    waiting: int
    """pods that waited for a node"""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A pod that kube-scheduler does not place where it was planned."""

    plan: JointPlan
    step: Step
    message: str


def joint_plan(seed: int, *, grown: bool, crossed: bool = False, strategy: str | None = None) -> JointPlan:
    """Plan one generated problem, by the default strategy if none is named; `crossed` as in :func:`cross`."""
    documents = [dict(item) for item in flatten(problem(seed, grown=grown))]
    if crossed:
        cross(documents, Random(f"crossed {seed}"))
    read, wrong = read_documents([Source("problem.yaml", yaml.dump_all(documents, Dumper=yaml.CSafeDumper))])
    inputs, more = assemble(read, forecasts=FORECASTS)
    assert not [*wrong, *more]
    simulation = simulate(inputs, configure(Options(strategy=strategy)))
    steps = [
        (item.decision.pod.metadata.name, inputs.origins.get(item.decision.pod.key, ""), item.decision.node)
        for item in simulation.placed
    ]
    waiting = len(steps) + len(simulation.unplaced)
    return JointPlan(f"p{seed}{'g' if grown else ''}{'c' if crossed else ''}", documents, steps, waiting)


def cross(documents: Sequence[Manifest], random: Random) -> None:
    """Have workloads spread together with others, who need not, and keep apart from others' pods in any namespace.

    Such a spread may be broken by one pod until others are there: it asks for an order.
    """
    workloads = [item for item in documents if item["kind"] == "Deployment"]
    names = [item["metadata"]["name"] for item in workloads]
    for item in workloads:
        name, spec = item["metadata"]["name"], item["spec"]["template"]["spec"]
        together = {"matchExpressions": [{"key": "app", "operator": "In", "values": [name, random.choice(names)]}]}
        stated = spec.get("topologySpreadConstraints", [])
        if not stated and random.randrange(100) < 60:
            skew = random.choice((1, 2))
            stated = [{"topologyKey": ZONE, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule"}]
        if stated:
            spec["topologySpreadConstraints"] = [constraint | {"labelSelector": together} for constraint in stated]
        if random.randrange(100) < 30:
            other = {"matchLabels": {"app": random.choice(names)}}
            term = {"topologyKey": HOSTNAME, "labelSelector": other, "namespaceSelector": {}}
            apart = spec.setdefault("affinity", {}).setdefault("podAntiAffinity", {})
            apart.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(term)


def on_one_node(plan: JointPlan) -> list[JointPlan]:
    """The same pods, all of them on the node of one of them, for each of these nodes."""
    nodes = sorted({node for _, _, node in plan.steps})
    return [
        JointPlan(f"{plan.name}x", plan.documents, [(*step[:2], node) for step in plan.steps], plan.waiting)
        for node in nodes
    ]


def as_planned(plan: JointPlan) -> Manifest:
    """What ``berth plan -o json`` would say of its pods, as far as `bench.replicas.cluster.read_cluster` reads it."""
    return {
        "pods": [
            {"namespace": "default", "name": pod, "workload": origin, "node": node} for pod, origin, node in plan.steps
        ]
    }


def background(plan: JointPlan) -> Iterator[tuple[str, Manifest]]:
    """Namespace, nodes and the pods that have a node, each with the path of its collection."""
    yield "/api/v1/namespaces", {"metadata": {"name": plan.name}}
    for item in _isolated(plan):
        if item["kind"] == "Node":
            room = item["status"]["allocatable"] | {_pin(item["metadata"]["name"]): "1000"}
            item["status"] = {"allocatable": room, "capacity": room}
            yield "/api/v1/nodes", item
        elif item["kind"] == "Pod" and item["spec"].get("nodeName"):
            item["spec"]["nodeName"] = f"{plan.name}-{item['spec']['nodeName']}"
            yield f"/api/v1/namespaces/{plan.name}/pods", item


def replay(plan: JointPlan, api: Api) -> Refusal | None:
    """Let kube-scheduler place pod after pod; the first one that it refuses, if any."""
    templates = {
        f"{item['kind']}/{item['metadata']['name']}": item["spec"]["template"]
        for item in _isolated(plan)
        if "template" in item.get("spec", {})
    }
    for step in plan.steps:
        pod, origin, node = step
        message = _place(api, plan.name, pod, templates[origin], f"{plan.name}-{node}")
        if message:
            return Refusal(plan, step, message)
    return None


def _place(api: Api, namespace: str, name: str, template: Mapping[str, Any], node: str) -> str:
    """Create a pod that only one node can have; kube-scheduler's message if it finds no node."""
    spec = json.loads(json.dumps(template["spec"])) | {"schedulerName": "default-scheduler"}
    resources = spec["containers"][0].setdefault("resources", {})
    for part in ("requests", "limits"):
        resources[part] = resources.get(part, {}) | {_pin(node): "1"}
    metadata = {"name": name, "labels": template["metadata"]["labels"]}
    collection = f"/api/v1/namespaces/{namespace}/pods"
    api.request("POST", collection, {"metadata": metadata, "spec": spec})
    path = f"{collection}/{name}"
    pod = eventually(
        lambda: api.request("GET", path), accept=_decided, timeout=120, what=f"kube-scheduler's word on {path}"
    )
    assert pod["spec"].get("nodeName", node) == node
    return "" if pod["spec"].get("nodeName") else _scheduled(pod)["message"]


def _decided(pod: Manifest) -> bool:
    return bool(pod["spec"].get("nodeName")) or _scheduled(pod).get("status") == "False"


def _scheduled(pod: Manifest) -> Manifest:
    conditions: list[Manifest] = pod["status"].get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == "PodScheduled"), {})


def _isolated(plan: JointPlan) -> list[Manifest]:
    """The problem's documents with names and keys that no other problem has."""
    text = json.dumps(plan.documents)
    for key, own in ((HOSTNAME, "hostname"), (ZONE, "zone")):
        text = text.replace(f'"{key}"', f'"{plan.name}.test/{own}"')
    items: list[Manifest] = json.loads(text)
    for item in items:
        if item["kind"] == "Node":
            item["metadata"]["name"] = f"{plan.name}-{item['metadata']['name']}"
        else:
            item["metadata"]["namespace"] = plan.name
    return items


def _pin(node: str) -> str:
    return f"pin.test/{node}"
