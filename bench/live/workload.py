"""The load: Online Boutique, many times over, as AppGroups and bare pods."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from bench.replicas.cluster import GROUP_LABEL, WORKLOAD_LABEL
from berth.api.labels import LABEL_ZONE

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
REGION_COST = 100
ZONE_COST = 10
SYSTEM_NAMESPACE = "berth-system"
"""Where the NetworkTopology lies that serves the applications of every namespace."""


@functools.cache
def _template() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    group = yaml.safe_load((EXAMPLES / "01-appgroup-online-boutique.yaml").read_text())
    deployments = [
        item
        for item in yaml.safe_load_all((EXAMPLES / "03-online-boutique-deployments.yaml").read_text())
        if item and item["kind"] == "Deployment"
    ]
    return group, deployments


def application(name: str, *, scheduler: str, replicas: int = 1) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """One Online Boutique: its AppGroup and its eleven pods, or as many of each as it has replicas.

    Replicas keep away from each other as Helm charts have it: preferred anti-affinity by host and a soft spread over
    zones. Their AppGroup has no maxNetworkCost, which a spread over all zones could not keep.
    """
    group, deployments = copy.deepcopy(_template())
    group["metadata"]["name"] = name
    if replicas > 1:
        for workload in group["spec"]["workloads"]:
            for dependency in workload.get("dependencies", ()):
                dependency.pop("maxNetworkCost", None)
    pods = []
    for deployment in deployments:
        template = deployment["spec"]["template"]
        labels = {**template["metadata"]["labels"], GROUP_LABEL: name}
        spec = {**template["spec"], "schedulerName": scheduler, "terminationGracePeriodSeconds": 0}
        if replicas > 1:
            spec |= _rules({key: labels[key] for key in (GROUP_LABEL, WORKLOAD_LABEL)})
        for number in range(replicas):
            pod_name = f"{name}-{deployment['metadata']['name']}" + (f"-{number}" if replicas > 1 else "")
            metadata = {"name": pod_name, "labels": labels}
            pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return group, pods


def services(pods: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Services by which the workloads of applications are called, any replica alike: one for each workload."""
    workloads = {tuple(pod["metadata"]["labels"][key] for key in (GROUP_LABEL, WORKLOAD_LABEL)) for pod in pods}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"{group}-{workload}"},
            "spec": {"selector": {GROUP_LABEL: group, WORKLOAD_LABEL: workload}, "ports": [{"port": 80}]},
        }
        for group, workload in sorted(workloads)
    ]


def _rules(own: dict[str, str]) -> dict[str, Any]:
    """What the pods of a workload ask for towards each other."""
    selector = {"matchLabels": own}
    term = {"weight": 100, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}}
    spread = {
        "topologyKey": LABEL_ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": selector,
    }
    return {
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}},
        "topologySpreadConstraints": [spread],
    }


def network_topology(zones: list[tuple[str, str]]) -> dict[str, Any]:
    """Costs of 10 between the zones of a region and 100 between regions, for (region, zone) pairs."""
    regions = sorted({region for region, _ in zones})

    def origins(names: list[str], related: dict[str, list[str]], cost: int) -> list[dict[str, Any]]:
        return [{"origin": a, "costList": [{"destination": b, "networkCost": cost} for b in related[a]]} for a in names]

    other_regions = {a: [b for b in regions if b != a] for a in regions}
    neighbours = {zone: [z for r, z in zones if r == region and z != zone] for region, zone in zones}
    return {
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": "bench", "namespace": SYSTEM_NAMESPACE},
        "spec": {
            "configmapName": "",
            "weights": [
                {
                    "name": "UserDefined",
                    "topologyList": [
                        {
                            "topologyKey": "topology.kubernetes.io/region",
                            "originList": origins(regions, other_regions, REGION_COST),
                        },
                        {
                            "topologyKey": "topology.kubernetes.io/zone",
                            "originList": origins([z for _, z in zones], neighbours, ZONE_COST),
                        },
                    ],
                }
            ],
        },
    }
