"""What this controller would write into a NetworkTopology that is not in the cluster yet, for ``berth plan``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.api.labels import WEIGHTS_DIJKSTRA, WEIGHTS_NETPERF
from berth.api.networktopology import NetworkTopology
from controllers.networktopology.compute import compute
from controllers.networktopology.places import NodePlace, Places
from controllers.networktopology.sources.configmap import parse
from controllers.networktopology.sources.userdefined import read_stated
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
    places = Places.of({name: NodePlace.of(labels) for name, labels in nodes.items()})
    spec = document.get("spec") or {}
    stated = [item for item in spec.get("weights") or () if item["name"] not in _COMPUTED]
    name = f"{topology.metadata.namespace}/{topology.spec.configmap_name}"
    reading = parse(configmaps.get(name, {}), name=f"ConfigMap {name}", nodes=nodes)
    computed = compute(reading if reading.usable else read_stated(topology, places.region_of), places).sets
    return {**document, "spec": {**spec, "weights": [*stated, *weight_sets(computed)]}}
