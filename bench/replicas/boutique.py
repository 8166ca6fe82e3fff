"""Online Boutique of the examples with several replicas, Services and rules, as `berth plan` places it.

maxNetworkCost is left out of the AppGroup unless a case says otherwise: a hard spread over zones of two regions could
not be kept with it.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from bench.replicas.cluster import GROUP_LABEL, REGION, WORKLOAD_LABEL, ZONE, Manifest, read_cluster
from bench.replicas.evaluator import Evaluation, evaluate
from bench.replicas.rules import Violation, violations
from berth.cli.plan.run import FORECASTS, plan

EXAMPLES: Final = Path(__file__).resolve().parents[2] / "examples"
GROUP: Final = ("default", "online-boutique")
HOSTNAME: Final = "kubernetes.io/hostname"
_ZONES: Final = {"eu-west-a": "eu-west", "eu-west-b": "eu-west", "us-east-a": "us-east", "us-east-b": "us-east"}


def _anti_affinity(*, required: bool) -> dict[str, Any]:
    def made(selector: Manifest) -> dict[str, Any]:
        term = {"topologyKey": HOSTNAME, "labelSelector": selector}
        if required:
            rule: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        else:
            weighted = [{"weight": 100, "podAffinityTerm": term}]
            rule = {"preferredDuringSchedulingIgnoredDuringExecution": weighted}
        return {"affinity": {"podAntiAffinity": rule}}

    return {"make": made}


def _spread(when: str, **more: Any) -> dict[str, Any]:
    def made(selector: Manifest) -> dict[str, Any]:
        one = {**more, "topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": when, "labelSelector": selector}
        return {"topologySpreadConstraints": [one]}

    return {"make": made}


RULES: Final[Mapping[str, dict[str, Any]]] = {
    "none": {},
    "required anti-affinity by host": _anti_affinity(required=True),
    "preferred anti-affinity by host, weight 100": _anti_affinity(required=False),
    "hard spread over zones": _spread("DoNotSchedule"),
    "soft spread over zones": _spread("ScheduleAnyway"),
    "hard spread over zones by revision": _spread("DoNotSchedule", matchLabelKeys=["pod-template-hash"]),
}
"""What every workload asks for its own replicas."""


@dataclass(frozen=True, slots=True)
class Case:
    """One application on one cluster."""

    replicas: int = 3
    """of every workload"""
    prefer: str = ""
    """trafficDistribution of every Service, empty for all endpoints"""
    rule: str = "none"
    """one of :data:`RULES`"""
    nodes: int = 24
    """nodes, spread over four zones of two regions"""
    cores: int = 4
    """of each node"""
    limits: bool = False
    """whether the AppGroup keeps its maxNetworkCost"""
    spread: str = ""
    """annotation berth.dev/spread of the AppGroup, empty for none"""

    @property
    def name(self) -> str:
        """Words for a table."""
        more = [f"{self.replicas} replicas", f"{self.nodes} nodes of {self.cores} core{'s' if self.cores > 1 else ''}"]
        more += [*(["maxNetworkCost"] if self.limits else [])]
        return ", ".join([*more, *([f"spread {self.spread}"] if self.spread else [])])


CASES: Final = (
    *(Case(rule=rule, prefer=prefer) for rule in list(RULES)[:5] for prefer in ("", "PreferSameZone")),
    Case(limits=True),
    Case(limits=True, rule="required anti-affinity by host"),
    *(
        Case(replicas, prefer, rule, cores=cores)
        for replicas, cores in ((4, 4), (3, 1))
        for rule, prefer in (
            ("none", ""),
            ("none", "PreferSameZone"),
            ("required anti-affinity by host", ""),
            ("hard spread over zones", "PreferSameZone"),
        )
    ),
    *(Case(spread=level, prefer=prefer) for level in ("none", "node", "zone") for prefer in ("", "PreferSameZone")),
    Case(replicas=11, prefer="PreferSameZone"),
    Case(replicas=11, prefer="PreferSameZone", rule="hard spread over zones"),
    *(
        Case(nodes=200, rule=rule, prefer=prefer)
        for rule in ("none", "required anti-affinity by host", "hard spread over zones")
        for prefer in ("", "PreferSameZone")
    ),
)
"""The cases of the benchmark."""


def manifests(case: Case) -> list[dict[str, Any]]:
    """The examples, changed as the case says."""
    found = [*_nodes(case)]
    for file in sorted(EXAMPLES.glob("0[123]*.yaml")):
        for item in copy.deepcopy(list(yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader))):
            found.append(item)
            if item["kind"] == "AppGroup" and case.spread:
                item["metadata"]["annotations"] = {"berth.dev/spread": case.spread}
            if item["kind"] == "AppGroup" and not case.limits:
                for workload in item["spec"]["workloads"]:
                    for dependency in workload.get("dependencies", ()):
                        dependency.pop("maxNetworkCost", None)
            if item["kind"] == "Deployment":
                found.append(_replicate(item, case))
    return found


def _nodes(case: Case) -> Iterator[dict[str, Any]]:
    zones = list(_ZONES)
    for number in range(case.nodes):
        zone = zones[number * len(zones) // case.nodes]
        name = f"{zone}-{number:03}"
        labels = {HOSTNAME: name, ZONE: zone, REGION: _ZONES[zone]}
        room = {"cpu": str(case.cores), "memory": "16Gi", "pods": "110"}
        metadata = {"name": name, "labels": labels}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": room}}


def _replicate(deployment: dict[str, Any], case: Case) -> dict[str, Any]:
    """Give a Deployment its replicas and rules; returns its Service."""
    name, template = deployment["metadata"]["name"], deployment["spec"]["template"]
    deployment["spec"]["replicas"] = case.replicas
    labels = template["metadata"]["labels"]
    own = {key: labels[key] for key in (GROUP_LABEL, WORKLOAD_LABEL)}
    if case.rule != "none":
        template["spec"] |= RULES[case.rule]["make"]({"matchLabels": own})
    spec: dict[str, Any] = {"selector": deployment["spec"]["selector"]["matchLabels"], "ports": [{"port": 80}]}
    if case.prefer:
        spec["trafficDistribution"] = case.prefer
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a case."""

    case: Case
    evaluation: Evaluation
    waiting: int
    """pods without a node"""
    seconds: float
    """processor time of the plan, reading included"""
    broken: list[Violation] = field(default_factory=list)
    """hard rules that the placement breaks"""


def run(case: Case, *, strategy: str | None = None) -> Result:
    """Plan a case, by another strategy than the default one if it is named, and judge the placement."""
    documents = manifests(case)
    text = yaml.dump_all(documents, Dumper=yaml.CSafeDumper)
    started = time.process_time()
    made = plan([("case.yaml", text)], forecasts=FORECASTS, strategy=strategy)
    seconds = time.process_time() - started
    cluster = read_cluster(documents, made)
    return Result(case, evaluate(cluster, GROUP), made["summary"]["notPlaced"], seconds, violations(cluster))
