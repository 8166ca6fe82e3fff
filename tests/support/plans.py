"""Manifests in a line each, and plans of them as the command makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from berth.cli.plan.run import plan
from berth.scheduling.simulation.inputs import Forecast, Inputs, assemble
from berth.scheduling.simulation.manifests import InputProblem, Source, read_documents
from controllers.appgroup.forecast import forecast as appgroup_forecast
from controllers.networktopology.forecast import forecast as topology_forecast

FORECASTS: Mapping[str, Forecast] = {"AppGroup": appgroup_forecast, "NetworkTopology": topology_forecast}
GROUP_LABEL = "appgroup.diktyo.x-k8s.io"
Manifest = dict[str, Any]


def node(
    name: str, *, zone: str = "", region: str = "", cpu: str = "4", taints: Sequence[Mapping[str, str]] = ()
) -> Manifest:
    """A Node with 16 GiB."""
    labels = {"kubernetes.io/hostname": name}
    if region:
        labels["topology.kubernetes.io/region"] = region
    if zone:
        labels["topology.kubernetes.io/zone"] = zone
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}},
    }


def pod_spec(*, cpu: str = "1", scheduler: str = "berth-scheduler", **spec: Any) -> Manifest:
    """A PodSpec with one container."""
    return {
        "schedulerName": scheduler,
        "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}],
        **spec,
    }


def labels(group: str = "", workload: str = "", **more: str) -> dict[str, str]:
    """Labels of a member."""
    member = {GROUP_LABEL: group, f"{GROUP_LABEL}.workload": workload} if group else {}
    return {**member, **more}


def pod(name: str, *, group: str = "", workload: str = "", namespace: str = "", **spec: Any) -> Manifest:
    """A Pod; keyword arguments as of :func:`pod_spec`."""
    metadata: Manifest = {"name": name, "labels": labels(group, workload)}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(**spec)}


def workload(kind: str, name: str, *, group: str = "", spec: Manifest | None = None, **pod_arguments: Any) -> Manifest:
    """A workload with a template; `spec` are further fields of its spec."""
    selects = {"app": name}
    template = {"metadata": {"labels": labels(group, name, **selects)}, "spec": pod_spec(**pod_arguments)}
    body: Manifest = {"selector": {"matchLabels": selects}, "template": template}
    version = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    if kind == "Job":
        body = {"template": template}
    if kind == "CronJob":
        body = {"jobTemplate": {"spec": {"template": template, **(spec or {}).pop("job", {})}}}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": {**body, **(spec or {})}}


def appgroup(name: str, edges: Mapping[str, Sequence[str]], *, members: int = 0, **dependency: Any) -> Manifest:
    """An AppGroup; `edges` names every workload with those that it calls, all with the same `dependency` fields."""

    def ref(selector: str) -> Manifest:
        return {"kind": "Deployment", "name": selector, "selector": selector}

    return {
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1",
        "kind": "AppGroup",
        "metadata": {"name": name},
        "spec": {
            "numMembers": members or len(edges),
            "topologySortingAlgorithm": "KahnSort",
            "workloads": [
                {"workload": ref(caller), "dependencies": [{"workload": ref(c), **dependency} for c in called]}
                for caller, called in edges.items()
            ],
        },
    }


def topology(zones: Mapping[tuple[str, str], int], regions: Mapping[tuple[str, str], int] | None = None) -> Manifest:
    """A NetworkTopology with costs that hold in both directions."""

    def level(key: str, costs: Mapping[tuple[str, str], int]) -> Manifest:
        both = {**costs, **{(b, a): cost for (a, b), cost in costs.items()}}
        rows: dict[str, list[Manifest]] = {}
        for (origin, destination), cost in sorted(both.items()):
            rows.setdefault(origin, []).append({"destination": destination, "networkCost": cost})
        origins = [{"origin": origin, "costList": row} for origin, row in rows.items()]
        return {"topologyKey": f"topology.kubernetes.io/{key}", "originList": origins}

    levels = [level("zone", zones), *([level("region", regions)] if regions else [])]
    return {
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": "net"},
        "spec": {"configmapName": "", "weights": [{"name": "UserDefined", "topologyList": levels}]},
    }


def text(*manifests: Manifest) -> str:
    """Manifests as one YAML stream."""
    return yaml.safe_dump_all(list(manifests), sort_keys=False)


def made(*manifests: Manifest, **options: Any) -> dict[str, Any]:
    """The plan of manifests, as a document."""
    return plan([("m.yaml", text(*manifests))], forecasts=FORECASTS, **options)


def inputs_of(*manifests: Manifest, **options: Any) -> tuple[Inputs, list[InputProblem]]:
    """What manifests are assembled to."""
    documents, problems = read_documents([Source("m.yaml", text(*manifests))])
    inputs, more = assemble(documents, forecasts=FORECASTS, **options)
    return inputs, [*problems, *more]


def where(document: Mapping[str, Any]) -> dict[str, str]:
    """Node by pod."""
    return {item["name"]: item["node"] for item in document["pods"]}


def why(document: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """(reason, message) by pod without a node."""
    return {item["name"]: (item["reason"], item["message"]) for item in document["notPlaced"]}
