"""What this controller would write into a NetworkTopology that is not in the cluster yet, for what-if plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.api.labels import WEIGHTS_DIJKSTRA, WEIGHTS_NETPERF
from berth.api.networktopology import NetworkTopology
from controllers.networktopology.compute import compute
from controllers.networktopology.places import NodePlace, survey
from controllers.networktopology.sources.base import Reading, SourceState
from controllers.networktopology.sources.configmap import parse
from controllers.networktopology.weights import weight_sets

Labels = Mapping[str, str]
_COMPUTED = (WEIGHTS_DIJKSTRA, WEIGHTS_NETPERF)


def forecast(
    document: Mapping[str, Any], nodes: Mapping[str, Labels], configmaps: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """Return the NetworkTopology with the weight sets that follow from it, the nodes and its ConfigMap.

    Args:
        document: the NetworkTopology.
        nodes: labels by node name.
        configmaps: data by ``namespace/name``.

    Raises:
        berth.api.errors.InvalidObjectError: the object does not fit its kind.
    """
    topology = NetworkTopology.parse(document)
    places = survey({name: NodePlace.of(labels) for name, labels in nodes.items()})
    spec = document.get("spec") or {}
    stated = [item for item in spec.get("weights") or () if item["name"] not in _COMPUTED]
    computed = compute(topology, _read(topology, configmaps, nodes), places).sets
    return {**document, "spec": {**spec, "weights": [*stated, *weight_sets(computed)]}}


def _read(
    topology: NetworkTopology, configmaps: Mapping[str, Mapping[str, str]], nodes: Mapping[str, Labels]
) -> Reading:
    name = topology.spec.configmap_name
    if not name:
        return Reading(SourceState.NONE)
    key = f"{topology.metadata.namespace}/{name}"
    if key not in configmaps:
        return Reading(SourceState.MISSING, f"ConfigMap {key}")
    return parse(configmaps[key], name=f"ConfigMap {key}", nodes=nodes)
